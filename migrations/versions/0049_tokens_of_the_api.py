"""tokens with which programs use the API, and what was changed by them"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0049'
down_revision = '0048'
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), 'postgresql')


def upgrade():
    op.create_table(
        'api_token',
        sa.Column('id', sa.Integer(), nullable=False),
        sa.Column('user_id', sa.Integer(), nullable=False),
        sa.Column('name', sa.String(length=80), nullable=False),
        sa.Column('token_hash', sa.String(length=64), nullable=False),
        sa.Column('scopes', JSON, nullable=False),
        sa.Column('created_at', sa.DateTime(), nullable=False),
        sa.Column('expires_at', sa.DateTime(), nullable=False),
        sa.Column('used_at', sa.DateTime(), nullable=True),
        sa.Column('revoked_at', sa.DateTime(), nullable=True),
        sa.ForeignKeyConstraint(['user_id'], ['user.id'], name=op.f('fk_api_token_user_id_user'), ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_api_token')),
        sa.UniqueConstraint('token_hash', name=op.f('uq_api_token_token_hash')),
    )
    in_use = sa.text('revoked_at IS NULL')
    op.create_index(
        'ix_api_token_name', 'api_token', ['user_id', 'name'], unique=True, sqlite_where=in_use, postgresql_where=in_use
    )
    op.create_table(
        'api_request',
        sa.Column('id', sa.Integer(), nullable=False),
        sa.Column('token_id', sa.Integer(), nullable=True),
        sa.Column('user_name', sa.String(length=80), nullable=False),
        sa.Column('token_name', sa.String(length=80), nullable=False),
        sa.Column('at', sa.DateTime(), nullable=False),
        sa.Column('method', sa.String(length=10), nullable=False),
        sa.Column('path', sa.String(length=200), nullable=False),
        sa.Column('subject', sa.String(length=200), nullable=False),
        sa.Column('key', sa.String(length=200), nullable=True),
        sa.Column('digest', sa.String(length=64), nullable=True),
        sa.Column('status', sa.Integer(), nullable=True),
        sa.Column('answer', JSON, nullable=True),
        sa.ForeignKeyConstraint(
            ['token_id'], ['api_token.id'], name=op.f('fk_api_request_token_id_api_token'), ondelete='SET NULL'
        ),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_api_request')),
    )
    op.create_index(op.f('ix_api_request_at'), 'api_request', ['at'], unique=False)
    keyed = sa.text('key IS NOT NULL')
    op.create_index(
        'ix_api_request_key',
        'api_request',
        ['token_id', 'key'],
        unique=True,
        sqlite_where=keyed,
        postgresql_where=keyed,
    )


def downgrade():
    op.drop_table('api_request')
    op.drop_table('api_token')
