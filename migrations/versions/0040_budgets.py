"""jobs may have a budget, and rounds count what they cost"""

import sqlalchemy as sa
from alembic import op

revision = '0040'
down_revision = '0039'
branch_labels = None
depends_on = None

JOBS = (
    'alignment', 'assessment', 'benchmark_job', 'campaign', 'rehearsal', 'round', 'society', 'training_job',
)  # fmt: skip


def upgrade():
    for table in JOBS:
        op.add_column(table, sa.Column('budget_usd', sa.Float(), nullable=True))
        op.add_column(table, sa.Column('budget_tokens', sa.BigInteger(), nullable=True))
    op.add_column('round', sa.Column('cost', sa.Float(), nullable=False, server_default='0'))


def downgrade():
    with op.batch_alter_table('round', schema=None) as batch_op:
        batch_op.drop_column('cost')
    for table in JOBS:
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.drop_column('budget_tokens')
            batch_op.drop_column('budget_usd')
