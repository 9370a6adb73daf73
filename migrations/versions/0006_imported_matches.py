"""imported matches"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = '0006'
down_revision = '0005'
branch_labels = None
depends_on = None


def upgrade():
    op.create_table('match_source',
    sa.Column('match_id', sa.String(length=22), nullable=False),
    sa.Column('facts', JSON, nullable=False),
    sa.ForeignKeyConstraint(['match_id'], ['match.id'], name=op.f('fk_match_source_match_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('match_id', name=op.f('pk_match_source'))
    )


def downgrade():
    op.drop_table('match_source')
