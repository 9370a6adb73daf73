"""tokens that a server does not count are estimated, and count to budgets"""

import sqlalchemy as sa
from alembic import op

revision = '0047'
down_revision = '0046'
branch_labels = None
depends_on = None

JOBS = ('assessment', 'round', 'society')


def upgrade():
    op.add_column('generation', sa.Column('estimated_tokens', sa.Integer(), nullable=True))
    for table in JOBS:
        op.add_column(table, sa.Column('estimated_tokens', sa.BigInteger(), nullable=False, server_default='0'))


def downgrade():
    for table in (*JOBS, 'generation'):
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.drop_column('estimated_tokens')
