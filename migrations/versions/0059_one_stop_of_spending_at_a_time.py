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
    op.add_column('spending_stop', sa.Column('in_force', sa.Boolean(), nullable=True))
    op.execute('UPDATE spending_stop SET in_force = true WHERE ended_at IS NULL')
    op.create_index('ix_spending_stop_in_force', 'spending_stop', ['in_force'], unique=True)


def downgrade():
    op.drop_index('ix_spending_stop_in_force', table_name='spending_stop')
    with op.batch_alter_table('spending_stop') as batch_op:
        batch_op.drop_column('in_force')
