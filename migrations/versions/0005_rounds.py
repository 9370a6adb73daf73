"""rounds"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = '0005'
down_revision = '0004'
branch_labels = None
depends_on = None


def upgrade():
    op.create_table('round',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('name', sa.String(length=120), nullable=False),
    sa.Column('game', sa.String(length=40), nullable=False),
    sa.Column('source', sa.String(length=20), nullable=False),
    sa.Column('status', sa.String(length=10), nullable=False),
    sa.Column('queued', sa.Boolean(), nullable=False),
    sa.Column('matrix_id', sa.Integer(), nullable=True),
    sa.Column('config', JSON, nullable=False),
    sa.Column('model_0_id', sa.Integer(), nullable=True),
    sa.Column('model_1_id', sa.Integer(), nullable=True),
    sa.Column('matches', sa.Integer(), nullable=False),
    sa.Column('seed', sa.BigInteger(), nullable=False),
    sa.Column('swap_seats', sa.Boolean(), nullable=False),
    sa.Column('pick', sa.String(length=10), nullable=False),
    sa.Column('sampling', JSON, nullable=False),
    sa.Column('finished', sa.Integer(), nullable=False),
    sa.Column('aborted', sa.Integer(), nullable=False),
    sa.Column('moves', sa.Integer(), nullable=False),
    sa.Column('violations', sa.Integer(), nullable=False),
    sa.Column('calls', sa.Integer(), nullable=False),
    sa.Column('failed_calls', sa.Integer(), nullable=False),
    sa.Column('prompt_tokens', sa.BigInteger(), nullable=False),
    sa.Column('completion_tokens', sa.BigInteger(), nullable=False),
    sa.Column('error', sa.Text(), nullable=True),
    sa.Column('created_at', sa.DateTime(), nullable=False),
    sa.Column('started_at', sa.DateTime(), nullable=True),
    sa.Column('ended_at', sa.DateTime(), nullable=True),
    sa.Column('rung_at', sa.DateTime(), nullable=True),
    sa.ForeignKeyConstraint(['model_0_id'], ['language_model.id'], name=op.f('fk_round_model_0_id')),
    sa.ForeignKeyConstraint(['model_1_id'], ['language_model.id'], name=op.f('fk_round_model_1_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_round'))
    )
    with op.batch_alter_table('round', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_round_game'), ['game'], unique=False)
        batch_op.create_index(batch_op.f('ix_round_matrix_id'), ['matrix_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_round_model_0_id'), ['model_0_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_round_model_1_id'), ['model_1_id'], unique=False)
        batch_op.create_index('ix_round_to_play', ['status', 'queued'], unique=False)

    op.create_table('round_material',
    sa.Column('round_id', sa.Integer(), nullable=False),
    sa.Column('source', sa.String(length=300), nullable=False),
    sa.Column('items', JSON, nullable=False),
    sa.ForeignKeyConstraint(['round_id'], ['round.id'], name=op.f('fk_round_material_round_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('round_id', name=op.f('pk_round_material'))
    )
    op.create_table('round_range',
    sa.Column('round_id', sa.Integer(), nullable=False),
    sa.Column('start', sa.Integer(), nullable=False),
    sa.Column('stop', sa.Integer(), nullable=False),
    sa.Column('done', sa.Boolean(), nullable=False),
    sa.Column('lease_owner', sa.String(length=80), nullable=True),
    sa.Column('lease_until', sa.DateTime(), nullable=True),
    sa.Column('lease_count', sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(['round_id'], ['round.id'], name=op.f('fk_round_range_round_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('round_id', 'start', name=op.f('pk_round_range'))
    )
    with op.batch_alter_table('match', schema=None) as batch_op:
        batch_op.add_column(sa.Column('round_id', sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column('index', sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column('words', sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column('first_proposal', sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column('tokens', sa.Integer(), nullable=True))
        batch_op.create_unique_constraint('uq_match_round', ['round_id', 'index'])
        batch_op.create_foreign_key(batch_op.f('fk_match_round_id'), 'round', ['round_id'], ['id'])

    with op.batch_alter_table('seat', schema=None) as batch_op:
        batch_op.add_column(sa.Column('player', sa.String(length=80), nullable=True))


def downgrade():
    with op.batch_alter_table('seat', schema=None) as batch_op:
        batch_op.drop_column('player')

    with op.batch_alter_table('match', schema=None) as batch_op:
        batch_op.drop_constraint(batch_op.f('fk_match_round_id'), type_='foreignkey')
        batch_op.drop_constraint('uq_match_round', type_='unique')
        batch_op.drop_column('tokens')
        batch_op.drop_column('first_proposal')
        batch_op.drop_column('words')
        batch_op.drop_column('index')
        batch_op.drop_column('round_id')

    op.drop_table('round_range')
    op.drop_table('round_material')
    with op.batch_alter_table('round', schema=None) as batch_op:
        batch_op.drop_index('ix_round_to_play')
        batch_op.drop_index(batch_op.f('ix_round_model_1_id'))
        batch_op.drop_index(batch_op.f('ix_round_model_0_id'))
        batch_op.drop_index(batch_op.f('ix_round_matrix_id'))
        batch_op.drop_index(batch_op.f('ix_round_game'))

    op.drop_table('round')
