"""people's matches with their ends and arms, counted without their rows"""

from alembic import op

revision = '0074'
down_revision = '0072'
branch_labels = None
depends_on = None


def upgrade():
    _index('source', 'started_at', 'reason', 'arm_id')


def downgrade():
    _index('source', 'started_at')


def _index(*columns):
    op.drop_index('ix_match_source_started', table_name='match')
    op.create_index('ix_match_source_started', 'match', columns, unique=False)
