"""removals that free the disk"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0062'
down_revision = '0061'
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), 'postgresql')
MARKED = (
    'alignment', 'assessment', 'benchmark_job', 'campaign', 'dataset', 'language_model', 'publication', 'recipe_run',
    'rehearsal', 'round', 'society', 'training_job',
)


def upgrade():
    op.create_table(
        'removal', sa.Column('id', sa.Integer(), nullable=False),
        sa.Column('kind', sa.String(length=20), nullable=False), sa.Column('number', sa.Integer(), nullable=False),
        sa.Column('name', sa.String(length=200), nullable=False), sa.Column('by', sa.String(length=80), nullable=False),
        sa.Column('at', sa.DateTime(), nullable=False), sa.Column('size', sa.BigInteger(), nullable=False),
        sa.Column('rows', sa.BigInteger(), nullable=False), sa.Column('files', JSON, nullable=False),
        sa.Column('dataset_rows', JSON, nullable=False), sa.Column('archive', sa.String(length=200), nullable=True),
        sa.Column('sha256', sa.String(length=64), nullable=False), sa.Column('has_files', sa.Boolean(), nullable=False),
        sa.Column('moved', sa.Boolean(), nullable=False), sa.Column('undo_until', sa.DateTime(), nullable=False),
        sa.Column('freed_at', sa.DateTime(), nullable=True), sa.Column('restored_at', sa.DateTime(), nullable=True),
        sa.Column('restored_by', sa.String(length=80), nullable=True), sa.Column('in_force', sa.Boolean(), nullable=True),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_removal')),
        sa.UniqueConstraint('kind', 'number', 'in_force', name=op.f('uq_removal_kind_number_in_force')),
    )
    for table in MARKED:
        op.add_column(table, sa.Column('removed_at', sa.DateTime(), nullable=True))
    op.add_column('generation', sa.Column('removal_id', sa.Integer(), nullable=True))
    op.create_index(
        'ix_generation_removal', 'generation', ['removal_id'], unique=False,
        sqlite_where=sa.text('removal_id IS NOT NULL'), postgresql_where=sa.text('removal_id IS NOT NULL'),
    )


def downgrade():
    op.drop_index('ix_generation_removal', table_name='generation')
    op.drop_column('generation', 'removal_id')
    for table in MARKED:
        op.drop_column(table, 'removed_at')
    op.drop_table('removal')
