"""what trainings at a vendor cost is kept, so that it counts to budgets"""

import sqlalchemy as sa
from alembic import op

revision = '0046'
down_revision = '0045'
branch_labels = None
depends_on = None

BEFORE = """INSERT INTO training_charge (token, job_id, at, tokens, is_estimate)
    SELECT remote_token, id, COALESCE(ended_at, created_at), trained_tokens, false FROM training_job
    WHERE trained_tokens IS NOT NULL AND remote_token IS NOT NULL"""


def upgrade():
    op.create_table('training_charge',
    sa.Column('token', sa.String(length=40), nullable=False),
    sa.Column('job_id', sa.Integer(), nullable=False),
    sa.Column('at', sa.DateTime(), nullable=False),
    sa.Column('tokens', sa.BigInteger(), nullable=False),
    sa.Column('is_estimate', sa.Boolean(), nullable=False),
    sa.Column('price', sa.Float(), nullable=True),
    sa.ForeignKeyConstraint(['job_id'], ['training_job.id'], name=op.f('fk_training_charge_job_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('token', name=op.f('pk_training_charge'))
    )
    with op.batch_alter_table('training_charge', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_training_charge_at'), ['at'], unique=False)
        batch_op.create_index(batch_op.f('ix_training_charge_job_id'), ['job_id'], unique=False)
    op.execute(BEFORE)


def downgrade():
    op.drop_table('training_charge')
