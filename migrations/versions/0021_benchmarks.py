"""benchmarks: jobs, the results of their tasks, and the chats that models behind an API were asked"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = '0021'
down_revision = '0020'
branch_labels = None
depends_on = None


def upgrade():
    op.create_table('benchmark_job',
    sa.Column('model_id', sa.Integer(), nullable=False),
    sa.Column('tasks', JSON, nullable=False),
    sa.Column('item_limit', sa.Integer(), nullable=True),
    sa.Column('shots', sa.Integer(), nullable=True),
    sa.Column('batch', sa.Integer(), nullable=False),
    sa.Column('device', sa.String(length=120), nullable=True),
    sa.Column('step', sa.String(length=200), nullable=True),
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('status', sa.String(length=10), nullable=False),
    sa.Column('queued', sa.Boolean(), nullable=False),
    sa.Column('error', sa.Text(), nullable=True),
    sa.Column('created_at', sa.DateTime(), nullable=False),
    sa.Column('started_at', sa.DateTime(), nullable=True),
    sa.Column('ended_at', sa.DateTime(), nullable=True),
    sa.Column('enqueued_at', sa.DateTime(), nullable=True),
    sa.Column('requested_by_id', sa.Integer(), nullable=True),
    sa.Column('requested_by', sa.String(length=80), nullable=True),
    sa.Column('lease_owner', sa.String(length=80), nullable=True),
    sa.Column('lease_until', sa.DateTime(), nullable=True),
    sa.Column('lease_count', sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(['model_id'], ['language_model.id'], name=op.f('fk_benchmark_job_model_id')),
    sa.ForeignKeyConstraint(['requested_by_id'], ['user.id'], name=op.f('fk_benchmark_job_requested_by_id'), ondelete='SET NULL'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_benchmark_job'))
    )
    with op.batch_alter_table('benchmark_job', schema=None) as batch_op:
        batch_op.create_index('ix_benchmark_job_to_run', ['status', 'queued'], unique=False)
        batch_op.create_index(batch_op.f('ix_benchmark_job_model_id'), ['model_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_benchmark_job_requested_by_id'), ['requested_by_id'], unique=False)

    op.create_table('benchmark_result',
    sa.Column('job_id', sa.Integer(), nullable=False),
    sa.Column('task', sa.String(length=120), nullable=False),
    sa.Column('metric', sa.String(length=80), nullable=False),
    sa.Column('value', sa.Float(), nullable=False),
    sa.Column('stderr', sa.Float(), nullable=True),
    sa.Column('n', sa.Integer(), nullable=False),
    sa.Column('seconds', sa.Float(), nullable=False),
    sa.Column('source', sa.String(length=80), nullable=False),
    sa.Column('version', sa.String(length=80), nullable=False),
    sa.Column('scores', JSON, nullable=False),
    sa.ForeignKeyConstraint(['job_id'], ['benchmark_job.id'], name=op.f('fk_benchmark_result_job_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('job_id', 'task', name=op.f('pk_benchmark_result'))
    )
    op.create_table('benchmark_answer',
    sa.Column('job_id', sa.Integer(), nullable=False),
    sa.Column('key', sa.String(length=64), nullable=False),
    sa.Column('request_id', sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(['job_id'], ['benchmark_job.id'], name=op.f('fk_benchmark_answer_job_id'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['request_id'], ['model_request.id'], name=op.f('fk_benchmark_answer_request_id')),
    sa.PrimaryKeyConstraint('job_id', 'key', name=op.f('pk_benchmark_answer'))
    )
    with op.batch_alter_table('benchmark_answer', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_benchmark_answer_request_id'), ['request_id'], unique=False)


def downgrade():
    op.drop_table('benchmark_answer')
    op.drop_table('benchmark_result')
    op.drop_table('benchmark_job')
