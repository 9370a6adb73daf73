"""times of consent are kept as all other times are: in UTC, without a zone"""

import sqlalchemy as sa
from alembic import op

revision = '0038'
down_revision = '0037'
branch_labels = None
depends_on = None


def upgrade():
    if op.get_bind().dialect.name == 'postgresql':  # it wrote and reads them in the zone of its session
        op.alter_column('enrolment', 'agreed_at', type_=sa.DateTime())


def downgrade():
    if op.get_bind().dialect.name == 'postgresql':
        op.alter_column('enrolment', 'agreed_at', type_=sa.DateTime(timezone=True))
