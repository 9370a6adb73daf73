"""one stop of spending in force at a time"""

import sqlalchemy as sa
from alembic import op

revision = '0059'
down_revision = '0058'
branch_labels = None
depends_on = None


def upgrade():
    # Of several that two people began at once the first stays.
    op.execute(
        'UPDATE spending_stop SET ended_at = at WHERE ended_at IS NULL'
        ' AND id > (SELECT min(id) FROM spending_stop WHERE ended_at IS NULL)'
    )
    in_force = sa.text('ended_at IS NULL')
    op.create_index(
        'ix_spending_stop_in_force', 'spending_stop', [sa.text('(ended_at IS NULL)')], unique=True,
        sqlite_where=in_force, postgresql_where=in_force,
    )


def downgrade():
    op.drop_index('ix_spending_stop_in_force', table_name='spending_stop')
