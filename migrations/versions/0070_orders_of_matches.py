"""orders of matches by their figures"""

import sqlalchemy as sa
from alembic import op

revision = '0070'
down_revision = '0069'
branch_labels = None
depends_on = None

ENDED = {
    'joint_score': 'utility_0 + utility_1',
    'lower_score': 'CASE WHEN utility_0 < utility_1 THEN utility_0 ELSE utility_1 END',
}


def upgrade():
    for name, figure in ENDED.items():
        known = sa.text(f'({figure}) IS NOT NULL')
        op.create_index(
            f'ix_match_{name}', 'match', [sa.text(f'({figure})'), 'id'], unique=False,
            sqlite_where=known, postgresql_where=known,
        )
    known = sa.text('words IS NOT NULL')
    op.create_index(
        'ix_match_words', 'match', ['words', 'id'], unique=False, sqlite_where=known, postgresql_where=known
    )
    op.create_index('ix_match_moves', 'match', ['ply', 'id'], unique=False)
    op.create_index('ix_match_refused', 'match', ['violations', 'id'], unique=False)


def downgrade():
    for name in (*ENDED, 'words', 'moves', 'refused'):
        op.drop_index(f'ix_match_{name}', table_name='match')
