"""waves of studies, what is paid in them, and what a match and a move of a study keep"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = '0023'
down_revision = '0022'
branch_labels = None
depends_on = None


def upgrade():
    op.create_table('wave',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('study_id', sa.Integer(), nullable=False),
    sa.Column('study_version_id', sa.Integer(), nullable=False),
    sa.Column('name', sa.String(length=40), nullable=False),
    sa.Column('settings', JSON, nullable=False),
    sa.Column('status', sa.String(length=10), nullable=False),
    sa.Column('created_at', sa.DateTime(), nullable=False),
    sa.Column('closed_at', sa.DateTime(), nullable=True),
    sa.Column('frozen_at', sa.DateTime(), nullable=True),
    sa.ForeignKeyConstraint(['study_id'], ['study.id'], name=op.f('fk_wave_study_id')),
    sa.ForeignKeyConstraint(['study_version_id'], ['study_version.id'], name=op.f('fk_wave_study_version_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_wave')),
    sa.UniqueConstraint('study_id', 'name', name=op.f('uq_wave_study_id_name'))
    )
    with op.batch_alter_table('wave', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_wave_study_version_id'), ['study_version_id'], unique=False)

    op.create_table('payment_batch',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('wave_id', sa.Integer(), nullable=False),
    sa.Column('number', sa.Integer(), nullable=False),
    sa.Column('format', sa.String(length=12), nullable=False),
    sa.Column('status', sa.String(length=10), nullable=False),
    sa.Column('created_at', sa.DateTime(), nullable=False),
    sa.Column('created_by', sa.String(length=80), nullable=True),
    sa.Column('uploaded_at', sa.DateTime(), nullable=True),
    sa.Column('confirmed_at', sa.DateTime(), nullable=True),
    sa.ForeignKeyConstraint(['wave_id'], ['wave.id'], name=op.f('fk_payment_batch_wave_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_payment_batch')),
    sa.UniqueConstraint('wave_id', 'number', name=op.f('uq_payment_batch_wave_id_number'))
    )
    op.create_table('payment',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('enrolment_id', sa.Integer(), nullable=False),
    sa.Column('batch_id', sa.Integer(), nullable=True),
    sa.Column('key', sa.String(length=20), nullable=False),
    sa.Column('amount', sa.String(length=24), nullable=False),
    sa.Column('currency', sa.String(length=3), nullable=False),
    sa.Column('reason', sa.String(length=200), nullable=True),
    sa.Column('created_at', sa.DateTime(), nullable=False),
    sa.Column('created_by', sa.String(length=80), nullable=True),
    sa.ForeignKeyConstraint(['batch_id'], ['payment_batch.id'], name=op.f('fk_payment_batch_id')),
    sa.ForeignKeyConstraint(['enrolment_id'], ['enrolment.id'], name=op.f('fk_payment_enrolment_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_payment')),
    sa.UniqueConstraint('enrolment_id', 'key', name=op.f('uq_payment_enrolment_id_key'))
    )
    with op.batch_alter_table('payment', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_payment_batch_id'), ['batch_id'], unique=False)

    op.create_table('study_event',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('wave_id', sa.Integer(), nullable=False),
    sa.Column('enrolment_id', sa.Integer(), nullable=True),
    sa.Column('kind', sa.String(length=30), nullable=False),
    sa.Column('body', JSON, nullable=False),
    sa.Column('at', sa.DateTime(), nullable=False),
    sa.ForeignKeyConstraint(['enrolment_id'], ['enrolment.id'], name=op.f('fk_study_event_enrolment_id')),
    sa.ForeignKeyConstraint(['wave_id'], ['wave.id'], name=op.f('fk_study_event_wave_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_study_event'))
    )
    with op.batch_alter_table('study_event', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_study_event_enrolment_id'), ['enrolment_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_study_event_wave_id'), ['wave_id'], unique=False)

    op.create_table('submission',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('wave_id', sa.Integer(), nullable=False),
    sa.Column('enrolment_id', sa.Integer(), nullable=False),
    sa.Column('recruiter', sa.String(length=20), nullable=False),
    sa.Column('external_id', sa.String(length=200), nullable=True),
    sa.Column('status', sa.String(length=12), nullable=False),
    sa.Column('created_at', sa.DateTime(), nullable=False),
    sa.Column('changed_at', sa.DateTime(), nullable=False),
    sa.ForeignKeyConstraint(['enrolment_id'], ['enrolment.id'], name=op.f('fk_submission_enrolment_id')),
    sa.ForeignKeyConstraint(['wave_id'], ['wave.id'], name=op.f('fk_submission_wave_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_submission')),
    sa.UniqueConstraint('wave_id', 'external_id', name=op.f('uq_submission_wave_id_external_id'))
    )
    with op.batch_alter_table('submission', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_submission_enrolment_id'), ['enrolment_id'], unique=False)

    with op.batch_alter_table('enrolment', schema=None) as batch_op:
        batch_op.add_column(sa.Column('wave_id', sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column('token', sa.String(length=43), nullable=True))
        batch_op.add_column(sa.Column('device', sa.String(length=10), nullable=True))
        batch_op.add_column(sa.Column('stratum', sa.String(length=40), nullable=True))
        batch_op.add_column(sa.Column('assigned_at', sa.DateTime(), nullable=True))
        batch_op.add_column(sa.Column('holds_place', sa.Boolean(), nullable=False, server_default=sa.true()))
        batch_op.add_column(sa.Column('plan', JSON, nullable=True))
        batch_op.add_column(sa.Column('step', sa.Integer(), nullable=False, server_default='0'))
        batch_op.add_column(sa.Column('seen_at', sa.DateTime(), nullable=True))
        batch_op.create_unique_constraint(batch_op.f('uq_enrolment_token'), ['token'])
        batch_op.create_unique_constraint(batch_op.f('uq_enrolment_wave_id_participant_id'), ['wave_id', 'participant_id'])
        batch_op.create_foreign_key(batch_op.f('fk_enrolment_wave_id'), 'wave', ['wave_id'], ['id'])
    with op.batch_alter_table('enrolment', schema=None) as batch_op:  # rows that were there have their value now
        batch_op.alter_column('holds_place', server_default=None)
        batch_op.alter_column('step', server_default=None)

    op.add_column('event', sa.Column('timing', JSON, nullable=True))
    op.add_column('match', sa.Column('options', JSON, nullable=True))



def downgrade():
    with op.batch_alter_table('match', schema=None) as batch_op:
        batch_op.drop_column('options')

    with op.batch_alter_table('event', schema=None) as batch_op:
        batch_op.drop_column('timing')

    with op.batch_alter_table('enrolment', schema=None) as batch_op:
        batch_op.drop_constraint(batch_op.f('fk_enrolment_wave_id'), type_='foreignkey')
        batch_op.drop_constraint(batch_op.f('uq_enrolment_wave_id_participant_id'), type_='unique')
        batch_op.drop_constraint(batch_op.f('uq_enrolment_token'), type_='unique')
        batch_op.drop_column('seen_at')
        batch_op.drop_column('step')
        batch_op.drop_column('plan')
        batch_op.drop_column('holds_place')
        batch_op.drop_column('assigned_at')
        batch_op.drop_column('stratum')
        batch_op.drop_column('device')
        batch_op.drop_column('token')
        batch_op.drop_column('wave_id')

    with op.batch_alter_table('submission', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_submission_enrolment_id'))

    op.drop_table('submission')
    with op.batch_alter_table('study_event', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_study_event_wave_id'))
        batch_op.drop_index(batch_op.f('ix_study_event_enrolment_id'))

    op.drop_table('study_event')
    with op.batch_alter_table('payment', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_payment_batch_id'))

    op.drop_table('payment')
    op.drop_table('payment_batch')
    with op.batch_alter_table('wave', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_wave_study_version_id'))

    op.drop_table('wave')
