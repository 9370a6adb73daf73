"""orders of matches by figures that are written once, as a match ends"""

import sqlalchemy as sa
from alembic import op

revision = '0072'
down_revision = '0071'
branch_labels = None
depends_on = None

WRITTEN_WITH_EACH_MOVE = {'moves': 'ply', 'refused': 'violations'}


def upgrade():
    for name in WRITTEN_WITH_EACH_MOVE:
        op.drop_index(f'ix_match_{name}', table_name='match')
        op.add_column('match', sa.Column(name, sa.Integer(), nullable=True))
    op.execute("UPDATE match SET moves = ply, refused = violations WHERE status = 'over'")
    for name in WRITTEN_WITH_EACH_MOVE:
        known = sa.text(f'{name} IS NOT NULL')
        op.create_index(
            f'ix_match_{name}', 'match', [name, 'id'], unique=False, sqlite_where=known, postgresql_where=known
        )


def downgrade():
    for name, column in WRITTEN_WITH_EACH_MOVE.items():
        op.drop_index(f'ix_match_{name}', table_name='match')
        op.drop_column('match', name)
        op.create_index(f'ix_match_{name}', 'match', [column, 'id'], unique=False)
