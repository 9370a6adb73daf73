"""a place is taken with the consent"""

import sqlalchemy as sa
from alembic import op

revision = '0031'
down_revision = '0030'
branch_labels = None
depends_on = None

# Whoever went on from the first page had agreed to take part; an ending is led to by no such step.
AGREED = """
    UPDATE enrolment SET agreed_at = (
        SELECT min(study_event.at) FROM study_event
        WHERE study_event.enrolment_id = enrolment.id AND study_event.kind = 'step'
    )
    WHERE wave_id IS NOT NULL
"""
# With an arm somebody had agreed, whatever the log says.
ASSIGNED = "UPDATE enrolment SET agreed_at = assigned_at WHERE agreed_at IS NULL AND arm_id IS NOT NULL"


def upgrade():
    op.add_column('enrolment', sa.Column('agreed_at', sa.DateTime(timezone=True), nullable=True))
    op.execute(AGREED)
    op.execute(ASSIGNED)


def downgrade():
    with op.batch_alter_table('enrolment', schema=None) as batch_op:
        batch_op.drop_column('agreed_at')
