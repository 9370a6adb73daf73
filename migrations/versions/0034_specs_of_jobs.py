"""benchmarks, assessments and societies keep what was asked of them; those of before get it from their other columns"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0034'
down_revision = '0033'
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
TABLES = ('benchmark_job', 'assessment', 'society')


def upgrade():
    for table in TABLES:
        op.add_column(table, sa.Column('spec', JSON, nullable=True))
    database = op.get_bind()
    models = sa.table('language_model', sa.column('id'), sa.column('name'))
    names = dict(database.execute(sa.select(models.c.id, models.c.name)).all())

    def fill(table, columns, spec_of):
        rows = sa.table(table, sa.column('id'), sa.column('spec', JSON), *(sa.column(*each) for each in columns))
        for row in database.execute(sa.select(rows)).all():
            spec = {'version': 1, **{name: value for name, value in spec_of(row).items() if value is not None}}
            database.execute(sa.update(rows).where(rows.c.id == row.id).values(spec=spec))

    fill(
        'benchmark_job', [('model_id',), ('tasks', JSON), ('item_limit',), ('shots',), ('batch',)],
        lambda row: {'model': names[row.model_id], 'tasks': ', '.join(row.tasks), 'item_limit': row.item_limit,
                     'shots': row.shots, 'batch': row.batch},
    )
    fill(
        'assessment',
        [('model_id',), ('base_id',), ('raters', JSON), ('question_source',), ('sampling', JSON), ('seed',)],
        lambda row: {'model': names[row.model_id], 'base': names[row.base_id],
                     'raters': [each['model'] for each in row.raters], 'questions': row.question_source,
                     'sampling': row.sampling, 'seed': row.seed},
    )
    fill(
        'society',
        [('name',), ('config', JSON), ('agents', JSON), ('observers', JSON), ('embedder',), ('question_source',),
         ('prior_source',)],
        lambda row: {'name': row.name, 'agents': {each['model']: each['share'] for each in row.agents},
                     'systems': [each['model'] for each in row.agents if each['system']],
                     'observers': [each['model'] for each in row.observers], 'embedder': row.embedder,
                     'config': {name: value for name, value in row.config.items() if name != 'seed'},
                     'seed': row.config['seed'], 'questions': row.question_source, 'priors': row.prior_source},
    )
    op.execute("UPDATE society SET spec = NULL WHERE imported")  # nothing was asked of those


def downgrade():
    for table in TABLES:
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.drop_column('spec')
