"""what was deleted of people, and the datasets that nothing may be trained on any more"""

import sqlalchemy as sa
from alembic import op

revision = '0024'
down_revision = '0023'
branch_labels = None
depends_on = None


def upgrade():
    op.add_column('dataset', sa.Column('unusable_at', sa.DateTime(), nullable=True))
    op.add_column('match', sa.Column('erased_at', sa.DateTime(), nullable=True))
    op.add_column('participant', sa.Column('erased_at', sa.DateTime(), nullable=True))


def downgrade():
    with op.batch_alter_table('participant', schema=None) as batch_op:
        batch_op.drop_column('erased_at')

    with op.batch_alter_table('match', schema=None) as batch_op:
        batch_op.drop_column('erased_at')

    with op.batch_alter_table('dataset', schema=None) as batch_op:
        batch_op.drop_column('unusable_at')
