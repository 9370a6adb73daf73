"""rounds of a campaign's models with partners that they learn in the matches with"""

import sqlalchemy as sa
from alembic import op

revision = '0022'
down_revision = '0021'
branch_labels = None
depends_on = None


def upgrade():
    op.create_table('campaign_round',
    sa.Column('campaign_id', sa.Integer(), nullable=False),
    sa.Column('iteration', sa.Integer(), nullable=False),
    sa.Column('partner', sa.String(length=80), nullable=False),
    sa.Column('round_id', sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(['campaign_id'], ['campaign.id'], name=op.f('fk_campaign_round_campaign_id'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['round_id'], ['round.id'], name=op.f('fk_campaign_round_round_id')),
    sa.PrimaryKeyConstraint('campaign_id', 'iteration', 'partner', name=op.f('pk_campaign_round'))
    )
    with op.batch_alter_table('campaign_round', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_campaign_round_round_id'), ['round_id'], unique=False)


def downgrade():
    with op.batch_alter_table('campaign_round', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_campaign_round_round_id'))

    op.drop_table('campaign_round')
