"""trainings keep what was asked of them; those of before get it from their other columns"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0036'
down_revision = '0035'
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def upgrade():
    op.add_column('training_job', sa.Column('spec', JSON, nullable=True))
    database = op.get_bind()
    models = sa.table('language_model', sa.column('id'), sa.column('name'))
    names = dict(database.execute(sa.select(models.c.id, models.c.name)).all())
    columns = ('id', 'method', 'backend', 'dataset_id', 'base_id', 'name')
    jobs = sa.table('training_job', *map(sa.column, columns), sa.column('config', JSON), sa.column('spec', JSON))
    for row in database.execute(sa.select(jobs)).all():
        config = {**row.config}
        sft_data = config.pop('sft_data', None)
        spec = {
            'version': 1, 'method': row.method, 'backend': row.backend, 'dataset': str(row.dataset_id),
            'sft_data': None if sft_data is None else str(sft_data), 'base': names.get(row.base_id),
            'reference': config.pop('reference', None), 'name': row.name, 'config': config,
        }
        given = {name: value for name, value in spec.items() if value is not None}
        database.execute(sa.update(jobs).where(jobs.c.id == row.id).values(spec=given))


def downgrade():
    with op.batch_alter_table('training_job', schema=None) as batch_op:
        batch_op.drop_column('spec')
