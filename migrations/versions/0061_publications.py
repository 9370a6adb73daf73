"""pushes of models and datasets, whose games they hold, and what is declared of things from elsewhere"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), 'postgresql')

revision = '0061'
down_revision = '0060'
branch_labels = None
depends_on = None


def _subject(table):
    return (
        sa.Column('language_model_id', sa.Integer(), nullable=True),
        sa.Column('dataset_id', sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(['language_model_id'], ['language_model.id'],
                                name=op.f(f'fk_{table}_language_model_id')),
        sa.ForeignKeyConstraint(['dataset_id'], ['dataset.id'], name=op.f(f'fk_{table}_dataset_id')),
    )


def upgrade():
    op.create_table(
        'publication', sa.Column('id', sa.Integer(), nullable=False),
        sa.Column('spec', JSON, nullable=False), sa.Column('name', sa.String(length=120), nullable=False),
        sa.Column('target', sa.String(length=400), nullable=False),
        sa.Column('licence', sa.String(length=60), nullable=False),
        sa.Column('size', sa.BigInteger(), nullable=False), sa.Column('files', sa.Integer(), nullable=False),
        sa.Column('manifest', sa.String(length=64), nullable=True), sa.Column('sent_at', sa.DateTime(), nullable=True),
        sa.Column('revision', sa.String(length=100), nullable=True),
        sa.Column('status', sa.String(length=10), nullable=False), sa.Column('queued', sa.Boolean(), nullable=False),
        sa.Column('requested_by_id', sa.Integer(), nullable=True),
        sa.Column('requested_by', sa.String(length=80), nullable=True), sa.Column('error', sa.Text(), nullable=True),
        sa.Column('budget_usd', sa.Float(), nullable=True), sa.Column('budget_tokens', sa.BigInteger(), nullable=True),
        sa.Column('created_at', sa.DateTime(), nullable=False), sa.Column('started_at', sa.DateTime(), nullable=True),
        sa.Column('ended_at', sa.DateTime(), nullable=True), sa.Column('enqueued_at', sa.DateTime(), nullable=True),
        sa.Column('lease_owner', sa.String(length=80), nullable=True),
        sa.Column('lease_until', sa.DateTime(), nullable=True), sa.Column('lease_count', sa.Integer(), nullable=False),
        *_subject('publication'),
        sa.ForeignKeyConstraint(['requested_by_id'], ['user.id'], name=op.f('fk_publication_requested_by_id'),
                                ondelete='SET NULL'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_publication')),
    )
    op.create_index('ix_publication_to_run', 'publication', ['status', 'queued'], unique=False)
    for column in ('language_model_id', 'dataset_id', 'requested_by_id'):
        op.create_index(op.f(f'ix_publication_{column}'), 'publication', [column], unique=False)
    op.create_table(
        'published_person', sa.Column('publication_id', sa.Integer(), nullable=False),
        sa.Column('participant_id', sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(['publication_id'], ['publication.id'], name=op.f('fk_published_person_publication_id'),
                                ondelete='CASCADE'),
        sa.ForeignKeyConstraint(['participant_id'], ['participant.id'], name=op.f('fk_published_person_participant_id'),
                                ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('publication_id', 'participant_id', name=op.f('pk_published_person')),
    )
    op.create_index(op.f('ix_published_person_participant_id'), 'published_person', ['participant_id'], unique=False)
    op.create_table(
        'release_permission', sa.Column('id', sa.Integer(), nullable=False),
        sa.Column('licence', sa.String(length=60), nullable=False), sa.Column('reason', sa.Text(), nullable=False),
        sa.Column('by', sa.String(length=80), nullable=True), sa.Column('at', sa.DateTime(), nullable=False),
        *_subject('release_permission'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_release_permission')),
    )
    for column in ('language_model_id', 'dataset_id'):
        op.create_index(op.f(f'ix_release_permission_{column}'), 'release_permission', [column], unique=False)


def downgrade():
    for table in ('release_permission', 'published_person', 'publication'):
        op.drop_table(table)
