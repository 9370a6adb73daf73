"""societies: their agents, their interactions, and the calls of models in these"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = '0026'
down_revision = '0025'
branch_labels = None
depends_on = None

ANSWERED = sa.text('interaction_id IS NOT NULL AND error IS NULL')


def upgrade():
    op.create_table('society',
    sa.Column('name', sa.String(length=80), nullable=False),
    sa.Column('config', JSON, nullable=False),
    sa.Column('imported', sa.Boolean(), nullable=False),
    sa.Column('agents', JSON, nullable=False),
    sa.Column('observers', JSON, nullable=False),
    sa.Column('embedder', sa.String(length=120), nullable=False),
    sa.Column('question_source', sa.String(length=300), nullable=False),
    sa.Column('questions', JSON, nullable=False),
    sa.Column('prior_source', sa.String(length=300), nullable=False),
    sa.Column('priors', JSON, nullable=False),
    sa.Column('iteration', sa.Integer(), nullable=False),
    sa.Column('interactions', sa.Integer(), nullable=False),
    sa.Column('failed', sa.Integer(), nullable=False),
    sa.Column('ratings', sa.Integer(), nullable=False),
    sa.Column('unread_ratings', sa.Integer(), nullable=False),
    sa.Column('calls', sa.Integer(), nullable=False),
    sa.Column('failed_calls', sa.Integer(), nullable=False),
    sa.Column('prompt_tokens', sa.BigInteger(), nullable=False),
    sa.Column('completion_tokens', sa.BigInteger(), nullable=False),
    sa.Column('cost', sa.Float(), nullable=False),
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('status', sa.String(length=10), nullable=False),
    sa.Column('queued', sa.Boolean(), nullable=False),
    sa.Column('requested_by_id', sa.Integer(), nullable=True),
    sa.Column('requested_by', sa.String(length=80), nullable=True),
    sa.Column('error', sa.Text(), nullable=True),
    sa.Column('created_at', sa.DateTime(), nullable=False),
    sa.Column('started_at', sa.DateTime(), nullable=True),
    sa.Column('ended_at', sa.DateTime(), nullable=True),
    sa.Column('enqueued_at', sa.DateTime(), nullable=True),
    sa.Column('lease_owner', sa.String(length=80), nullable=True),
    sa.Column('lease_until', sa.DateTime(), nullable=True),
    sa.Column('lease_count', sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(['requested_by_id'], ['user.id'], name=op.f('fk_society_requested_by_id'), ondelete='SET NULL'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_society'))
    )
    with op.batch_alter_table('society', schema=None) as batch_op:
        batch_op.create_index('ix_society_to_run', ['status', 'queued'], unique=False)
        batch_op.create_index(batch_op.f('ix_society_requested_by_id'), ['requested_by_id'], unique=False)

    op.create_table('society_agent',
    sa.Column('society_id', sa.Integer(), nullable=False),
    sa.Column('agent', sa.Integer(), nullable=False),
    sa.Column('label', sa.String(length=10), nullable=False),
    sa.Column('model', sa.String(length=80), nullable=False),
    sa.Column('model_id', sa.Integer(), nullable=True),
    sa.Column('first_memories', JSON, nullable=False),
    sa.ForeignKeyConstraint(['model_id'], ['language_model.id'], name=op.f('fk_society_agent_model_id')),
    sa.ForeignKeyConstraint(['society_id'], ['society.id'], name=op.f('fk_society_agent_society_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('society_id', 'agent', name=op.f('pk_society_agent'))
    )
    with op.batch_alter_table('society_agent', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_society_agent_model_id'), ['model_id'], unique=False)

    op.create_table('society_interaction',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('society_id', sa.Integer(), nullable=False),
    sa.Column('iteration', sa.Integer(), nullable=False),
    sa.Column('agent', sa.Integer(), nullable=False),
    sa.Column('status', sa.String(length=10), nullable=False),
    sa.Column('question', sa.Text(), nullable=False),
    sa.Column('recall', JSON, nullable=True),
    sa.Column('draft', sa.Text(), nullable=True),
    sa.Column('feedback', JSON, nullable=True),
    sa.Column('revision', sa.Text(), nullable=True),
    sa.Column('alignment_before', sa.Float(), nullable=True),
    sa.Column('engagement_before', sa.Float(), nullable=True),
    sa.Column('alignment_after', sa.Float(), nullable=True),
    sa.Column('engagement_after', sa.Float(), nullable=True),
    sa.Column('observations', JSON, nullable=True),
    sa.Column('error', sa.Text(), nullable=True),
    sa.Column('ended_at', sa.DateTime(), nullable=True),
    sa.ForeignKeyConstraint(['society_id'], ['society.id'], name=op.f('fk_society_interaction_society_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_society_interaction')),
    sa.UniqueConstraint('society_id', 'iteration', 'agent', name=op.f('uq_society_interaction_society_id_iteration_agent'))
    )
    with op.batch_alter_table('society_interaction', schema=None) as batch_op:
        batch_op.create_index('ix_society_interaction_status', ['society_id', 'status'], unique=False)

    with op.batch_alter_table('generation', schema=None) as batch_op:
        batch_op.add_column(sa.Column('interaction_id', sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column('call', sa.String(length=40), nullable=True))
        batch_op.create_foreign_key(
            batch_op.f('fk_generation_interaction_id'), 'society_interaction', ['interaction_id'], ['id'],
            ondelete='CASCADE',
        )
    op.create_index(
        'ix_generation_call', 'generation', ['interaction_id', 'call'], unique=True, sqlite_where=ANSWERED,
        postgresql_where=ANSWERED,
    )


def downgrade():
    op.execute('DELETE FROM generation WHERE interaction_id IS NOT NULL')
    op.drop_index('ix_generation_call', table_name='generation')
    with op.batch_alter_table('generation', schema=None) as batch_op:
        batch_op.drop_constraint(batch_op.f('fk_generation_interaction_id'), type_='foreignkey')
        batch_op.drop_column('call')
        batch_op.drop_column('interaction_id')

    op.drop_table('society_interaction')
    op.drop_table('society_agent')
    op.drop_table('society')
