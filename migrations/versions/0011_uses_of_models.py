"""two switches of a model: usable in rounds, offered to people"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

revision = '0011'
down_revision = '0010'
branch_labels = None
depends_on = None

MODEL = sa.table(
    'language_model', sa.column('id', sa.Integer), sa.column('name', sa.String), sa.column('kind', sa.String),
    sa.column('options', JSON), sa.column('test_result', JSON), sa.column('enabled', sa.Boolean),
    sa.column('usable_in_rounds', sa.Boolean), sa.column('offered_to_people', sa.Boolean),
)


def upgrade():
    with op.batch_alter_table('language_model', schema=None) as batch_op:
        batch_op.add_column(sa.Column('usable_in_rounds', sa.Boolean(), nullable=False, server_default=sa.true()))
        batch_op.add_column(sa.Column('offered_to_people', sa.Boolean(), nullable=False, server_default=sa.false()))
    connection = op.get_bind()
    for row in connection.execute(sa.select(MODEL)).all():
        uses = {'usable_in_rounds': row.enabled, 'offered_to_people': row.enabled and may_be_offered(row)}
        connection.execute(sa.update(MODEL).where(MODEL.c.id == row.id).values(**uses))
    with op.batch_alter_table('language_model', schema=None) as batch_op:
        batch_op.alter_column('usable_in_rounds', existing_type=sa.Boolean(), existing_nullable=False, server_default=None)
        batch_op.alter_column('offered_to_people', existing_type=sa.Boolean(), existing_nullable=False, server_default=None)
        batch_op.drop_column('enabled')


def may_be_offered(row):
    """People were offered every enabled model; from now on only those that are known to answer, and no untrained one."""
    shipped = row.options.get('path')
    if shipped == 'data/models/tiny-base':
        return False
    return row.kind == 'scripted' or shipped == 'data/models/tiny' or bool((row.test_result or {}).get('ok'))


def downgrade():
    with op.batch_alter_table('language_model', schema=None) as batch_op:
        batch_op.add_column(sa.Column('enabled', sa.Boolean(), nullable=False, server_default=sa.true()))
    enabled = sa.or_(MODEL.c.usable_in_rounds, MODEL.c.offered_to_people)
    op.get_bind().execute(sa.update(MODEL).values(enabled=enabled))
    with op.batch_alter_table('language_model', schema=None) as batch_op:
        batch_op.alter_column('enabled', existing_type=sa.Boolean(), existing_nullable=False, server_default=None)
        batch_op.drop_column('offered_to_people')
        batch_op.drop_column('usable_in_rounds')
