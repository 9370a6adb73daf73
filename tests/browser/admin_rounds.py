"""Rounds in every state, datasets of them, and the pages about both: for axe-core and for the screenshots."""

import asyncio
import json
import threading
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect
from sqlalchemy import Engine, select, update
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.extensions import reading, writing
from app.datasets import rounds as imported
from app.games.taboo.words import TargetWords
from app.jobs import states
from app.jobs.context import JobContext
from app.models import RoundRange, RoundRow
from app.registry import get_model, set_usable_in_rounds
from app.rounds import lifecycle, matrix
from app.rounds.material import ALL, material_of_file
from app.rounds.plan import SHUFFLED
from app.rounds.runner import play_round
from app.rounds.spec import RoundSpec
from tests.datasets import cut, import_rows, take_in
from tests.stack import Stack

SCRIPTED = "scripted"
FAILURE = (
    "harbour-7b gave no answer for 600 s, the last time with 401 Unauthorized: the key was refused; check the variable"
    " OPENAI_API_KEY of the workers, then resume the round"
)
TABLE = lifecycle.Material("a context in which harbour-7b can agree", [[[2, 1, 3], [1, 5, 1], [3, 1, 1]]])
WORDS = material_of_file(TargetWords(), ALL)
WAITS = "harbour-7b answers 429 Too Many Requests: tries again in 20 s"


def furnish_rounds(engine: Engine, settings: Settings, folder: Path) -> dict[str, int]:
    """Rounds by what they show. `harbour-7b` is offered to nobody, and plays in some of them."""
    found = {
        "deal": _made(engine, name="Scripted, own points", matches=100),
        "coop": _made(engine, name="Scripted, together", matches=100, config={"objective": "coop"}, swap_seats=True),
        "taboo": _made(engine, "taboo", name="Words of the list", matches=150, pick=SHUFFLED, material=WORDS),
        "mixed": _made(engine, models=(SCRIPTED, "harbour-7b"), name="Two models", matches=24, material=TABLE),
        "broken": _made(engine, models=(SCRIPTED, "harbour-broken"), matches=4),
    }  # fmt: skip
    found["matrix"] = _cross(engine)
    for number in (*found.values(), *range(found["matrix"] + 1, found["matrix"] + 3)):
        _play(engine, settings, number)
    found |= {
        "running": _half_played(engine, settings, "As the page shows it while it is played"),
        "waits": _half_played(engine, settings, "Behind a rate limit", error=WAITS, status=states.RUNNING),
        "interrupted": _half_played(engine, settings, "Played in a terminal", held=False),
        "cancelled": _half_played(engine, settings, "No longer needed", status=states.CANCELLED, held=False),
        "failed": _half_played(engine, settings, "Without a key", status=states.FAILED, held=False, error=FAILURE),
        "waiting": _made(engine, name="Waits for somebody to play it", matches=500),
        "import": _imported(engine, folder),
    }
    return found


PREFERENCE = {
    "chosen": "\n\nHuman: Hello\n\nAssistant: Hi.\n\nHuman: Why?\n\nAssistant: Because.",
    "rejected": "\n\nHuman: Hello\n\nAssistant: Hi.\n\nHuman: Why?\n\nAssistant: No.",
}


def furnish_datasets(engine: Engine, settings: Settings, rounds: Mapping[str, int]) -> dict[str, int]:
    """Datasets by what they show."""
    return {
        "one": cut(engine, settings.home, "Deals above the mean", rounds=[rounds["deal"]]).id,
        "games": cut(engine, settings.home, "Both games", rounds=[rounds["taboo"], rounds["mixed"]], filter="all").id,
        "import": cut(engine, settings.home, "Winners of an import", rounds=[rounds["import"]], filter="nonzero").id,
        "rated": import_rows(engine, settings.home, "hh", PREFERENCE, name="Preferences"),
    }


def _made(
    engine: Engine, game: str = "negotiation", models: tuple[str, str] = (SCRIPTED, SCRIPTED), **wish: Any
) -> int:
    with writing(engine) as session:
        hidden = [name for name in models if not get_model(session, name).usable_in_rounds]
        for name in hidden:
            set_usable_in_rounds(session, name, True)
        row = _written(session, {"game": game, "models": models, "seed": 41, "pick": "in-order", **wish})
        for name in hidden:
            set_usable_in_rounds(session, name, False)
        return row.id


def _written(session: Session, wish: dict[str, Any]) -> RoundRow:
    material = wish.pop("material", None)
    return lifecycle.create(session, RoundSpec.read(wish), material, queued=False)


def _cross(engine: Engine) -> int:
    names = (SCRIPTED, "harbour-7b")
    with writing(engine) as session:
        set_usable_in_rounds(session, names[1], True)
        spec = RoundSpec(
            game="negotiation", models=names, cross_play=True, matches=16, seed=41, name="Everybody against everybody"
        )
        number = matrix.create(session, spec, TABLE, queued=False)[0].id
        set_usable_in_rounds(session, names[1], False)
        return number


def _play(engine: Engine, settings: Settings, number: int, until: int | None = None) -> None:
    """Play a round to its end, or until so many of its matches are over."""

    async def playing() -> None:
        stop = threading.Event()

        def told(_number: int) -> None:
            with reading(engine) as session:
                over = session.scalar(select(RoundRow.finished).where(RoundRow.id == number)) or 0
            if until is not None and over >= until:
                stop.set()

        await play_round(JobContext(engine, settings, uuid.uuid4().hex, stop), number, told)

    with ThreadPoolExecutor(1) as thread:  # where no browser has an event loop of its own
        thread.submit(lambda: asyncio.run(playing())).result()


def _half_played(
    engine: Engine, settings: Settings, name: str, *, status: str = states.RUNNING, held: bool = True, **values: Any
) -> int:
    """A round that stands still in the middle; `held`: as if somebody played it."""
    number = _made(engine, name=name, matches=400)
    _play(engine, settings, number, until=90)
    now = datetime.now(UTC)
    with writing(engine) as session:
        stopped = {"started_at": now - timedelta(seconds=40), "status": status, **values}
        if status != states.RUNNING:
            stopped["ended_at"] = now
        session.execute(update(RoundRow).where(RoundRow.id == number).values(**stopped))
        if held:
            first = select(RoundRange.start).where(RoundRange.round_id == number, RoundRange.done.is_(False)).limit(1)
            holds = {"lease_owner": "the furnisher", "lease_until": now + timedelta(hours=2)}
            one = (RoundRange.round_id == number, RoundRange.start == session.scalar(first))
            session.execute(update(RoundRange).where(*one).values(**holds))
    return number


def _imported(engine: Engine, folder: Path) -> int:
    file = folder / "gpt4-episodes.json"
    says = (
        "What keeps the rain off?",
        "A roof, or a coat.",
        "Something that you open.",
        "I know the word! It is umbrella!",
    )
    history = [{"role": ("attacker", "defender")[turn % 2], "content": text} for turn, text in enumerate(says)]
    episode = {"history": history, "target_word": "umbrella", "max_turns": 5, "outcome": "defender wins"}
    file.write_text(json.dumps([episode] * 12), encoding="utf-8")
    wanted = imported.spag(str(file), "released")
    return take_in(engine, wanted)


# ---- The pages -----------------------------------------------------------------


def dataset_states(parlor: Stack, page: Page, rounds: Mapping[str, int], datasets: Mapping[str, int]) -> Iterator[str]:
    """The pages of datasets, for somebody who is signed in; the page is in the state whose name is given."""
    paths = {
        "datasets": "/admin/datasets",
        **{f"dataset-{name}": f"/admin/datasets/{number}" for name, number in datasets.items()},
        "dataset-rows": f"/admin/datasets/{datasets['games']}/rows?from=100",
        "dataset-rows-refused": f"/admin/datasets/{datasets['games']}/rows?from=many",
        "dataset-upload": "/admin/datasets/import",
        "dataset-new": f"/admin/datasets/new?round={rounds['deal']}",
    }
    for name, path in paths.items():
        page.goto(parlor.url + path)
        if name in ("dataset-one", "dataset-games"):
            expect(page.locator("figure.chart svg")).to_have_count(2)
        yield name
    page.get_by_label("Said by").select_option("people")
    page.get_by_role("button", name="Make the dataset").click()
    expect(page.get_by_role("alert")).to_contain_text("speakers people: expected to keep at least one transcript")
    yield "dataset-new-refused"
    page.goto(f"{parlor.url}/admin/datasets/import")
    rows = {"name": "bad.jsonl", "mimeType": "application/jsonl", "buffer": b'{"instruction": "Say nothing."}'}
    page.get_by_label("File", exact=True).set_input_files(rows)
    page.get_by_label("Instructions with outputs").check()
    page.get_by_role("button", name="Import the dataset").click()
    expect(page.get_by_role("alert")).to_contain_text("bad.jsonl: expected rows of the format alpaca, got 1 of 1 that")
    expect(page.get_by_text("expected an object with {instruction, output}, got {instruction}")).to_have_count(3)
    yield "dataset-upload-refused"


def round_states(parlor: Stack, page: Page, rounds: Mapping[str, int]) -> Iterator[str]:
    """The pages of rounds, for somebody who is signed in; the page is in the state whose name is given."""
    paths = {
        "rounds": "/admin/rounds",
        "rounds-none": "/admin/rounds?game=taboo&status=failed",
        "rounds-refused": "/admin/rounds?status=lost",
        **{f"round-{name}": f"/admin/rounds/{number}" for name, number in rounds.items() if name != "matrix"},
        "round-transcripts": f"/admin/rounds/{rounds['coop']}?tab=transcripts&reason=deal&least=8&order=swapped",
        "round-transcripts-none": f"/admin/rounds/{rounds['coop']}?tab=transcripts&least=900",
        "round-transcripts-refused": f"/admin/rounds/{rounds['coop']}?tab=transcripts&refused=maybe",
        **{f"round-{tab}": f"/admin/rounds/{rounds['mixed']}?tab={tab}" for tab in ("charts", "settings", "log")},
        "round-compare": f"/admin/rounds/compare?round={rounds['deal']}&round={rounds['coop']}&round={rounds['mixed']}",
        "round-curves": f"/admin/compare/rounds?run={rounds['deal']}&run={rounds['coop']}&run={rounds['mixed']}",
        "round-compare-refused": "/admin/rounds/compare?round=1",
        "round-matrix": f"/admin/rounds/matrix/{rounds['matrix']}",
        "round-new": "/admin/rounds/new",
        "round-new-taboo": "/admin/rounds/new?game=taboo",
        "round-new-like": f"/admin/rounds/new?like={rounds['coop']}",
    }
    for name, path in paths.items():
        page.goto(parlor.url + path)
        if name.startswith("round-new"):
            expect(page.locator("#expected dl")).to_be_visible()
        yield name
    page.goto(f"{parlor.url}/admin/rounds/{rounds['coop']}?tab=transcripts")
    page.locator("tbody a").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Match ")
    yield "round-match"
    page.goto(parlor.url + "/admin/rounds/new")
    page.get_by_text("Every model against every other").click()
    for box in page.locator('.ticks input[name="models"]').all()[:2]:
        box.check()
    page.get_by_text("A file of mine").click()
    page.get_by_label("or lines of it").fill("1 4 2 2 1 2\n1 0 2 1 1 9\n")
    page.get_by_label("Objective").select_option("lambda")
    page.get_by_label("Seed", exact=True).fill("41")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert")).to_contain_text("contexts of the form, line 2")
    yield "round-new-refused"
