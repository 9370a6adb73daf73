"""reports that came after a wave was frozen are of the kind of all reports; exports tell them by when they came"""

from alembic import op

revision = '0032'
down_revision = '0031'
branch_labels = None
depends_on = None


def upgrade():
    op.execute("UPDATE study_event SET kind = 'report' WHERE kind = 'late report'")


def downgrade():
    """The program of before reads both kinds."""
