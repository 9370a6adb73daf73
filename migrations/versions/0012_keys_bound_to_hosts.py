"""keys bound to hosts"""

import os
from urllib.parse import urlsplit

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0012'
down_revision = '0011'
branch_labels = None
depends_on = None

VENDOR_URL = "https://api.openai.com/v1"
JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
MODEL = sa.table("language_model", sa.column("id", sa.Integer), sa.column("kind", sa.String), sa.column("options", JSON))


def upgrade():
    """Bind the key of each model behind an API to the host that the model has.

    One that is found by the workers' own OPENAI_BASE_URL, with an OPENAI_ key, goes on to be.
    """
    connection = op.get_bind()
    for row in connection.execute(sa.select(MODEL.c.id, MODEL.c.options).where(MODEL.c.kind == "api")).all():
        options = dict(row.options)
        variable = options.get("key_env", "OPENAI_API_KEY")
        own = options.get("base_url")
        if not variable or "key_host" in options or (variable.startswith("OPENAI_") and not own):
            continue
        address = own or os.environ.get("OPENAI_BASE_URL") or VENDOR_URL
        host = (urlsplit(address).hostname or "").rstrip(".")
        if host:
            _set(connection, row.id, {**options, "key_host": host})


def downgrade():
    connection = op.get_bind()
    for row in connection.execute(sa.select(MODEL.c.id, MODEL.c.options).where(MODEL.c.kind == "api")).all():
        _set(connection, row.id, {name: value for name, value in row.options.items() if name != "key_host"})


def _set(connection, number, options):
    connection.execute(sa.update(MODEL).where(MODEL.c.id == number).values(options=options))
