"""the order in which matches came into the database, for who reads on behind the last one"""

import sqlalchemy as sa
from alembic import op

revision = '0051'
down_revision = '0050'
branch_labels = None
depends_on = None


def upgrade():
    op.add_column('match', sa.Column('inserted_in', sa.BigInteger(), nullable=False, server_default='0'))
    op.create_index('ix_match_inserted_in_id', 'match', ['inserted_in', 'id'], unique=False)


def downgrade():
    op.drop_index('ix_match_inserted_in_id', table_name='match')
    with op.batch_alter_table('match', schema=None) as batch_op:
        batch_op.drop_column('inserted_in')
