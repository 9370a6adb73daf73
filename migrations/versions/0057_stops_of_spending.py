"""stops of everything that spends"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0057'
down_revision = '0056'
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), 'postgresql')


def upgrade():
    op.create_table(
        'spending_stop',
        sa.Column('id', sa.Integer(), nullable=False),
        sa.Column('at', sa.DateTime(), nullable=False),
        sa.Column('by', sa.String(length=80), nullable=False),
        sa.Column('jobs', JSON, nullable=False),
        sa.Column('ended_at', sa.DateTime(), nullable=True),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_spending_stop')),
    )
    op.create_index(op.f('ix_spending_stop_ended_at'), 'spending_stop', ['ended_at'], unique=False)


def downgrade():
    op.drop_table('spending_stop')
