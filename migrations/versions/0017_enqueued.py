"""enqueued_at in place of rung_at; leases of campaigns are counted"""

import sqlalchemy as sa
from alembic import op

revision = '0017'
down_revision = '0016'
branch_labels = None
depends_on = None

TABLES = ('match', 'round', 'training_job', 'campaign')


def upgrade():
    for table in TABLES:  # both databases rename a column in place, whatever is in the table
        op.execute(f'ALTER TABLE "{table}" RENAME COLUMN rung_at TO enqueued_at')
    op.add_column('campaign', sa.Column('lease_count', sa.Integer(), server_default='0', nullable=False))
    with op.batch_alter_table('campaign', schema=None) as batch_op:
        batch_op.alter_column('lease_count', server_default=None)


def downgrade():
    with op.batch_alter_table('campaign', schema=None) as batch_op:
        batch_op.drop_column('lease_count')
    for table in TABLES:
        op.execute(f'ALTER TABLE "{table}" RENAME COLUMN enqueued_at TO rung_at')
