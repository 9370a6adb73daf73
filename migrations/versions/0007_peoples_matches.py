"""people's matches"""

from alembic import op

revision = '0007'
down_revision = '0006'
branch_labels = None
depends_on = None


def upgrade():
    with op.batch_alter_table('match', schema=None) as batch_op:
        batch_op.create_index('ix_match_source_started', ['source', 'started_at'], unique=False)


def downgrade():
    with op.batch_alter_table('match', schema=None) as batch_op:
        batch_op.drop_index('ix_match_source_started')
