"""calls that embed the questions of a society"""

import sqlalchemy as sa
from alembic import op

revision = '0028'
down_revision = '0027'
branch_labels = None
depends_on = None

EMBEDDING = sa.text('society_id IS NOT NULL')


def upgrade():
    with op.batch_alter_table('generation', schema=None) as batch_op:
        batch_op.add_column(sa.Column('society_id', sa.Integer(), nullable=True))
        batch_op.create_foreign_key(
            batch_op.f('fk_generation_society_id'), 'society', ['society_id'], ['id'], ondelete='CASCADE'
        )
    op.create_index(
        'ix_generation_embedding', 'generation', ['society_id'], unique=False, sqlite_where=EMBEDDING,
        postgresql_where=EMBEDDING,
    )


def downgrade():
    op.execute('DELETE FROM generation WHERE society_id IS NOT NULL')
    op.drop_index('ix_generation_embedding', table_name='generation')
    with op.batch_alter_table('generation', schema=None) as batch_op:
        batch_op.drop_constraint(batch_op.f('fk_generation_society_id'), type_='foreignkey')
        batch_op.drop_column('society_id')
