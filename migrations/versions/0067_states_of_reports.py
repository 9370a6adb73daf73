"""reports are assigned, answered and closed; who has read one takes care of it, and handled ones are closed"""

import sqlalchemy as sa
from alembic import op

revision = '0067'
down_revision = '0066'
branch_labels = None
depends_on = None

_KINDS = {'report read': 'report assigned', 'report handled': 'report closed'}
_EVENTS = sa.table('study_event', sa.column('id', sa.Integer), sa.column('kind', sa.String), sa.column('body', sa.JSON))


def upgrade():
    connection = op.get_bind()
    chosen = sa.select(_EVENTS).where(_EVENTS.c.kind.in_(_KINDS))
    for row in connection.execute(chosen).all():
        body = {**row.body, 'to': row.body.get('by')}
        change = _EVENTS.update().where(_EVENTS.c.id == row.id).values(kind=_KINDS[row.kind], body=body)
        connection.execute(change)


def downgrade():
    for old, new in _KINDS.items():
        op.execute(_EVENTS.update().where(_EVENTS.c.kind == new).values(kind=old))
    op.execute(_EVENTS.update().where(_EVENTS.c.kind == 'report answered').values(kind='report handled'))
    op.execute(_EVENTS.delete().where(_EVENTS.c.kind == 'report note'))
