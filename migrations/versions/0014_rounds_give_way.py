"""rounds that wait for a model give way to others"""

import sqlalchemy as sa
from alembic import op

revision = '0014'
down_revision = '0013'
branch_labels = None
depends_on = None


def upgrade():
    op.add_column('round', sa.Column('away_model_id', sa.Integer(), nullable=True))
    op.add_column('round', sa.Column('away_since', sa.DateTime(), nullable=True))
    op.add_column('round', sa.Column('retry_at', sa.DateTime(), nullable=True))


def downgrade():
    with op.batch_alter_table('round', schema=None) as batch_op:
        batch_op.drop_column('retry_at')
        batch_op.drop_column('away_since')
        batch_op.drop_column('away_model_id')
