"""recipes: runs of experiments of many jobs, and their steps"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0052'
down_revision = '0051'
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), 'postgresql')


def upgrade():
    op.create_table(
        'recipe_run',
        sa.Column('id', sa.Integer(), nullable=False),
        sa.Column('name', sa.String(length=40), nullable=False),
        sa.Column('recipe', sa.String(length=40), nullable=False),
        sa.Column('spec', JSON, nullable=False),
        sa.Column('steps', sa.Integer(), nullable=False),
        sa.Column('models', JSON, nullable=False),
        sa.Column('document', sa.Text(), nullable=False),
        sa.Column('text', sa.Text(), nullable=False),
        sa.Column('files', JSON, nullable=False),
        sa.Column('status', sa.String(length=10), nullable=False),
        sa.Column('queued', sa.Boolean(), nullable=False),
        sa.Column('requested_by_id', sa.Integer(), nullable=True),
        sa.Column('requested_by', sa.String(length=80), nullable=True),
        sa.Column('error', sa.Text(), nullable=True),
        sa.Column('budget_usd', sa.Float(), nullable=True),
        sa.Column('budget_tokens', sa.BigInteger(), nullable=True),
        sa.Column('created_at', sa.DateTime(), nullable=False),
        sa.Column('started_at', sa.DateTime(), nullable=True),
        sa.Column('ended_at', sa.DateTime(), nullable=True),
        sa.Column('enqueued_at', sa.DateTime(), nullable=True),
        sa.Column('lease_owner', sa.String(length=80), nullable=True),
        sa.Column('lease_until', sa.DateTime(), nullable=True),
        sa.Column('lease_count', sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ['requested_by_id'], ['user.id'], name=op.f('fk_recipe_run_requested_by_id'), ondelete='SET NULL'
        ),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_recipe_run')),
    )
    op.create_index('ix_recipe_run_to_run', 'recipe_run', ['status', 'queued'], unique=False)
    op.create_index(op.f('ix_recipe_run_requested_by_id'), 'recipe_run', ['requested_by_id'], unique=False)
    op.create_table(
        'recipe_step',
        sa.Column('run_id', sa.Integer(), nullable=False),
        sa.Column('key', sa.String(length=500), nullable=False),
        sa.Column('place', sa.Integer(), nullable=False),
        sa.Column('name', sa.String(length=40), nullable=False),
        sa.Column('values', JSON, nullable=False),
        sa.Column('spec', JSON, nullable=False),
        sa.Column('kind', sa.String(length=20), nullable=True),
        sa.Column('number', sa.Integer(), nullable=True),
        sa.Column('dataset_id', sa.Integer(), nullable=True),
        sa.Column('realignment_id', sa.Integer(), nullable=True),
        sa.Column('figures', JSON, nullable=True),
        sa.Column('begun_at', sa.DateTime(), nullable=False),
        sa.Column('ended_at', sa.DateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ['run_id'], ['recipe_run.id'], name=op.f('fk_recipe_step_run_id'), ondelete='CASCADE'
        ),
        sa.ForeignKeyConstraint(['dataset_id'], ['dataset.id'], name=op.f('fk_recipe_step_dataset_id')),
        sa.ForeignKeyConstraint(['realignment_id'], ['dataset.id'], name=op.f('fk_recipe_step_realignment_id')),
        sa.PrimaryKeyConstraint('run_id', 'key', name=op.f('pk_recipe_step')),
    )
    for column in ('dataset_id', 'realignment_id'):
        op.create_index(op.f(f'ix_recipe_step_{column}'), 'recipe_step', [column], unique=False)


def downgrade():
    op.drop_table('recipe_step')
    op.drop_table('recipe_run')
