"""forms that were taken once, and what recruiters' tables say of visits

Revision ID: 0030
Revises: 0029
"""

import sqlalchemy as sa
from alembic import op

revision = '0030'
down_revision = '0029'
branch_labels = None
depends_on = None


def upgrade():
    op.create_table(
        'form_request',
        sa.Column('digest', sa.String(length=64), nullable=False),
        sa.Column('at', sa.DateTime(), nullable=False),
        sa.Column('result', sa.JSON().with_variant(sa.dialects.postgresql.JSONB(), 'postgresql'), nullable=True),
        sa.PrimaryKeyConstraint('digest', name=op.f('pk_form_request')),
    )
    op.create_index(op.f('ix_form_request_at'), 'form_request', ['at'], unique=False)
    with op.batch_alter_table('submission', schema=None) as batch_op:
        batch_op.add_column(sa.Column('listed_at', sa.DateTime(), nullable=True))
        batch_op.add_column(sa.Column('handed_in', sa.String(length=20), nullable=True))


def downgrade():
    with op.batch_alter_table('submission', schema=None) as batch_op:
        batch_op.drop_column('handed_in')
        batch_op.drop_column('listed_at')
    op.drop_index(op.f('ix_form_request_at'), table_name='form_request')
    op.drop_table('form_request')
