"""test calls of language models"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = '0003'
down_revision = '0002'
branch_labels = None
depends_on = None


def upgrade():
    with op.batch_alter_table('language_model', schema=None) as batch_op:
        batch_op.add_column(sa.Column('test_asked_at', sa.DateTime(), nullable=True))
        batch_op.add_column(sa.Column('tested_at', sa.DateTime(), nullable=True))
        batch_op.add_column(sa.Column('test_result', JSON, nullable=True))


def downgrade():
    with op.batch_alter_table('language_model', schema=None) as batch_op:
        batch_op.drop_column('test_result')
        batch_op.drop_column('tested_at')
        batch_op.drop_column('test_asked_at')
