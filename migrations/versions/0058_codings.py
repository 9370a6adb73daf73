"""codes that experimenters give to lines of transcripts"""

import sqlalchemy as sa
from alembic import op

revision = '0058'
down_revision = '0057'
branch_labels = None
depends_on = None


def upgrade():
    op.create_table(
        'coding', sa.Column('id', sa.Integer(), nullable=False), sa.Column('name', sa.String(length=80), nullable=False),
        sa.Column('created_by', sa.String(length=80), nullable=False),
        sa.Column('created_at', sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_coding')),
        sa.UniqueConstraint('name', name=op.f('uq_coding_name')),
    )
    op.create_table(
        'code', sa.Column('id', sa.Integer(), nullable=False), sa.Column('coding_id', sa.Integer(), nullable=False),
        sa.Column('key', sa.Integer(), nullable=False), sa.Column('name', sa.String(length=40), nullable=False),
        sa.Column('help', sa.String(length=300), nullable=False),
        sa.ForeignKeyConstraint(['coding_id'], ['coding.id'], name=op.f('fk_code_coding_id'), ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_code')),
        sa.UniqueConstraint('coding_id', 'key', name=op.f('uq_code_coding_id_key')),
        sa.UniqueConstraint('coding_id', 'name', name=op.f('uq_code_coding_id_name')),
    )
    op.create_table(
        'coded_match', sa.Column('coding_id', sa.Integer(), nullable=False),
        sa.Column('match_id', sa.String(length=22), nullable=False), sa.Column('place', sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(['coding_id'], ['coding.id'], name=op.f('fk_coded_match_coding_id'),
                                ondelete='CASCADE'),
        sa.ForeignKeyConstraint(['match_id'], ['match.id'], name=op.f('fk_coded_match_match_id'), ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('coding_id', 'match_id', name=op.f('pk_coded_match')),
    )
    op.create_index(op.f('ix_coded_match_match_id'), 'coded_match', ['match_id'], unique=False)
    op.create_table(
        'coder', sa.Column('coding_id', sa.Integer(), nullable=False),
        sa.Column('name', sa.String(length=80), nullable=False), sa.Column('done_at', sa.DateTime(), nullable=True),
        sa.ForeignKeyConstraint(['coding_id'], ['coding.id'], name=op.f('fk_coder_coding_id'), ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('coding_id', 'name', name=op.f('pk_coder')),
    )
    op.create_table(
        'given_code', sa.Column('id', sa.Integer(), nullable=False), sa.Column('coding_id', sa.Integer(), nullable=False),
        sa.Column('match_id', sa.String(length=22), nullable=False),
        sa.Column('coder', sa.String(length=80), nullable=False), sa.Column('code_id', sa.Integer(), nullable=False),
        sa.Column('seq', sa.Integer(), nullable=False), sa.Column('at', sa.DateTime(), nullable=False),
        sa.ForeignKeyConstraint(['code_id'], ['code.id'], name=op.f('fk_given_code_code_id'), ondelete='CASCADE'),
        sa.ForeignKeyConstraint(['coding_id', 'match_id'], ['coded_match.coding_id', 'coded_match.match_id'],
                                name=op.f('fk_given_code_coding_id_match_id'), ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_given_code')),
        sa.UniqueConstraint('coding_id', 'coder', 'match_id', 'seq', 'code_id',
                            name=op.f('uq_given_code_coding_id_coder_match_id_seq_code_id')),
    )
    op.create_index(op.f('ix_given_code_code_id'), 'given_code', ['code_id'], unique=False)


def downgrade():
    for table in ('given_code', 'coder', 'coded_match', 'code', 'coding'):
        op.drop_table(table)
