"""rounds in which models read the messages of another round"""

import sqlalchemy as sa
from alembic import op

revision = '0069'
down_revision = '0068'
branch_labels = None
depends_on = None


def upgrade():
    op.add_column('round', sa.Column('talk_of', sa.Integer(), nullable=True))


def downgrade():
    with op.batch_alter_table('round') as batch_op:
        batch_op.drop_column('talk_of')
