"""local models can be served by an engine beside the workers, and be played through it"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0048'
down_revision = '0047'
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), 'postgresql')


def upgrade():
    op.add_column('language_model', sa.Column('served', JSON, nullable=True))
    op.add_column(
        'language_model', sa.Column('play_with', sa.String(length=10), nullable=False, server_default='worker')
    )


def downgrade():
    with op.batch_alter_table('language_model', schema=None) as batch_op:
        batch_op.drop_column('play_with')
        batch_op.drop_column('served')
