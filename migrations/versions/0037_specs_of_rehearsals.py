"""rehearsals keep what was asked of them; those of before get it from their other columns"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0037'
down_revision = '0036'
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
ROWS = sa.table('rehearsal', *map(sa.column, ('id', 'study_version_id', 'bots', 'seed', 'live')),
                sa.column('spec', JSON))
VERSIONS = sa.table('study_version', *map(sa.column, ('id', 'study_id', 'number')))
STUDIES = sa.table('study', *map(sa.column, ('id', 'name')))


def upgrade():
    op.add_column('rehearsal', sa.Column('spec', JSON, nullable=True))
    database = op.get_bind()
    found = (
        sa.select(ROWS.c.id, ROWS.c.bots, ROWS.c.seed, ROWS.c.live, STUDIES.c.name, VERSIONS.c.number)
        .join_from(ROWS, VERSIONS, VERSIONS.c.id == ROWS.c.study_version_id)
        .join(STUDIES, STUDIES.c.id == VERSIONS.c.study_id)
    )
    for row in database.execute(found).all():
        spec = {'version': 1, 'study': f'{row.name}@{row.number}', 'bots': row.bots, 'seed': row.seed,
                'live': bool(row.live)}
        database.execute(sa.update(ROWS).where(ROWS.c.id == row.id).values(spec=spec))


def downgrade():
    with op.batch_alter_table('rehearsal', schema=None) as batch_op:
        batch_op.drop_column('spec')
