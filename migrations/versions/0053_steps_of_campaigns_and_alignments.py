"""steps of campaigns and alignments are those of recipes

What campaigns and alignments had begun becomes steps under the names that their recipes give them, so that they go on
from there; undone, the steps become what they were before.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0053'
down_revision = '0052'
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), 'postgresql')
OWNERS = {'run_id': 'recipe_run', 'campaign_id': 'campaign', 'alignment_id': 'alignment'}
PARTS = {
    'demonstrations_id': 'dataset', 'sft_job_id': 'training_job', 'society_id': 'society', 'dataset_id': 'dataset',
    'realignment_id': 'dataset', 'job_id': 'training_job', 'second_society_id': 'society',
    'assessment_id': 'assessment',
}
COMMON = (
    ('key', sa.String(length=500), False), ('place', sa.Integer(), False), ('name', sa.String(length=40), False),
    ('values', JSON, False), ('spec', JSON, False), ('kind', sa.String(length=20), True), ('number', sa.Integer(), True),
    ('dataset_id', sa.Integer(), True), ('realignment_id', sa.Integer(), True), ('figures', JSON, True),
    ('begun_at', sa.DateTime(), False), ('ended_at', sa.DateTime(), True),
)

STEP = sa.table('recipe_step', *(sa.column(name, sa.Integer) for name in OWNERS),
                *(sa.column(name, kind) for name, kind, _ in COMMON))
CAMPAIGN = sa.table('campaign', sa.column('id'), sa.column('spec', JSON), sa.column('created_at', sa.DateTime),
                    sa.column('base_id'))
ITERATION = sa.table(
    'campaign_iteration', sa.column('campaign_id'), sa.column('number'), sa.column('round_id'),
    sa.column('dataset_id'), sa.column('job_id'), sa.column('model_id'), sa.column('evaluation_id'),
    sa.column('figures', JSON),
)
ROUND = sa.table('campaign_round', *map(sa.column, ('campaign_id', 'iteration', 'partner', 'round_id')))
EVALUATION = sa.table('campaign_evaluation', *map(sa.column, ('campaign_id', 'iteration', 'label', 'round_id')),
                      sa.column('figures', JSON))
ALIGNMENT = sa.table('alignment', sa.column('id'), sa.column('spec', JSON), sa.column('created_at', sa.DateTime),
                     *map(sa.column, PARTS))
DATASET = sa.table('dataset', sa.column('id'), sa.column('spec', JSON))
MODEL = sa.table('language_model', sa.column('id'), sa.column('name'))
TRAINING = sa.table('training_job', sa.column('id'), sa.column('model_id'))


def rows_of(table, *order):
    found = op.get_bind().execute(sa.select(table).order_by(*(table.c[name] for name in order)))
    return [dict(row) for row in found.mappings()]


def steps_table(*owners):
    """The table of steps as it is with these owners, of which one alone is part of the key."""
    alone = len(owners) == 1
    op.create_table(
        'recipe_step',
        *([] if alone else [sa.Column('id', sa.Integer(), nullable=False)]),
        *(sa.Column(name, sa.Integer(), nullable=not alone) for name in owners),
        *(sa.Column(name, kind, nullable=nullable) for name, kind, nullable in COMMON),
        *(
            sa.ForeignKeyConstraint([name], [f'{OWNERS[name]}.id'], name=op.f(f'fk_recipe_step_{name}'),
                                    ondelete='CASCADE')
            for name in owners
        ),
        sa.ForeignKeyConstraint(['dataset_id'], ['dataset.id'], name=op.f('fk_recipe_step_dataset_id')),
        sa.ForeignKeyConstraint(['realignment_id'], ['dataset.id'], name=op.f('fk_recipe_step_realignment_id')),
        sa.PrimaryKeyConstraint(*(('run_id', 'key') if alone else ('id',)), name=op.f('pk_recipe_step')),
        *([] if alone else [
            sa.UniqueConstraint(name, 'key', name=op.f(f'uq_recipe_step_{name}_key')) for name in owners
        ]),
    )
    for column in ('dataset_id', 'realignment_id'):
        op.create_index(op.f(f'ix_recipe_step_{column}'), 'recipe_step', [column], unique=False)
    if not alone:
        op.create_index('ix_recipe_step_job', 'recipe_step', ['kind', 'number'], unique=False)


class Steps:
    """Makes the steps of one campaign or alignment, in their order."""

    def __init__(self, owner, row):
        self.common = {**dict.fromkeys(OWNERS), owner: row['id'], 'begun_at': row['created_at'], 'realignment_id': None}
        self.found = []

    def add(self, name, values=(), spec=None, kind=None, number=None, dataset_id=None, figures=None, **more):
        values = dict(values)
        turn = ', '.join(f'{each}={value}' for each, value in values.items())
        self.found.append({
            **self.common, 'key': f'{name} {turn}' if turn else name, 'place': len(self.found), 'name': name,
            'values': values, 'spec': spec or {}, 'kind': kind, 'number': number, 'dataset_id': dataset_id,
            'figures': figures, 'ended_at': None, **more,
        })

    def all(self):
        """Them all. The last is not over until somebody looks at it, unless its figures are there or it has no job."""
        for place, step in enumerate(self.found):
            if place + 1 < len(self.found) or step['figures'] is not None or step['kind'] is None:
                step['ended_at'] = step['begun_at']
        return self.found


def steps_of_campaigns():
    names = {row['id']: row['name'] for row in rows_of(MODEL, 'id')}
    iterations, rounds, evaluations = (
        rows_of(ITERATION, 'campaign_id', 'number'), rows_of(ROUND, 'round_id'), rows_of(EVALUATION, 'round_id')
    )
    for row in rows_of(CAMPAIGN, 'id'):
        steps, spec = Steps('campaign_id', row), row['spec']
        starts = spec.get('start_data') is not None or spec.get('teacher') is not None
        player = names.get(row['base_id'])
        for each in (each for each in iterations if each['campaign_id'] == row['id']):
            number = each['number']
            values, ending = ({'iteration': number}, '') if number else ({}, '_base')
            own = [[other for other in others if (other['campaign_id'], other['iteration']) == (row['id'], number)]
                   for others in (rounds, evaluations)]
            first = starts and number == 1
            if each['round_id'] is not None:
                steps.add('teach' if first else 'play', values, {}, 'round', each['round_id'])
            for place, other in enumerate(own[0], 1):
                played = {'models': [player, other['partner']]}
                steps.add(f'play_with_{place}', values, played, 'round', other['round_id'])
            if each['dataset_id'] is not None and not (first and spec.get('start_data') is not None):
                steps.add('keep_taught' if first else 'keep', values, dataset_id=each['dataset_id'])
            if each['job_id'] is not None:
                steps.add('train_first' if first else 'train', values, {}, 'training', each['job_id'])
            player = names.get(each['model_id'], player)
            evaluated = {'model': player}
            if each['evaluation_id'] is not None:
                steps.add(f'evaluate{ending}', values, evaluated, 'round', each['evaluation_id'],
                          figures=each['figures'])
            for place, other in enumerate(own[1], 2):
                steps.add(f'evaluate_{place}{ending}', values, evaluated, 'round', other['round_id'],
                          figures=other['figures'])
        yield from steps.all()


def steps_of_alignments():
    best = {row['id'] for row in rows_of(DATASET, 'id') if 'best_of' in row['spec']}
    for row in rows_of(ALIGNMENT, 'id'):
        steps, taught = Steps('alignment_id', row), row['demonstrations_id']
        if taught in best:
            steps.add('best_responses', dataset_id=taught)
        if row['sft_job_id'] is not None:
            steps.add('demonstrations', (), {'dataset': str(taught)}, 'training', row['sft_job_id'])
        if row['society_id'] is not None:
            steps.add('society', (), {}, 'society', row['society_id'])
        if row['dataset_id'] is not None:
            steps.add('comparisons', dataset_id=row['dataset_id'], realignment_id=row['realignment_id'])
        for name, kind, column in (('training', 'training', 'job_id'),
                                   ('society_again', 'society', 'second_society_id'),
                                   ('assessment', 'assessment', 'assessment_id')):
            if row[column] is not None:
                steps.add(name, (), {}, kind, row[column])
        yield from steps.all()


def upgrade():
    kept = [{**dict.fromkeys(OWNERS), **row} for row in rows_of(
        sa.table('recipe_step', sa.column('run_id'), *(sa.column(name, kind) for name, kind, _ in COMMON)),
        'run_id', 'place',
    )]
    made = [*kept, *steps_of_campaigns(), *steps_of_alignments()]
    op.drop_table('recipe_step')
    for table in ('campaign_evaluation', 'campaign_round', 'campaign_iteration'):
        op.drop_table(table)
    with op.batch_alter_table('alignment', schema=None) as batch_op:
        for column in PARTS:
            batch_op.drop_index(batch_op.f(f'ix_alignment_{column}'))
            batch_op.drop_constraint(batch_op.f(f'fk_alignment_{column}'), type_='foreignkey')
            batch_op.drop_column(column)
    steps_table(*OWNERS)
    if made:
        op.bulk_insert(STEP, made)


# ---- Undone ----------------------------------------------------------------------


def old_tables():
    def references(table, **columns):
        return [sa.ForeignKeyConstraint([column], [f'{other}.id'], name=op.f(f'fk_{table}_{column}'), ondelete=ondelete)
                for column, (other, ondelete) in columns.items()]

    campaign = {'campaign_id': ('campaign', 'CASCADE')}
    own = {'round_id': ('round', None), 'dataset_id': ('dataset', None), 'job_id': ('training_job', None),
           'model_id': ('language_model', None), 'evaluation_id': ('round', None)}
    op.create_table(
        'campaign_iteration', sa.Column('campaign_id', sa.Integer(), nullable=False),
        sa.Column('number', sa.Integer(), nullable=False),
        *(sa.Column(name, sa.Integer(), nullable=True) for name in own), sa.Column('figures', JSON, nullable=True),
        *references('campaign_iteration', **campaign, **own),
        sa.PrimaryKeyConstraint('campaign_id', 'number', name=op.f('pk_campaign_iteration')),
    )
    for column in own:
        op.create_index(op.f(f'ix_campaign_iteration_{column}'), 'campaign_iteration', [column], unique=False)
    for table, key, length, more in (('campaign_round', 'partner', 80, []),
                                     ('campaign_evaluation', 'label', 100, [sa.Column('figures', JSON, nullable=True)])):
        op.create_table(
            table, sa.Column('campaign_id', sa.Integer(), nullable=False),
            sa.Column('iteration', sa.Integer(), nullable=False),
            sa.Column(key, sa.String(length=length), nullable=False),
            sa.Column('round_id', sa.Integer(), nullable=False), *more,
            *references(table, **campaign, round_id=('round', None)),
            sa.PrimaryKeyConstraint('campaign_id', 'iteration', key, name=op.f(f'pk_{table}')),
        )
        op.create_index(op.f(f'ix_{table}_round_id'), table, ['round_id'], unique=False)


def labels_of(spec):
    """What the further evaluations of a campaign were called, in their order."""
    temperature, sampling = spec.get('evaluation_temperature'), spec.get('sampling') or {}
    found = []
    if isinstance(temperature, (int, float)) and temperature != sampling.get('temperature'):
        found.append('greedy' if temperature == 0 else f'temperature {temperature:g}')
    partners = spec.get('partners', [spec.get('partner')])
    return [*found, *(f'against {name}' for name in partners if name)]


def restore_campaigns(steps):
    made = {row['id']: row['model_id'] for row in rows_of(TRAINING, 'id')}
    iterations, rounds, evaluations = [], [], []
    for row in rows_of(CAMPAIGN, 'id'):
        labels = labels_of(row['spec'])
        empty = dict.fromkeys(('round_id', 'dataset_id', 'job_id', 'evaluation_id', 'figures'))
        found = {0: {**empty, 'campaign_id': row['id'], 'number': 0, 'model_id': row['base_id']}}
        for step in (step for step in steps if step['campaign_id'] == row['id']):
            number, name = step['values'].get('iteration', 0), step['name'].removesuffix('_base')
            if number not in found:
                first = number == 1 and row['spec'].get('start_data')
                found[number] = {**empty, 'campaign_id': row['id'], 'number': number, 'model_id': None,
                                 'dataset_id': first or None}
            own = {'campaign_id': row['id'], 'iteration': number, 'round_id': step['number']}
            if name == 'evaluate':
                found[number] |= {'evaluation_id': step['number'], 'figures': step['figures']}
            elif name.startswith('evaluate_'):
                label = labels[int(name.removeprefix('evaluate_')) - 2]
                evaluations.append({**own, 'label': label, 'figures': step['figures']})
            elif name.startswith('play_with_'):
                rounds.append({**own, 'partner': step['spec']['models'][-1]})
            elif step['kind'] == 'round':
                found[number]['round_id'] = step['number']
            elif step['kind'] == 'training':
                found[number] |= {'job_id': step['number'], 'model_id': made.get(step['number'])}
            else:
                found[number]['dataset_id'] = step['dataset_id']
        iterations += found.values()
    for table, lines in ((ITERATION, iterations), (ROUND, rounds), (EVALUATION, evaluations)):
        if lines:
            op.bulk_insert(table, lines)


def restore_alignments(steps):
    columns = {'demonstrations': 'sft_job_id', 'society': 'society_id', 'training': 'job_id',
               'society_again': 'second_society_id', 'assessment': 'assessment_id'}
    for row in op.get_bind().execute(sa.select(ALIGNMENT.c.id)).all():
        found = {}
        for step in (step for step in steps if step['alignment_id'] == row.id):
            if step['name'] in columns:
                found[columns[step['name']]] = step['number']
            if step['name'] == 'demonstrations':
                found['demonstrations_id'] = int(step['spec']['dataset'])
            elif step['name'] == 'best_responses':
                found['demonstrations_id'] = step['dataset_id']
            elif step['name'] == 'comparisons':
                found |= {'dataset_id': step['dataset_id'], 'realignment_id': step['realignment_id']}
        if found:
            op.execute(ALIGNMENT.update().where(ALIGNMENT.c.id == row.id).values(**found))


def downgrade():
    steps = rows_of(STEP, 'place')
    op.drop_table('recipe_step')
    with op.batch_alter_table('alignment', schema=None) as batch_op:
        for column, other in PARTS.items():
            batch_op.add_column(sa.Column(column, sa.Integer(), nullable=True))
            batch_op.create_foreign_key(batch_op.f(f'fk_alignment_{column}'), other, [column], ['id'])
            batch_op.create_index(batch_op.f(f'ix_alignment_{column}'), [column], unique=False)
    old_tables()
    steps_table('run_id')
    kept = [{name: step[name] for name in step if name not in ('campaign_id', 'alignment_id')}
            for step in steps if step['run_id'] is not None]
    if kept:
        op.bulk_insert(STEP, kept)
    restore_campaigns(steps)
    restore_alignments(steps)
