"""sums of calls by day, model and purpose, which upkeep makes"""

import sqlalchemy as sa
from alembic import op

revision = '0071'
down_revision = '0070'
branch_labels = None
depends_on = None

TOKENS = (
    'prompt_tokens', 'completion_tokens', 'estimated_tokens', 'unpriced_estimate', 'unpriced_prompt',
    'unpriced_completion', 'unpriced_cached', 'unpriced_cache_write', 'unpriced_reasoning',
)


def upgrade():
    op.create_table(
        'call_sum', sa.Column('id', sa.Integer(), nullable=False),
        sa.Column('last_call', sa.Integer(), nullable=False), sa.Column('day', sa.Date(), nullable=False),
        sa.Column('model_id', sa.Integer(), nullable=True), sa.Column('kind', sa.String(length=20), nullable=False),
        sa.Column('number', sa.Integer(), nullable=True), sa.Column('calls', sa.Integer(), nullable=False),
        sa.Column('failed', sa.Integer(), nullable=False), sa.Column('costless', sa.Integer(), nullable=False),
        sa.Column('cost', sa.Float(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in TOKENS),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_call_sum')),
    )
    for name in ('last_call', 'day', 'model_id'):
        op.create_index(op.f(f'ix_call_sum_{name}'), 'call_sum', [name], unique=False)


def downgrade():
    op.drop_table('call_sum')
