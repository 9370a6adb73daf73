"""what was said in matches, for the search"""

import re
import unicodedata

import sqlalchemy as sa
from alembic import op

revision = '0054'
down_revision = '0053'
branch_labels = None
depends_on = None

MATCH = sa.table('match', sa.column('id'), sa.column('status'))
TEXT = sa.table('match_text', sa.column('match_id'), sa.column('words'))
AT_ONCE = 500
MOST_BYTES = 400_000
UNSPACED = '\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff'
WORD = re.compile(rf'[{UNSPACED}]|[^\W_{UNSPACED}]+')


def indexed(lines):
    found, room = [], MOST_BYTES
    for line in lines:
        runs = WORD.findall(unicodedata.normalize('NFC', line))
        words = [word for run in runs for word in WORD.findall(unicodedata.normalize('NFKC', run).casefold())]
        text = ' '.join((*words, '¶'))
        room -= len(text.encode()) + 1
        if room < 0:
            break
        found.append(text)
    return ' '.join(found)


def upgrade():
    op.create_table(
        'match_text',
        sa.Column('id', sa.Integer(), nullable=False),
        sa.Column('match_id', sa.String(length=22), nullable=False),
        sa.Column('words', sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(['match_id'], ['match.id'], name=op.f('fk_match_text_match_id'), ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_match_text')),
        sa.UniqueConstraint('match_id', name=op.f('uq_match_text_match_id')),
    )
    if op.get_bind().dialect.name == 'sqlite':
        follow_with_full_text()
    fill()
    if op.get_bind().dialect.name == 'postgresql':
        op.execute("CREATE INDEX ix_match_text_words ON match_text"
                   " USING gin (array_to_tsvector(string_to_array(words, ' ')))")


def follow_with_full_text():
    # All that is not ASCII belongs to words here, because only words are in the text.
    op.execute("CREATE VIRTUAL TABLE match_text_index USING"
               " fts5(words, content='match_text', content_rowid='id', tokenize='ascii')")
    add = 'INSERT INTO match_text_index(rowid, words) VALUES (new.id, new.words);'
    remove = "INSERT INTO match_text_index(match_text_index, rowid, words) VALUES ('delete', old.id, old.words);"
    for name, event, body in (('added', 'INSERT', add), ('removed', 'DELETE', remove),
                              ('changed', 'UPDATE', remove + ' ' + add)):
        op.execute(f'CREATE TRIGGER match_text_{name} AFTER {event} ON match_text BEGIN {body} END')


def fill():
    connection, after = op.get_bind(), ''
    over = sa.select(MATCH.c.id).where(MATCH.c.status == 'over').order_by(MATCH.c.id).limit(AT_ONCE)
    said = sa.text("SELECT match_id, body ->> 'text' AS said FROM event WHERE match_id IN :ids"
                   " AND body ->> 'text' IS NOT NULL ORDER BY match_id, seq")
    said = said.bindparams(sa.bindparam('ids', expanding=True))
    while ids := list(connection.scalars(over.where(MATCH.c.id > after))):
        lines = {match_id: [] for match_id in ids}
        for match_id, line in connection.execute(said, {'ids': ids}):
            lines[match_id].append(line)
        op.bulk_insert(TEXT, [{'match_id': each, 'words': indexed(texts)} for each, texts in lines.items()])
        after = ids[-1]


def downgrade():
    op.drop_table('match_text')
    op.execute('DROP TABLE IF EXISTS match_text_index')
