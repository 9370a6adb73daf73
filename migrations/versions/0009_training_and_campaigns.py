"""training jobs and campaigns"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = '0009'
down_revision = '0008'
branch_labels = None
depends_on = None


def upgrade():
    op.create_table('campaign',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('name', sa.String(length=80), nullable=False),
    sa.Column('game', sa.String(length=40), nullable=False),
    sa.Column('base_id', sa.Integer(), nullable=False),
    sa.Column('spec', JSON, nullable=False),
    sa.Column('material', JSON, nullable=False),
    sa.Column('iterations', sa.Integer(), nullable=False),
    sa.Column('status', sa.String(length=10), nullable=False),
    sa.Column('queued', sa.Boolean(), nullable=False),
    sa.Column('error', sa.Text(), nullable=True),
    sa.Column('lease_owner', sa.String(length=80), nullable=True),
    sa.Column('lease_until', sa.DateTime(), nullable=True),
    sa.Column('rung_at', sa.DateTime(), nullable=True),
    sa.Column('created_at', sa.DateTime(), nullable=False),
    sa.Column('started_at', sa.DateTime(), nullable=True),
    sa.Column('ended_at', sa.DateTime(), nullable=True),
    sa.ForeignKeyConstraint(['base_id'], ['language_model.id'], name=op.f('fk_campaign_base_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_campaign'))
    )
    with op.batch_alter_table('campaign', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_campaign_base_id'), ['base_id'], unique=False)
        batch_op.create_index('ix_campaign_to_run', ['status', 'queued'], unique=False)

    op.create_table('training_job',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('name', sa.String(length=80), nullable=False),
    sa.Column('method', sa.String(length=20), nullable=False),
    sa.Column('backend', sa.String(length=20), nullable=False),
    sa.Column('dataset_id', sa.Integer(), nullable=False),
    sa.Column('base_id', sa.Integer(), nullable=True),
    sa.Column('config', JSON, nullable=False),
    sa.Column('status', sa.String(length=10), nullable=False),
    sa.Column('queued', sa.Boolean(), nullable=False),
    sa.Column('lease_owner', sa.String(length=80), nullable=True),
    sa.Column('lease_until', sa.DateTime(), nullable=True),
    sa.Column('lease_count', sa.Integer(), nullable=False),
    sa.Column('rung_at', sa.DateTime(), nullable=True),
    sa.Column('device', sa.String(length=120), nullable=True),
    sa.Column('step', sa.Integer(), nullable=True),
    sa.Column('steps', sa.Integer(), nullable=True),
    sa.Column('loss', sa.Double(), nullable=True),
    sa.Column('log', sa.Text(), nullable=False),
    sa.Column('error', sa.Text(), nullable=True),
    sa.Column('model_id', sa.Integer(), nullable=True),
    sa.Column('created_at', sa.DateTime(), nullable=False),
    sa.Column('started_at', sa.DateTime(), nullable=True),
    sa.Column('ended_at', sa.DateTime(), nullable=True),
    sa.ForeignKeyConstraint(['base_id'], ['language_model.id'], name=op.f('fk_training_job_base_id')),
    sa.ForeignKeyConstraint(['dataset_id'], ['dataset.id'], name=op.f('fk_training_job_dataset_id')),
    sa.ForeignKeyConstraint(['model_id'], ['language_model.id'], name=op.f('fk_training_job_model_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_training_job')),
    sa.UniqueConstraint('model_id', name=op.f('uq_training_job_model_id'))
    )
    with op.batch_alter_table('training_job', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_training_job_base_id'), ['base_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_training_job_dataset_id'), ['dataset_id'], unique=False)
        batch_op.create_index('ix_training_job_to_run', ['status', 'queued'], unique=False)

    op.create_table('campaign_iteration',
    sa.Column('campaign_id', sa.Integer(), nullable=False),
    sa.Column('number', sa.Integer(), nullable=False),
    sa.Column('round_id', sa.Integer(), nullable=True),
    sa.Column('dataset_id', sa.Integer(), nullable=True),
    sa.Column('job_id', sa.Integer(), nullable=True),
    sa.Column('model_id', sa.Integer(), nullable=True),
    sa.Column('evaluation_id', sa.Integer(), nullable=True),
    sa.Column('figures', JSON, nullable=True),
    sa.ForeignKeyConstraint(['campaign_id'], ['campaign.id'], name=op.f('fk_campaign_iteration_campaign_id'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['dataset_id'], ['dataset.id'], name=op.f('fk_campaign_iteration_dataset_id')),
    sa.ForeignKeyConstraint(['evaluation_id'], ['round.id'], name=op.f('fk_campaign_iteration_evaluation_id')),
    sa.ForeignKeyConstraint(['job_id'], ['training_job.id'], name=op.f('fk_campaign_iteration_job_id')),
    sa.ForeignKeyConstraint(['model_id'], ['language_model.id'], name=op.f('fk_campaign_iteration_model_id')),
    sa.ForeignKeyConstraint(['round_id'], ['round.id'], name=op.f('fk_campaign_iteration_round_id')),
    sa.PrimaryKeyConstraint('campaign_id', 'number', name=op.f('pk_campaign_iteration'))
    )
    with op.batch_alter_table('campaign_iteration', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_campaign_iteration_dataset_id'), ['dataset_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_campaign_iteration_evaluation_id'), ['evaluation_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_campaign_iteration_job_id'), ['job_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_campaign_iteration_model_id'), ['model_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_campaign_iteration_round_id'), ['round_id'], unique=False)

    op.create_table('training_event',
    sa.Column('job_id', sa.Integer(), nullable=False),
    sa.Column('number', sa.Integer(), nullable=False),
    sa.Column('body', JSON, nullable=False),
    sa.ForeignKeyConstraint(['job_id'], ['training_job.id'], name=op.f('fk_training_event_job_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('job_id', 'number', name=op.f('pk_training_event'))
    )

    with op.batch_alter_table('generation', schema=None) as batch_op:
        batch_op.add_column(sa.Column('token_ids', JSON, nullable=True))


def downgrade():
    with op.batch_alter_table('generation', schema=None) as batch_op:
        batch_op.drop_column('token_ids')

    op.drop_table('training_event')
    with op.batch_alter_table('campaign_iteration', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_campaign_iteration_round_id'))
        batch_op.drop_index(batch_op.f('ix_campaign_iteration_model_id'))
        batch_op.drop_index(batch_op.f('ix_campaign_iteration_job_id'))
        batch_op.drop_index(batch_op.f('ix_campaign_iteration_evaluation_id'))
        batch_op.drop_index(batch_op.f('ix_campaign_iteration_dataset_id'))

    op.drop_table('campaign_iteration')
    with op.batch_alter_table('training_job', schema=None) as batch_op:
        batch_op.drop_index('ix_training_job_to_run')
        batch_op.drop_index(batch_op.f('ix_training_job_dataset_id'))
        batch_op.drop_index(batch_op.f('ix_training_job_base_id'))

    op.drop_table('training_job')
    with op.batch_alter_table('campaign', schema=None) as batch_op:
        batch_op.drop_index('ix_campaign_to_run')
        batch_op.drop_index(batch_op.f('ix_campaign_base_id'))

    op.drop_table('campaign')
