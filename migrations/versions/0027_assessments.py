"""assessments of models by raters, and alignments: the chain from demonstrations to a model that was compared"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = '0027'
down_revision = '0026'
branch_labels = None
depends_on = None

ANSWERED = sa.text('answer_id IS NOT NULL AND error IS NULL')


def job_columns():
    return [
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
    ]


def references(table, **columns):
    return [
        sa.ForeignKeyConstraint([column], [f'{other}.id'], name=op.f(f'fk_{table}_{column}'), ondelete=ondelete)
        for column, (other, ondelete) in columns.items()
    ]


def upgrade():
    op.create_table('assessment',
    sa.Column('model_id', sa.Integer(), nullable=False),
    sa.Column('base_id', sa.Integer(), nullable=False),
    sa.Column('raters', JSON, nullable=False),
    sa.Column('sampling', JSON, nullable=False),
    sa.Column('seed', sa.BigInteger(), nullable=False),
    sa.Column('question_source', sa.String(length=300), nullable=False),
    sa.Column('questions', JSON, nullable=False),
    sa.Column('asked', sa.Integer(), nullable=False),
    sa.Column('left_out', sa.Integer(), nullable=False),
    sa.Column('learnt_from', JSON, nullable=False),
    sa.Column('answers', sa.Integer(), nullable=False),
    sa.Column('failed', sa.Integer(), nullable=False),
    sa.Column('ratings', sa.Integer(), nullable=False),
    sa.Column('unread_ratings', sa.Integer(), nullable=False),
    sa.Column('calls', sa.Integer(), nullable=False),
    sa.Column('failed_calls', sa.Integer(), nullable=False),
    sa.Column('prompt_tokens', sa.BigInteger(), nullable=False),
    sa.Column('completion_tokens', sa.BigInteger(), nullable=False),
    sa.Column('cost', sa.Float(), nullable=False),
    *job_columns(),
    *references('assessment', model_id=('language_model', None), base_id=('language_model', None),
                requested_by_id=('user', 'SET NULL')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_assessment'))
    )
    with op.batch_alter_table('assessment', schema=None) as batch_op:
        batch_op.create_index('ix_assessment_to_run', ['status', 'queued'], unique=False)
        for column in ('base_id', 'model_id', 'requested_by_id'):
            batch_op.create_index(batch_op.f(f'ix_assessment_{column}'), [column], unique=False)

    op.create_table('assessed_answer',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('assessment_id', sa.Integer(), nullable=False),
    sa.Column('question', sa.Integer(), nullable=False),
    sa.Column('of_base', sa.Boolean(), nullable=False),
    sa.Column('status', sa.String(length=10), nullable=False),
    sa.Column('text', sa.Text(), nullable=True),
    sa.Column('alignment', JSON, nullable=True),
    sa.Column('engagement', JSON, nullable=True),
    sa.Column('error', sa.Text(), nullable=True),
    *references('assessed_answer', assessment_id=('assessment', 'CASCADE')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_assessed_answer')),
    sa.UniqueConstraint('assessment_id', 'question', 'of_base',
                        name=op.f('uq_assessed_answer_assessment_id_question_of_base'))
    )

    op.create_table('alignment',
    sa.Column('name', sa.String(length=80), nullable=False),
    sa.Column('base_id', sa.Integer(), nullable=False),
    sa.Column('spec', JSON, nullable=False),
    sa.Column('material', JSON, nullable=False),
    sa.Column('demonstrations_id', sa.Integer(), nullable=True),
    sa.Column('sft_job_id', sa.Integer(), nullable=True),
    sa.Column('society_id', sa.Integer(), nullable=True),
    sa.Column('dataset_id', sa.Integer(), nullable=True),
    sa.Column('realignment_id', sa.Integer(), nullable=True),
    sa.Column('job_id', sa.Integer(), nullable=True),
    sa.Column('second_society_id', sa.Integer(), nullable=True),
    sa.Column('assessment_id', sa.Integer(), nullable=True),
    *job_columns(),
    *references('alignment', base_id=('language_model', None), demonstrations_id=('dataset', None),
                sft_job_id=('training_job', None),
                society_id=('society', None), dataset_id=('dataset', None), realignment_id=('dataset', None),
                job_id=('training_job', None), second_society_id=('society', None),
                assessment_id=('assessment', None), requested_by_id=('user', 'SET NULL')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_alignment'))
    )
    with op.batch_alter_table('alignment', schema=None) as batch_op:
        batch_op.create_index('ix_alignment_to_run', ['status', 'queued'], unique=False)
        for column in ('base_id', 'demonstrations_id', 'sft_job_id', 'society_id', 'dataset_id', 'realignment_id', 'job_id',
                       'second_society_id', 'assessment_id', 'requested_by_id'):
            batch_op.create_index(batch_op.f(f'ix_alignment_{column}'), [column], unique=False)

    with op.batch_alter_table('generation', schema=None) as batch_op:
        batch_op.add_column(sa.Column('answer_id', sa.Integer(), nullable=True))
        batch_op.create_foreign_key(
            batch_op.f('fk_generation_answer_id'), 'assessed_answer', ['answer_id'], ['id'], ondelete='CASCADE'
        )
    op.create_index(
        'ix_generation_assessed', 'generation', ['answer_id', 'call'], unique=True, sqlite_where=ANSWERED,
        postgresql_where=ANSWERED,
    )


def downgrade():
    op.execute('DELETE FROM generation WHERE answer_id IS NOT NULL')
    op.drop_index('ix_generation_assessed', table_name='generation')
    with op.batch_alter_table('generation', schema=None) as batch_op:
        batch_op.drop_constraint(batch_op.f('fk_generation_answer_id'), type_='foreignkey')
        batch_op.drop_column('answer_id')

    op.drop_table('alignment')
    op.drop_table('assessed_answer')
    op.drop_table('assessment')
