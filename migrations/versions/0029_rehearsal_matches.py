"""matches of bots and previews are no longer called live"""

import sqlalchemy as sa
from alembic import op

revision = '0029'
down_revision = '0028'
branch_labels = None
depends_on = None

# The waves of rehearsal jobs, and those of `flask study bots`, which have no job: both are of a copied study and have
# a link of their own for bots.
OF_BOTS = """
    UPDATE wave SET rehearsal = true
    WHERE id IN (SELECT wave_id FROM rehearsal)
       OR (name LIKE 'bots-%' AND study_id IN (SELECT id FROM study WHERE name LIKE '%-rehearsal'))
"""
# A preview is an enrolment in no wave.
NOT_OF_PEOPLE = """
    SELECT seat.match_id FROM seat
    JOIN enrolment ON enrolment.id = seat.enrolment_id
    LEFT JOIN wave ON wave.id = enrolment.wave_id
    WHERE enrolment.wave_id IS NULL OR wave.rehearsal
"""


def upgrade():
    op.add_column('wave', sa.Column('rehearsal', sa.Boolean(), server_default=sa.false(), nullable=False))
    op.execute(OF_BOTS)
    op.execute(f"""UPDATE "match" SET source = 'rehearsal' WHERE id IN ({NOT_OF_PEOPLE})""")


def downgrade():
    op.execute("""UPDATE "match" SET source = 'live' WHERE source = 'rehearsal'""")
    with op.batch_alter_table('wave', schema=None) as batch_op:
        batch_op.drop_column('rehearsal')
