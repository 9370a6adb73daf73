"""models keep what a test call has found out about their server; those of before know nothing until the next one"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0043'
down_revision = '0042'
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), 'postgresql')


def upgrade():
    op.add_column('language_model', sa.Column('findings', JSON, nullable=True))


def downgrade():
    with op.batch_alter_table('language_model', schema=None) as batch_op:
        batch_op.drop_column('findings')
