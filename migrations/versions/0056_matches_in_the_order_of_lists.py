"""matches of a game, and matches that ended so, in the order in which lists show them"""

from alembic import op

revision = '0056'
down_revision = '0055'
branch_labels = None
depends_on = None


def upgrade():
    op.create_index('ix_match_game_started', 'match', ['game', 'started_at'], unique=False)
    op.create_index('ix_match_reason_started', 'match', ['reason', 'started_at'], unique=False)
    op.drop_index('ix_match_game', table_name='match')


def downgrade():
    op.create_index('ix_match_game', 'match', ['game'], unique=False)
    op.drop_index('ix_match_reason_started', table_name='match')
    op.drop_index('ix_match_game_started', table_name='match')
