"""trainings at a vendor: what it calls them, how far they are, when to look at them next"""

import sqlalchemy as sa
from alembic import op

revision = '0019'
down_revision = '0018'
branch_labels = None
depends_on = None


def upgrade():
    for name, kind in COLUMNS:
        op.add_column('training_job', sa.Column(name, kind, nullable=True))
    op.add_column('training_job', sa.Column('remote_failures', sa.Integer(), server_default='0', nullable=False))


def downgrade():
    with op.batch_alter_table('training_job', schema=None) as batch_op:
        batch_op.drop_column('remote_failures')
        for name, _ in reversed(COLUMNS):
            batch_op.drop_column(name)


COLUMNS = (
    ('remote_token', sa.String(length=40)),
    ('remote_file_id', sa.String(length=200)),
    ('remote_job_id', sa.String(length=200)),
    ('remote_status', sa.String(length=80)),
    ('remote_model', sa.String(length=200)),
    ('trained_tokens', sa.BigInteger()),
    ('poll_at', sa.DateTime()),
)
