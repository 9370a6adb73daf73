"""calls keep what a model thought apart from its text, and their outcome; those of before have neither"""

import sqlalchemy as sa
from alembic import op

revision = '0041'
down_revision = '0040'
branch_labels = None
depends_on = None

COLUMNS = (
    ('reasoning', sa.Text()), ('reasoning_tokens', sa.Integer()), ('cached_tokens', sa.Integer()),
    ('outcome', sa.String(length=30)),
)  # fmt: skip


def upgrade():
    for name, kind in COLUMNS:
        op.add_column('generation', sa.Column(name, kind, nullable=True))


def downgrade():
    with op.batch_alter_table('generation', schema=None) as batch_op:
        for name, _kind in reversed(COLUMNS):
            batch_op.drop_column(name)
