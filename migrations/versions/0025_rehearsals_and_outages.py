"""times in which the server was away, and bots that are sent through studies"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = '0025'
down_revision = '0024'
branch_labels = None
depends_on = None


def upgrade():
    op.create_table('outage',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('began', sa.DateTime(), nullable=False),
    sa.Column('ended', sa.DateTime(), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_outage'))
    )
    with op.batch_alter_table('outage', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_outage_ended'), ['ended'], unique=False)

    op.create_table('rehearsal',
    sa.Column('study_version_id', sa.Integer(), nullable=False),
    sa.Column('wave_id', sa.Integer(), nullable=False),
    sa.Column('bots', sa.Integer(), nullable=False),
    sa.Column('seed', sa.Integer(), nullable=False),
    sa.Column('live', sa.Boolean(), nullable=False),
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('status', sa.String(length=10), nullable=False),
    sa.Column('queued', sa.Boolean(), nullable=False),
    sa.Column('requested_by_id', sa.Integer(), nullable=True),
    sa.Column('requested_by', sa.String(length=80), nullable=True),
    sa.Column('error', sa.Text(), nullable=True),
    sa.Column('created_at', sa.DateTime(), nullable=False),
    sa.Column('started_at', sa.DateTime(), nullable=True),
    sa.Column('ended_at', sa.DateTime(), nullable=True),
    sa.Column('enqueued_at', sa.DateTime(), nullable=True),
    sa.Column('lease_owner', sa.String(length=80), nullable=True),
    sa.Column('lease_until', sa.DateTime(), nullable=True),
    sa.Column('lease_count', sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(['requested_by_id'], ['user.id'], name=op.f('fk_rehearsal_requested_by_id'), ondelete='SET NULL'),
    sa.ForeignKeyConstraint(['study_version_id'], ['study_version.id'], name=op.f('fk_rehearsal_study_version_id')),
    sa.ForeignKeyConstraint(['wave_id'], ['wave.id'], name=op.f('fk_rehearsal_wave_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_rehearsal'))
    )
    with op.batch_alter_table('rehearsal', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_rehearsal_requested_by_id'), ['requested_by_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_rehearsal_study_version_id'), ['study_version_id'], unique=False)
        batch_op.create_index('ix_rehearsal_to_run', ['status', 'queued'], unique=False)
        batch_op.create_index(batch_op.f('ix_rehearsal_wave_id'), ['wave_id'], unique=False)

    op.create_table('rehearsed_bot',
    sa.Column('rehearsal_id', sa.Integer(), nullable=False),
    sa.Column('number', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('notes', JSON, nullable=False),
    sa.ForeignKeyConstraint(['rehearsal_id'], ['rehearsal.id'], name=op.f('fk_rehearsed_bot_rehearsal_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('rehearsal_id', 'number', name=op.f('pk_rehearsed_bot'))
    )


def downgrade():
    op.drop_table('rehearsed_bot')
    with op.batch_alter_table('rehearsal', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_rehearsal_wave_id'))
        batch_op.drop_index('ix_rehearsal_to_run')
        batch_op.drop_index(batch_op.f('ix_rehearsal_study_version_id'))
        batch_op.drop_index(batch_op.f('ix_rehearsal_requested_by_id'))

    op.drop_table('rehearsal')
    with op.batch_alter_table('outage', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_outage_ended'))

    op.drop_table('outage')
