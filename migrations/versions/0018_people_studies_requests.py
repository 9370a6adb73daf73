"""people, studies, requests to models; what a generation and a row of a dataset may belong to besides a match"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = '0018'
down_revision = '0017'
branch_labels = None
depends_on = None

MODEL = sa.table(
    'language_model', sa.column('id', sa.Integer), sa.column('kind', sa.String), sa.column('games', JSON),
    sa.column('uses', JSON), sa.column('test_asked_at', sa.DateTime), sa.column('tested_at', sa.DateTime),
    sa.column('test_result', JSON), sa.column('test_request_id', sa.Integer), sa.column('created_at', sa.DateTime),
)
REQUEST = sa.table(
    'model_request', sa.column('id', sa.Integer), sa.column('language_model_id', sa.Integer),
    sa.column('purpose', sa.String), sa.column('game', sa.String), sa.column('messages', JSON),
    sa.column('sampling', JSON), sa.column('status', sa.String), sa.column('result', JSON),
    sa.column('error', sa.Text), sa.column('created_at', sa.DateTime), sa.column('ended_at', sa.DateTime),
    sa.column('lease_count', sa.Integer),
)
# Columns of tables with a row a match or more: both databases add them in place, whatever is in the table.
ADDED = (
    ('match', 'arm_id', 'INTEGER CONSTRAINT fk_match_arm_id REFERENCES arm (id)'),
    ('match', 'position', 'INTEGER'),
    ('seat', 'participant_id', 'INTEGER CONSTRAINT fk_seat_participant_id REFERENCES participant (id)'),
    ('seat', 'enrolment_id', 'INTEGER CONSTRAINT fk_seat_enrolment_id REFERENCES enrolment (id)'),
)


def upgrade():
    create_tables()
    for table, column, definition in ADDED:
        op.execute(f'ALTER TABLE "{table}" ADD COLUMN {column} {definition}')
    op.create_index('ix_match_arm_id', 'match', ['arm_id'])
    op.create_index('ix_seat_participant_id', 'seat', ['participant_id'])
    op.create_index('ix_seat_enrolment_id', 'seat', ['enrolment_id'])
    op.add_column('dataset', sa.Column('kind', sa.String(length=20), server_default='conversations', nullable=False))

    with op.batch_alter_table('dataset_row', schema=None) as batch_op:
        batch_op.alter_column('match_id', existing_type=sa.String(length=22), nullable=True)
        batch_op.alter_column('seat', existing_type=sa.Integer(), nullable=True)
    with op.batch_alter_table('generation', schema=None) as batch_op:
        batch_op.add_column(sa.Column('request_id', sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column('log_probs', sa.LargeBinary(), nullable=True))
        batch_op.alter_column('match_id', existing_type=sa.String(length=22), nullable=True)
        batch_op.alter_column('seat', existing_type=sa.Integer(), nullable=True)
        batch_op.alter_column('ply', existing_type=sa.Integer(), nullable=True)
        batch_op.create_foreign_key(
            batch_op.f('fk_generation_request_id'), 'model_request', ['request_id'], ['id'], ondelete='CASCADE'
        )
        batch_op.create_index(batch_op.f('ix_generation_request_id'), ['request_id'], unique=False)

    with op.batch_alter_table('language_model', schema=None) as batch_op:
        batch_op.add_column(sa.Column('uses', JSON, nullable=True))
        batch_op.add_column(sa.Column('notes', sa.Text(), server_default='', nullable=False))
        batch_op.add_column(sa.Column('cloned_from_id', sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column('archived_at', sa.DateTime(), nullable=True))
        batch_op.add_column(sa.Column('test_request_id', sa.Integer(), nullable=True))
        batch_op.create_foreign_key(
            batch_op.f('fk_language_model_cloned_from_id'), 'language_model', ['cloned_from_id'], ['id']
        )
        batch_op.create_index(batch_op.f('ix_language_model_cloned_from_id'), ['cloned_from_id'], unique=False)
    turn_test_calls_into_requests(op.get_bind())
    with op.batch_alter_table('language_model', schema=None) as batch_op:
        batch_op.alter_column('uses', existing_type=JSON, nullable=False)
        batch_op.drop_column('test_asked_at')
        batch_op.drop_column('tested_at')
        batch_op.drop_column('test_result')


def turn_test_calls_into_requests(connection):
    for row in connection.execute(sa.select(MODEL).order_by(MODEL.c.id)).all():
        uses = ['games'] if row.kind == 'scripted' else ['games', 'chat']
        values = {'uses': uses}
        if (result := row.test_result) is not None:
            status = 'done' if result.get('ok') else 'failed'
            request = sa.insert(REQUEST).values(
                language_model_id=row.id, purpose='test', game=result.get('game', row.games[0]), messages=[],
                sampling={}, status=status, result=result, error=result.get('error'),
                created_at=row.test_asked_at or row.tested_at or row.created_at,
                ended_at=row.tested_at or row.created_at,
                lease_count=0,
            ).returning(REQUEST.c.id)
            values['test_request_id'] = connection.scalar(request)
        connection.execute(sa.update(MODEL).where(MODEL.c.id == row.id).values(**values))


def turn_requests_into_test_calls(connection):
    tests = sa.select(MODEL.c.id, REQUEST).join(REQUEST, REQUEST.c.id == MODEL.c.test_request_id)
    for row in connection.execute(tests).mappings().all():
        values = {'test_asked_at': row[REQUEST.c.created_at], 'tested_at': row[REQUEST.c.ended_at],
                  'test_result': row[REQUEST.c.result]}
        connection.execute(sa.update(MODEL).where(MODEL.c.id == row[MODEL.c.id]).values(**values))


def create_tables():
    op.create_table('study',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('name', sa.String(length=80), nullable=False),
    sa.Column('created_at', sa.DateTime(), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_study')),
    sa.UniqueConstraint('name', name=op.f('uq_study_name'))
    )
    op.create_table('model_request',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('language_model_id', sa.Integer(), nullable=False),
    sa.Column('purpose', sa.String(length=20), nullable=False),
    sa.Column('game', sa.String(length=40), nullable=True),
    sa.Column('messages', JSON, nullable=False),
    sa.Column('sampling', JSON, nullable=False),
    sa.Column('status', sa.String(length=10), nullable=False),
    sa.Column('result', JSON, nullable=True),
    sa.Column('error', sa.Text(), nullable=True),
    sa.Column('created_at', sa.DateTime(), nullable=False),
    sa.Column('ended_at', sa.DateTime(), nullable=True),
    sa.Column('enqueued_at', sa.DateTime(), nullable=True),
    sa.Column('lease_owner', sa.String(length=80), nullable=True),
    sa.Column('lease_until', sa.DateTime(), nullable=True),
    sa.Column('lease_count', sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(['language_model_id'], ['language_model.id'], name=op.f('fk_model_request_language_model_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_model_request'))
    )
    op.create_index('ix_model_request_language_model_id', 'model_request', ['language_model_id'])
    op.create_index('ix_model_request_to_make', 'model_request', ['status', 'created_at'])
    op.create_table('participant',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('study_id', sa.Integer(), nullable=True),
    sa.Column('code', sa.String(length=40), nullable=False),
    sa.Column('person_hash', sa.String(length=64), nullable=True),
    sa.Column('created_at', sa.DateTime(), nullable=False),
    sa.ForeignKeyConstraint(['study_id'], ['study.id'], name=op.f('fk_participant_study_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_participant')),
    sa.UniqueConstraint('study_id', 'code', name=op.f('uq_participant_study_id_code'))
    )
    op.create_index('ix_participant_person_hash', 'participant', ['person_hash'])
    op.create_table('study_version',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('study_id', sa.Integer(), nullable=False),
    sa.Column('number', sa.Integer(), nullable=False),
    sa.Column('design', JSON, nullable=False),
    sa.Column('sha256', sa.String(length=64), nullable=False),
    sa.Column('created_at', sa.DateTime(), nullable=False),
    sa.ForeignKeyConstraint(['study_id'], ['study.id'], name=op.f('fk_study_version_study_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_study_version')),
    sa.UniqueConstraint('study_id', 'number', name=op.f('uq_study_version_study_id_number'))
    )
    op.create_table('arm',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('study_version_id', sa.Integer(), nullable=False),
    sa.Column('name', sa.String(length=80), nullable=False),
    sa.Column('conditions', JSON, nullable=False),
    sa.ForeignKeyConstraint(['study_version_id'], ['study_version.id'], name=op.f('fk_arm_study_version_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_arm')),
    sa.UniqueConstraint('study_version_id', 'name', name=op.f('uq_arm_study_version_id_name'))
    )
    op.create_table('enrolment',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('participant_id', sa.Integer(), nullable=False),
    sa.Column('study_version_id', sa.Integer(), nullable=False),
    sa.Column('arm_id', sa.Integer(), nullable=True),
    sa.Column('stage', sa.String(length=20), nullable=False),
    sa.Column('ending', sa.String(length=20), nullable=True),
    sa.Column('answers', JSON, nullable=False),
    sa.Column('enrolled_at', sa.DateTime(), nullable=False),
    sa.Column('ended_at', sa.DateTime(), nullable=True),
    sa.ForeignKeyConstraint(['arm_id'], ['arm.id'], name=op.f('fk_enrolment_arm_id')),
    sa.ForeignKeyConstraint(['participant_id'], ['participant.id'], name=op.f('fk_enrolment_participant_id'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['study_version_id'], ['study_version.id'], name=op.f('fk_enrolment_study_version_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_enrolment'))
    )
    op.create_index('ix_enrolment_arm_id', 'enrolment', ['arm_id'])
    op.create_index('ix_enrolment_participant_id', 'enrolment', ['participant_id'])
    op.create_index('ix_enrolment_study_version_id', 'enrolment', ['study_version_id'])
    op.create_table('consent',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('participant_id', sa.Integer(), nullable=False),
    sa.Column('kind', sa.String(length=20), nullable=False),
    sa.Column('text_version', sa.String(length=64), nullable=False),
    sa.Column('given', sa.Boolean(), nullable=False),
    sa.Column('at', sa.DateTime(), nullable=False),
    sa.Column('withdrawn_at', sa.DateTime(), nullable=True),
    sa.ForeignKeyConstraint(['participant_id'], ['participant.id'], name=op.f('fk_consent_participant_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_consent'))
    )
    op.create_index('ix_consent_participant_id', 'consent', ['participant_id'])
    op.create_table('recruitment_identity',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('participant_id', sa.Integer(), nullable=False),
    sa.Column('recruiter', sa.String(length=20), nullable=False),
    sa.Column('external_id', sa.String(length=200), nullable=False),
    sa.Column('remove_on', sa.Date(), nullable=True),
    sa.ForeignKeyConstraint(['participant_id'], ['participant.id'], name=op.f('fk_recruitment_identity_participant_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_recruitment_identity')),
    sa.UniqueConstraint('recruiter', 'external_id', 'participant_id', name=op.f('uq_recruitment_identity_recruiter_external_id_participant_id'))
    )
    op.create_index('ix_recruitment_identity_participant_id', 'recruitment_identity', ['participant_id'])


def downgrade():
    with op.batch_alter_table('language_model', schema=None) as batch_op:
        batch_op.add_column(sa.Column('test_result', JSON, nullable=True))
        batch_op.add_column(sa.Column('tested_at', sa.DateTime(), nullable=True))
        batch_op.add_column(sa.Column('test_asked_at', sa.DateTime(), nullable=True))
    turn_requests_into_test_calls(op.get_bind())
    with op.batch_alter_table('language_model', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_language_model_cloned_from_id'))
        batch_op.drop_constraint(batch_op.f('fk_language_model_cloned_from_id'), type_='foreignkey')
        for column in ('test_request_id', 'archived_at', 'cloned_from_id', 'notes', 'uses'):
            batch_op.drop_column(column)

    op.execute(sa.text('DELETE FROM generation WHERE match_id IS NULL'))
    with op.batch_alter_table('generation', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_generation_request_id'))
        batch_op.drop_constraint(batch_op.f('fk_generation_request_id'), type_='foreignkey')
        batch_op.drop_column('request_id')
        batch_op.drop_column('log_probs')
        batch_op.alter_column('match_id', existing_type=sa.String(length=22), nullable=False)
        batch_op.alter_column('seat', existing_type=sa.Integer(), nullable=False)
        batch_op.alter_column('ply', existing_type=sa.Integer(), nullable=False)
    op.execute(sa.text('DELETE FROM dataset_row WHERE match_id IS NULL'))
    with op.batch_alter_table('dataset_row', schema=None) as batch_op:
        batch_op.alter_column('match_id', existing_type=sa.String(length=22), nullable=False)
        batch_op.alter_column('seat', existing_type=sa.Integer(), nullable=False)
    op.drop_column('dataset', 'kind')
    with op.batch_alter_table('seat', schema=None) as batch_op:
        for column in ('participant_id', 'enrolment_id'):
            batch_op.drop_index(batch_op.f(f'ix_seat_{column}'))
            batch_op.drop_column(column)  # and with it its key
    with op.batch_alter_table('match', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_match_arm_id'))
        batch_op.drop_column('arm_id')
        batch_op.drop_column('position')
    for table in (
        'recruitment_identity', 'consent', 'enrolment', 'arm', 'study_version', 'participant', 'model_request', 'study'
    ):
        op.drop_table(table)
