"""further evaluations of a campaign's models, and deals that were never named in the talk"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = '0013'
down_revision = '0012'
branch_labels = None
depends_on = None


def upgrade():
    op.create_table('campaign_evaluation',
    sa.Column('campaign_id', sa.Integer(), nullable=False),
    sa.Column('iteration', sa.Integer(), nullable=False),
    sa.Column('label', sa.String(length=100), nullable=False),
    sa.Column('round_id', sa.Integer(), nullable=False),
    sa.Column('figures', JSON, nullable=True),
    sa.ForeignKeyConstraint(['campaign_id'], ['campaign.id'], name=op.f('fk_campaign_evaluation_campaign_id'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['round_id'], ['round.id'], name=op.f('fk_campaign_evaluation_round_id')),
    sa.PrimaryKeyConstraint('campaign_id', 'iteration', 'label', name=op.f('pk_campaign_evaluation'))
    )
    with op.batch_alter_table('campaign_evaluation', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_campaign_evaluation_round_id'), ['round_id'], unique=False)

    with op.batch_alter_table('match', schema=None) as batch_op:
        batch_op.add_column(sa.Column('unspoken', sa.Boolean(), nullable=True))


def downgrade():
    with op.batch_alter_table('match', schema=None) as batch_op:
        batch_op.drop_column('unspoken')

    with op.batch_alter_table('campaign_evaluation', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_campaign_evaluation_round_id'))

    op.drop_table('campaign_evaluation')
