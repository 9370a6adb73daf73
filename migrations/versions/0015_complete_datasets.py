"""complete datasets"""

import sqlalchemy as sa
from alembic import op

revision = '0015'
down_revision = '0014'
branch_labels = None
depends_on = None


def upgrade():
    # Not in a batch: SQLite adds and drops the column without making the table anew.
    op.add_column('dataset', sa.Column('complete', sa.Boolean(), server_default=sa.true(), nullable=False))


def downgrade():
    op.execute(sa.text('DELETE FROM dataset WHERE NOT complete'))
    op.drop_column('dataset', 'complete')
