"""notices to experimenters"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0060'
down_revision = '0059'
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), 'postgresql')


def upgrade():
    op.create_table(
        'notice', sa.Column('id', sa.Integer(), nullable=False), sa.Column('cause', sa.String(length=200), nullable=False),
        sa.Column('recipient', sa.String(length=90), nullable=False), sa.Column('user_id', sa.Integer(), nullable=True),
        sa.Column('channel', sa.String(length=10), nullable=False), sa.Column('kind', sa.String(length=10), nullable=False),
        sa.Column('text', sa.Text(), nullable=False), sa.Column('path', sa.String(length=200), nullable=False),
        sa.Column('created_at', sa.DateTime(), nullable=False), sa.Column('status', sa.String(length=10), nullable=False),
        sa.Column('batch', sa.String(length=32), nullable=True), sa.Column('tries', sa.Integer(), nullable=False),
        sa.Column('due_at', sa.DateTime(), nullable=False), sa.Column('sent_at', sa.DateTime(), nullable=True),
        sa.Column('error', sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(['user_id'], ['user.id'], name=op.f('fk_notice_user_id'), ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_notice')),
        sa.UniqueConstraint('cause', 'recipient', 'channel', name=op.f('uq_notice_cause_recipient_channel')),
    )
    for column in ('user_id', 'status', 'batch'):
        op.create_index(op.f(f'ix_notice_{column}'), 'notice', [column], unique=False)
    op.add_column('user', sa.Column('notice_mail', sa.String(length=254), nullable=True))
    op.add_column('user', sa.Column('notice_kinds', JSON, nullable=True))
    op.add_column('user', sa.Column('notices_since', sa.DateTime(), nullable=True))


def downgrade():
    with op.batch_alter_table('user') as batch_op:
        for column in ('notices_since', 'notice_kinds', 'notice_mail'):
            batch_op.drop_column(column)
    op.drop_table('notice')
