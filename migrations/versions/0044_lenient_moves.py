"""matches and rounds count the moves that were read leniently; in those of before there are none"""

import sqlalchemy as sa
from alembic import op

revision = '0044'
down_revision = '0043'
branch_labels = None
depends_on = None

TABLES = ('match', 'round')


def upgrade():
    for table in TABLES:
        op.add_column(table, sa.Column('lenient_moves', sa.Integer(), nullable=False, server_default='0'))


def downgrade():
    for table in TABLES:
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.drop_column('lenient_moves')
