"""the time zone in which an experimenter reads moments"""

import sqlalchemy as sa
from alembic import op

revision = '0055'
down_revision = '0054'
branch_labels = None
depends_on = None


def upgrade():
    op.add_column('user', sa.Column('time_zone', sa.String(length=64), nullable=True))


def downgrade():
    with op.batch_alter_table('user') as batch_op:
        batch_op.drop_column('time_zone')
