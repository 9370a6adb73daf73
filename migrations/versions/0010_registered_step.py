"""the step whose weights a training job has registered"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = '0010'
down_revision = '0009'
branch_labels = None
depends_on = None


def upgrade():
    with op.batch_alter_table('training_job', schema=None) as batch_op:
        batch_op.add_column(sa.Column('registered_step', sa.Integer(), nullable=True))
    job = sa.table('training_job', sa.column('id'), sa.column('model_id'), sa.column('registered_step'))
    event = sa.table('training_event', sa.column('job_id'), sa.column('number'), sa.column('body', JSON))
    made = (
        sa.select(event.c.job_id, event.c.body)
        .join(job, job.c.id == event.c.job_id)
        .where(job.c.model_id.is_not(None), event.c.body['event'].as_string() == 'finished')
        .order_by(event.c.job_id, event.c.number)
    )
    connection = op.get_bind()
    for job_id, body in connection.execute(made).all():
        step = {'registered_step': body.get('step')}
        connection.execute(sa.update(job).where(job.c.id == job_id).values(step))


def downgrade():
    with op.batch_alter_table('training_job', schema=None) as batch_op:
        batch_op.drop_column('registered_step')
