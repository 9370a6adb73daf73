"""tags and notes of jobs, models and datasets"""

import sqlalchemy as sa
from alembic import op

revision = '0064'
down_revision = '0063'
branch_labels = None
depends_on = None


def upgrade():
    op.create_table(
        'tag', sa.Column('id', sa.Integer(), nullable=False), sa.Column('kind', sa.String(length=20), nullable=False),
        sa.Column('number', sa.Integer(), nullable=False), sa.Column('name', sa.String(length=40), nullable=False),
        sa.Column('by', sa.String(length=80), nullable=False), sa.Column('at', sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_tag')),
        sa.UniqueConstraint('kind', 'number', 'name', name=op.f('uq_tag_kind_number_name')),
    )
    op.create_index('ix_tag_kind_name', 'tag', ['kind', 'name'], unique=False)
    op.create_table(
        'note', sa.Column('id', sa.Integer(), nullable=False), sa.Column('kind', sa.String(length=20), nullable=False),
        sa.Column('number', sa.Integer(), nullable=False), sa.Column('text', sa.Text(), nullable=False),
        sa.Column('by', sa.String(length=80), nullable=False), sa.Column('at', sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_note')),
    )
    op.create_index('ix_note_kind_number', 'note', ['kind', 'number'], unique=False)


def downgrade():
    op.drop_table('note')
    op.drop_table('tag')
