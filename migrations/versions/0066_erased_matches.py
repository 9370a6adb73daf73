"""matches in which something was erased, of which there are few"""

import sqlalchemy as sa
from alembic import op

revision = '0066'
down_revision = '0065'
branch_labels = None
depends_on = None


def upgrade():
    op.create_index(
        'ix_match_erased', 'match', ['erased_at'], unique=False,
        sqlite_where=sa.text('erased_at IS NOT NULL'), postgresql_where=sa.text('erased_at IS NOT NULL'),
    )


def downgrade():
    op.drop_index('ix_match_erased', table_name='match')
