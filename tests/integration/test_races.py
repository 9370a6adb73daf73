"""Two processes at one match in the same moment: one of them moves, the other reads again."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError

from app.core.extensions import reading, writing
from app.matches import live
from app.matches.stored import StoredMatch, StoredSeat, load
from app.registry import find_model
from tests.stack import PATIENCE


@pytest.fixture
def record(engine: Engine) -> StoredMatch:
    with writing(engine) as session:
        seats = StoredSeat("person"), StoredSeat.of(find_model(session, "taboo", "scripted"))
        return live.create(session, "taboo", {"word": "cat"}, seats, seed=1, source="live", instant=False)


def test_who_remembers_a_match_that_another_process_has_locked_is_told_to_read_again(
    engine: Engine, record: StoredMatch
) -> None:
    locked, sent = threading.Event(), threading.Event()

    def another_process() -> None:
        with writing(engine) as session:
            load(session, record.id, lock=True)
            locked.set()
            sent.wait(PATIENCE)
            time.sleep(0.3)  # until the other waits for this lock
            live.submit(session, live.MoveSubmission(record.id, 0, "a pet", "theirs"), instant=False)

    def web() -> None:
        with writing(engine) as session:
            remembered = {record.id: record}
            submission = live.MoveSubmission(record.id, 0, "an animal", "ours")
            sent.set()
            live.submit_together(session, [submission], remembered, instant=False)

    with ThreadPoolExecutor(2) as pool:
        other = pool.submit(another_process)
        assert locked.wait(PATIENCE)
        ours = pool.submit(web)
        other.result(PATIENCE)
        with pytest.raises(IntegrityError):
            ours.result(PATIENCE)
    with reading(engine) as session:
        assert [logged.move_id for logged in load(session, record.id).log] == [None, "theirs"]
