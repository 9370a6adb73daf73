"""system prompts and personas with versions, and with which of them a seat and a round were played"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), 'postgresql')

revision = '0065'
down_revision = '0064'
branch_labels = None
depends_on = None


def upgrade():
    op.create_table(
        'prompt', sa.Column('id', sa.Integer(), nullable=False),
        sa.Column('name', sa.String(length=40), nullable=False), sa.Column('version', sa.Integer(), nullable=False),
        sa.Column('text', sa.Text(), nullable=False), sa.Column('sha256', sa.String(length=64), nullable=False),
        sa.Column('created_at', sa.DateTime(), nullable=False),
        sa.Column('created_by', sa.String(length=80), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_prompt')),
        sa.UniqueConstraint('name', 'version', name=op.f('uq_prompt_name_version')),
    )
    op.add_column('seat', sa.Column('prompt', sa.String(length=60), nullable=True))
    op.add_column('round', sa.Column('prompts', JSON, nullable=True))


def downgrade():
    op.drop_column('round', 'prompts')
    op.drop_column('seat', 'prompt')
    op.drop_table('prompt')
