"""matches, models, users"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = '0001'
down_revision = None
branch_labels = None
depends_on = None


def upgrade():
    op.create_table('language_model',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('name', sa.String(length=80), nullable=False),
    sa.Column('label', sa.String(length=80), nullable=False),
    sa.Column('kind', sa.String(length=20), nullable=False),
    sa.Column('games', JSON, nullable=False),
    sa.Column('options', JSON, nullable=False),
    sa.Column('prompt_style', sa.String(length=20), nullable=True),
    sa.Column('enabled', sa.Boolean(), nullable=False),
    sa.Column('created_at', sa.DateTime(), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_language_model')),
    sa.UniqueConstraint('label', name=op.f('uq_language_model_label')),
    sa.UniqueConstraint('name', name=op.f('uq_language_model_name'))
    )
    op.create_table('lease',
    sa.Column('name', sa.String(length=40), nullable=False),
    sa.Column('owner', sa.String(length=80), nullable=False),
    sa.Column('until', sa.DateTime(), nullable=False),
    sa.PrimaryKeyConstraint('name', name=op.f('pk_lease'))
    )
    op.create_table('match',
    sa.Column('id', sa.String(length=22), nullable=False),
    sa.Column('game', sa.String(length=40), nullable=False),
    sa.Column('source', sa.String(length=20), nullable=False),
    sa.Column('status', sa.String(length=10), nullable=False),
    sa.Column('seed', sa.BigInteger(), nullable=False),
    sa.Column('config', JSON, nullable=False),
    sa.Column('start_key', sa.String(length=64), nullable=True),
    sa.Column('ply', sa.Integer(), nullable=False),
    sa.Column('to_move', sa.Integer(), nullable=True),
    sa.Column('model_to_move', sa.Boolean(), nullable=False),
    sa.Column('violations', sa.Integer(), nullable=False),
    sa.Column('reason', sa.String(length=40), nullable=True),
    sa.Column('winner', sa.Integer(), nullable=True),
    sa.Column('utility_0', sa.Double(), nullable=True),
    sa.Column('utility_1', sa.Double(), nullable=True),
    sa.Column('agreed', sa.Boolean(), nullable=True),
    sa.Column('pareto_optimal', sa.Boolean(), nullable=True),
    sa.Column('started_at', sa.DateTime(), nullable=False),
    sa.Column('moved_at', sa.DateTime(), nullable=False),
    sa.Column('ended_at', sa.DateTime(), nullable=True),
    sa.Column('lease_owner', sa.String(length=80), nullable=True),
    sa.Column('lease_until', sa.DateTime(), nullable=True),
    sa.Column('lease_count', sa.Integer(), nullable=False),
    sa.Column('rung_at', sa.DateTime(), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_match')),
    sa.UniqueConstraint('start_key', name=op.f('uq_match_start_key'))
    )
    with op.batch_alter_table('match', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_match_game'), ['game'], unique=False)
        batch_op.create_index(batch_op.f('ix_match_started_at'), ['started_at'], unique=False)
        batch_op.create_index('ix_match_to_play', ['status', 'model_to_move'], unique=False)

    op.create_table('user',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('name', sa.String(length=80), nullable=False),
    sa.Column('created_at', sa.DateTime(), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_user')),
    sa.UniqueConstraint('name', name=op.f('uq_user_name'))
    )
    op.create_table('event',
    sa.Column('match_id', sa.String(length=22), nullable=False),
    sa.Column('seq', sa.Integer(), nullable=False),
    sa.Column('kind', sa.String(length=20), nullable=False),
    sa.Column('seat', sa.Integer(), nullable=True),
    sa.Column('ply', sa.Integer(), nullable=False),
    sa.Column('move_id', sa.String(length=64), nullable=True),
    sa.Column('body', JSON, nullable=False),
    sa.Column('at', sa.DateTime(), nullable=False),
    sa.ForeignKeyConstraint(['match_id'], ['match.id'], name=op.f('fk_event_match_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('match_id', 'seq', name=op.f('pk_event')),
    sa.UniqueConstraint('match_id', 'seat', 'move_id', name='uq_event_move')
    )
    op.create_table('generation',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('match_id', sa.String(length=22), nullable=False),
    sa.Column('seat', sa.Integer(), nullable=False),
    sa.Column('ply', sa.Integer(), nullable=False),
    sa.Column('attempt', sa.Integer(), nullable=False),
    sa.Column('language_model_id', sa.Integer(), nullable=True),
    sa.Column('model', sa.String(length=200), nullable=False),
    sa.Column('prompt', JSON, nullable=False),
    sa.Column('text', sa.Text(), nullable=True),
    sa.Column('sampling', JSON, nullable=False),
    sa.Column('prompt_tokens', sa.Integer(), nullable=True),
    sa.Column('completion_tokens', sa.Integer(), nullable=True),
    sa.Column('latency', sa.Double(), nullable=False),
    sa.Column('retries', sa.Integer(), nullable=False),
    sa.Column('error', sa.Text(), nullable=True),
    sa.Column('at', sa.DateTime(), nullable=False),
    sa.ForeignKeyConstraint(['language_model_id'], ['language_model.id'], name=op.f('fk_generation_language_model_id')),
    sa.ForeignKeyConstraint(['match_id'], ['match.id'], name=op.f('fk_generation_match_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_generation'))
    )
    with op.batch_alter_table('generation', schema=None) as batch_op:
        batch_op.create_index('ix_generation_turn', ['match_id', 'ply', 'attempt'], unique=False)

    op.create_table('login_link',
    sa.Column('token_hash', sa.String(length=64), nullable=False),
    sa.Column('user_id', sa.Integer(), nullable=False),
    sa.Column('expires_at', sa.DateTime(), nullable=False),
    sa.Column('used_at', sa.DateTime(), nullable=True),
    sa.ForeignKeyConstraint(['user_id'], ['user.id'], name=op.f('fk_login_link_user_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('token_hash', name=op.f('pk_login_link'))
    )
    op.create_table('seat',
    sa.Column('match_id', sa.String(length=22), nullable=False),
    sa.Column('seat', sa.Integer(), nullable=False),
    sa.Column('role', sa.String(length=40), nullable=False),
    sa.Column('kind', sa.String(length=10), nullable=False),
    sa.Column('language_model_id', sa.Integer(), nullable=True),
    sa.ForeignKeyConstraint(['language_model_id'], ['language_model.id'], name=op.f('fk_seat_language_model_id')),
    sa.ForeignKeyConstraint(['match_id'], ['match.id'], name=op.f('fk_seat_match_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('match_id', 'seat', name=op.f('pk_seat'))
    )
    with op.batch_alter_table('seat', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_seat_language_model_id'), ['language_model_id'], unique=False)



def downgrade():
    with op.batch_alter_table('seat', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_seat_language_model_id'))

    op.drop_table('seat')
    op.drop_table('login_link')
    with op.batch_alter_table('generation', schema=None) as batch_op:
        batch_op.drop_index('ix_generation_turn')

    op.drop_table('generation')
    op.drop_table('event')
    op.drop_table('user')
    with op.batch_alter_table('match', schema=None) as batch_op:
        batch_op.drop_index('ix_match_to_play')
        batch_op.drop_index(batch_op.f('ix_match_started_at'))
        batch_op.drop_index(batch_op.f('ix_match_game'))

    op.drop_table('match')
    op.drop_table('lease')
    op.drop_table('language_model')
