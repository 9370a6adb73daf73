"""what games measure of finished matches"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), 'postgresql')

revision = '0068'
down_revision = '0067'
branch_labels = None
depends_on = None


def upgrade():
    op.add_column('match', sa.Column('measures', JSON, nullable=True))


def downgrade():
    with op.batch_alter_table('match') as batch_op:
        batch_op.drop_column('measures')
