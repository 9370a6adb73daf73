"""calls keep their cost and the tokens written to a cache, and jobs count the calls whose cost is unknown"""

import sqlalchemy as sa
from alembic import op

revision = '0042'
down_revision = '0041'
branch_labels = None
depends_on = None

CALLS = (('cache_write_tokens', sa.Integer()), ('cost', sa.Float()), ('cost_source', sa.String(length=10)))
JOBS = ('assessment', 'round', 'society')


def upgrade():
    for name, kind in CALLS:
        op.add_column('generation', sa.Column(name, kind, nullable=True))
    for table in JOBS:  # NULL for jobs of before, whose calls had no cost of their own
        op.add_column(table, sa.Column('unpriced_calls', sa.Integer(), nullable=True))


def downgrade():
    for table in JOBS:
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.drop_column('unpriced_calls')
    with op.batch_alter_table('generation', schema=None) as batch_op:
        for name, _kind in reversed(CALLS):
            batch_op.drop_column(name)
