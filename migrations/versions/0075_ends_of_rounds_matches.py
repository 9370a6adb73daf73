"""matches of rounds by when they ended, counted by day without their rows"""

import sqlalchemy as sa
from alembic import op

revision = '0075'
down_revision = '0074'
branch_labels = None
depends_on = None


def upgrade():
    # Partial, so that a match of people is never in it, and one of a round is written into it once, as it ends.
    ended = sa.text('round_id IS NOT NULL AND ended_at IS NOT NULL')
    op.create_index(
        'ix_match_round_ended',
        'match',
        ['round_id', 'ended_at'],
        unique=False,
        sqlite_where=ended,
        postgresql_where=ended,
    )


def downgrade():
    op.drop_index('ix_match_round_ended', table_name='match')
