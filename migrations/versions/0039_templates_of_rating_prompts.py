"""societies and assessments name the template of their prompts; those of before have the first one"""

import sqlalchemy as sa
from alembic import op

revision = '0039'
down_revision = '0038'
branch_labels = None
depends_on = None
TABLES = ('society', 'assessment')


def upgrade():
    for table in TABLES:
        op.add_column(table, sa.Column('template', sa.String(length=40), server_default='full-1', nullable=False))


def downgrade():
    for table in TABLES:
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.drop_column('template')
