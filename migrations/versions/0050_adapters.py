"""adapters know the model over whose checkpoint they were trained"""

import sqlalchemy as sa
from alembic import op

revision = '0050'
down_revision = '0049'
branch_labels = None
depends_on = None


def upgrade():
    with op.batch_alter_table('language_model', schema=None) as batch_op:
        batch_op.add_column(sa.Column('adapter_base_id', sa.Integer(), nullable=True))
        batch_op.create_foreign_key(
            batch_op.f('fk_language_model_adapter_base_id'), 'language_model', ['adapter_base_id'], ['id']
        )
        batch_op.create_index(batch_op.f('ix_language_model_adapter_base_id'), ['adapter_base_id'], unique=False)


def downgrade():
    with op.batch_alter_table('language_model', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_language_model_adapter_base_id'))
        batch_op.drop_constraint(batch_op.f('fk_language_model_adapter_base_id'), type_='foreignkey')
        batch_op.drop_column('adapter_base_id')
