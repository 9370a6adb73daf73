"""Stops of spending at the same moment as others who write."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine, select, update

from app.core.errors import Conflict
from app.core.extensions import reading, transact, writing
from app.jobs import states
from app.models import Campaign, RoundRow, SpendingStop
from app.spend.stop import stop_spending
from tests.campaigns import campaign_that_awaits
from tests.rounds import add_models, make_round


@pytest.fixture(autouse=True)
def _model(engine: Engine) -> None:
    """A model that nobody calls."""
    add_models(engine, "http://127.0.0.1:9", "haggler")


def test_a_stop_cancels_all_others_while_jobs_are_just_ending(engine: Engine) -> None:
    over, awaited, other = (make_round(engine, "haggler", "scripted", matches=2, queued=True) for _ in range(3))
    campaign = campaign_that_awaits(engine, awaited)
    with ThreadPoolExecutor() as threads:
        with writing(engine) as session:
            session.execute(update(RoundRow).where(RoundRow.id.in_([over, awaited])).values(status=states.DONE))
            stopping = threads.submit(transact(engine), lambda own: stop_spending(own, "somebody").jobs)
            with pytest.raises(TimeoutError):
                stopping.result(0.5)  # it waits for this transaction
        assert stopping.result(20) == [["campaign", campaign], ["round", other]]
    with reading(engine) as session:
        assert session.get_one(Campaign, campaign).status == states.CANCELLED
        assert dict(session.execute(select(RoundRow.id, RoundRow.status)).all()) == {
            over: states.DONE,
            awaited: states.DONE,
            other: states.CANCELLED,
        }


def test_of_two_stops_at_once_one_is_in_force(engine: Engine) -> None:
    waiting = make_round(engine, "haggler", "scripted", matches=2, queued=True)
    with ThreadPoolExecutor() as threads:
        with writing(engine) as session:
            stop_spending(session, "the first")
            second = threads.submit(transact(engine), lambda own: stop_spending(own, "the second").jobs)
            with pytest.raises(TimeoutError):
                second.result(0.5)
        with pytest.raises(Conflict, match="expected spending that goes on"):
            second.result(20)
    with reading(engine) as session:
        assert session.execute(select(SpendingStop.by, SpendingStop.jobs)).all() == [
            ("the first", [["round", waiting]])
        ]
