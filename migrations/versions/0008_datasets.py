"""datasets"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = '0008'
down_revision = '0007'
branch_labels = None
depends_on = None


def upgrade():
    op.create_table('dataset',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('name', sa.String(length=80), nullable=False),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('spec', JSON, nullable=False),
    sa.Column('sha256', sa.String(length=64), nullable=False),
    sa.Column('size', sa.BigInteger(), nullable=False),
    sa.Column('rows', sa.Integer(), nullable=False),
    sa.Column('words', sa.BigInteger(), nullable=False),
    sa.Column('own_words', sa.BigInteger(), nullable=False),
    sa.Column('figures', JSON, nullable=False),
    sa.Column('created_at', sa.DateTime(), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_dataset')),
    sa.UniqueConstraint('name', 'version', name=op.f('uq_dataset_name_version'))
    )
    with op.batch_alter_table('dataset', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_dataset_sha256'), ['sha256'], unique=False)

    op.create_table('dataset_row',
    sa.Column('dataset_id', sa.Integer(), nullable=False),
    sa.Column('place', sa.Integer(), nullable=False),
    sa.Column('match_id', sa.String(length=22), nullable=False),
    sa.Column('seat', sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(['dataset_id'], ['dataset.id'], name=op.f('fk_dataset_row_dataset_id'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['match_id'], ['match.id'], name=op.f('fk_dataset_row_match_id')),
    sa.PrimaryKeyConstraint('dataset_id', 'place', name=op.f('pk_dataset_row'))
    )
    with op.batch_alter_table('dataset_row', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_dataset_row_match_id'), ['match_id'], unique=False)

    with op.batch_alter_table('seat', schema=None) as batch_op:
        batch_op.add_column(sa.Column('training_consent', sa.Boolean(), nullable=True))


def downgrade():
    with op.batch_alter_table('seat', schema=None) as batch_op:
        batch_op.drop_column('training_consent')

    op.drop_table('dataset_row')
    op.drop_table('dataset')
