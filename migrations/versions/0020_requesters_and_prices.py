"""who requested a job; what the tokens of a round's models cost when it began"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = '0020'
down_revision = '0019'
branch_labels = None
depends_on = None

JOBS = ('round', 'training_job', 'campaign')


def upgrade():
    for table in JOBS:
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.add_column(sa.Column('requested_by_id', sa.Integer(), nullable=True))
            batch_op.add_column(sa.Column('requested_by', sa.String(length=80), nullable=True))
            if table == 'round':
                batch_op.add_column(sa.Column('prices', JSON, nullable=True))
            batch_op.create_foreign_key(
                batch_op.f(f'fk_{table}_requested_by_id'), 'user', ['requested_by_id'], ['id'], ondelete='SET NULL'
            )
            batch_op.create_index(batch_op.f(f'ix_{table}_requested_by_id'), ['requested_by_id'], unique=False)


def downgrade():
    for table in JOBS:
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.drop_index(batch_op.f(f'ix_{table}_requested_by_id'))
            batch_op.drop_constraint(batch_op.f(f'fk_{table}_requested_by_id'), type_='foreignkey')
            batch_op.drop_column('requested_by')
            batch_op.drop_column('requested_by_id')
            if table == 'round':
                batch_op.drop_column('prices')
