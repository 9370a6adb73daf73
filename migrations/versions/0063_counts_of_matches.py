"""matches that are over, counted by round, game, source, ending and players"""

import sqlalchemy as sa
from alembic import op

revision = '0063'
down_revision = '0062'
branch_labels = None
depends_on = None

COUNTED = """
    INSERT INTO match_count (round_id, game, source, reason, model_0_id, model_1_id, imported_0, imported_1,
                             matches, scored, points_0, points_1)
    SELECT {round}, m.game, m.source, m.reason, a.language_model_id, b.language_model_id,
           a.player IS NOT NULL, b.player IS NOT NULL, count(*), count(m.utility_0 + m.utility_1),
           coalesce(sum(m.utility_0), 0), coalesce(sum(m.utility_1), 0)
    FROM "match" m
    JOIN seat a ON a.match_id = m.id AND a.seat = 0
    JOIN seat b ON b.match_id = m.id AND b.seat = 1
    WHERE m.status = 'over' AND {which}
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
"""


def upgrade():
    op.create_table(
        'match_count', sa.Column('id', sa.Integer(), nullable=False),
        sa.Column('round_id', sa.Integer(), nullable=True),
        sa.Column('game', sa.String(length=40), nullable=False),
        sa.Column('source', sa.String(length=20), nullable=False),
        sa.Column('reason', sa.String(length=40), nullable=True),
        sa.Column('model_0_id', sa.Integer(), nullable=True), sa.Column('model_1_id', sa.Integer(), nullable=True),
        sa.Column('imported_0', sa.Boolean(), nullable=False), sa.Column('imported_1', sa.Boolean(), nullable=False),
        sa.Column('matches', sa.Integer(), nullable=False), sa.Column('scored', sa.Integer(), nullable=False),
        sa.Column('points_0', sa.Float(), nullable=False), sa.Column('points_1', sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(['round_id'], ['round.id'], name=op.f('fk_match_count_round_id'), ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_match_count')),
    )
    op.create_index(op.f('ix_match_count_round_id'), 'match_count', ['round_id'], unique=False)
    op.execute(COUNTED.format(round='CAST(NULL AS INTEGER)', which='TRUE'))
    op.execute(COUNTED.format(round='m.round_id', which='m.round_id IS NOT NULL'))


def downgrade():
    op.drop_table('match_count')
