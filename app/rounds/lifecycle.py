"""A round's life: created, begun, cancelled, resumed, ended. Nothing here commits.

`app/jobs/states.py` says how the states follow each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase, Verbatim, either
from app.core.validation import whole_number
from app.games import find_game
from app.games.base import JSON, Game
from app.jobs import states
from app.jobs.kind import Requester
from app.models import LanguageModel, RoundMaterial, RoundRow
from app.registry import find_model, find_round_model, read_options
from app.rounds import ranges
from app.rounds.job import ROUND, SELFPLAY
from app.rounds.plan import IN_ORDER, PICKS, RoundPlan
from app.rounds.sampling import read_sampling, spec_of

MOST_MATCHES = 1_000_000


@dataclass(frozen=True, slots=True)
class Material:
    """Pieces of a game's material, and where they were read from."""

    source: str
    items: Sequence[Any]


@dataclass(frozen=True, slots=True)
class RoundSpec:
    """What to run: a round. `models` are names of the registry, of seat 0 and seat 1."""

    game: str
    models: tuple[str, str]
    matches: Any
    seed: int
    config: Mapping[str, Any] = field(default_factory=dict)
    swap_seats: bool = False
    pick: str = IN_ORDER
    material: Material | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""


def create(
    session: Session, spec: RoundSpec, *, queued: bool, goes_on: bool = False, requester: Requester | None = None
) -> RoundRow:
    """Write down a round that waits to be played, by workers if it is `queued`.

    Raises NotFound for an unknown game or model, and Invalid for all else that cannot be played. A round that belongs
    to something begun `goes_on` with models that have been switched off or archived meanwhile.
    """
    return create_all(session, [spec], queued=queued, goes_on=goes_on, requester=requester)[0]


def create_all(
    session: Session,
    specs: Sequence[RoundSpec],
    *,
    queued: bool,
    goes_on: bool = False,
    requester: Requester | None = None,
) -> list[RoundRow]:
    """Write down several rounds in a few statements, because nobody else can write meanwhile.

    Raises what `create` raises.
    """
    find = find_model if goes_on else find_round_model
    names = {(spec.game, name) for spec in specs for name in spec.models}
    known = {(game, name): find(session, find_game(game).name, name) for game, name in sorted(names)}
    rows = [_new_row(spec, [known[spec.game, name] for name in spec.models], queued, requester) for spec in specs]
    session.add_all(rows)
    session.flush()
    ranges.make_all(session, {row.id: row.matches for row in rows})
    sharing: dict[int, list[int]] = {}
    for row, spec in zip(rows, specs, strict=True):
        if spec.material is not None:
            sharing.setdefault(id(spec.material), []).append(row.id)
    materials = {id(spec.material): spec.material for spec in specs if spec.material is not None}
    for key, numbers in sharing.items():
        _add_material(session, materials[key], numbers)
    return rows


def _add_material(session: Session, material: Material, numbers: Sequence[int]) -> None:
    """Give rounds their material; the database copies it, which may be long, from the first to the others."""
    first, *others = numbers
    session.add(RoundMaterial(round_id=first, source=material.source[-300:], items=list(material.items)))
    session.flush()
    if others:
        kept = select(RoundRow.id, RoundMaterial.source, RoundMaterial.items)
        copies = kept.join(RoundMaterial, RoundMaterial.round_id == first).where(RoundRow.id.in_(others))
        session.execute(insert(RoundMaterial).from_select(["round_id", "source", "items"], copies))


def _new_row(spec: RoundSpec, models: Sequence[LanguageModel], queued: bool, requester: Requester | None) -> RoundRow:
    """A round that can be played, not yet written down."""
    game = find_game(spec.game)
    matches = whole_number(spec.matches, "matches", 1, MOST_MATCHES)
    if spec.swap_seats and matches % 2:
        raise Invalid("matches", expected=Phrase("an even number where seats are swapped"), got=matches)
    if spec.pick not in PICKS:
        raise Invalid("pick", expected=either(PICKS), got=spec.pick)
    sampling = read_sampling(spec.sampling)
    for model in models:
        read_options(spec_of(model, sampling))  # refused here rather than by every worker
    config = _checked_config(game, spec)
    return ROUND.new_row(
        queued=queued,
        requester=requester,
        name=_check_name(spec),
        game=game.name,
        source=SELFPLAY,
        config=config,
        model_0_id=models[0].id,
        model_1_id=models[1].id,
        matches=matches,
        seed=spec.seed,
        swap_seats=spec.swap_seats,
        pick=spec.pick,
        sampling=sampling,
    )


def _checked_config(game: Game[Any], spec: RoundSpec) -> JSON:
    """The config that all matches share, as it was given; the game has to take it."""
    config = dict(spec.config)
    read = game.config(config).to_json()
    kind = game.material
    if spec.material is not None and kind is None:
        raise Invalid(
            "config",
            expected=Phrase("no material, of which %(game)s has none", game=game.name),
            got=Verbatim(spec.material.source),
        )
    if spec.material is not None and kind is not None and (drawn := kind.fields[0]) in read:
        raise Invalid(
            "config",
            expected=Phrase(
                "no %(drawn)s where %(source)s gives each match its own", drawn=drawn, source=spec.material.source
            ),
            got=Phrase("one"),
        )
    return config


def _check_name(spec: RoundSpec) -> str:
    name = " ".join(spec.name.split())
    if len(name) > 120 or not name.isprintable():
        raise Invalid("name", expected=Phrase("at most 120 characters on one line"), got=spec.name)
    return name or f"{spec.models[0]} and {spec.models[1]}"


def plan_of(session: Session, row: RoundRow) -> RoundPlan:
    """What the matches of a round have in common."""
    material = session.get(RoundMaterial, row.id)
    items = () if material is None else material.items
    return RoundPlan(row.game, row.config, row.seed, row.swap_seats, row.pick, items)


def seated(session: Session, row: RoundRow) -> list[LanguageModel]:
    """The models of a round, by seat."""
    return [session.get_one(LanguageModel, number) for number in (row.model_0_id, row.model_1_id) if number is not None]


# ---- From state to state --------------------------------------------------------


def lock(session: Session, round_id: int) -> None:
    """Keep others from the round's row until the transaction ends; before anything else that they might lock."""
    session.execute(select(RoundRow.id).where(RoundRow.id == round_id).with_for_update())


def begin(session: Session, round_id: int) -> bool:
    """Somebody begins to play. False if the round is not to be played, or not yet."""
    now = datetime.now(UTC)
    row = session.get(RoundRow, round_id, with_for_update=True)
    if row is None or row.status not in states.OPEN or (row.retry_at is not None and row.retry_at > now):
        return False
    row.status, row.retry_at = states.RUNNING, None
    row.started_at = row.started_at or now
    session.flush()
    return True


def finish_if_done(session: Session, round_id: int) -> bool:
    """End a round of which nothing is left. Whoever calls this holds the lock on its row."""
    if not ranges.all_done(session, round_id):
        return False
    values = {"status": states.DONE, "ended_at": datetime.now(UTC), "error": None, "away_since": None}
    _set(session, round_id, states.LIVE, **values)
    return True


def fail(session: Session, round_id: int, error: str) -> None:
    """Stop a round that cannot go on until somebody has mended what `error` says."""
    _set(session, round_id, states.OPEN, status=states.FAILED, ended_at=datetime.now(UTC), error=error)


def store_waiting_reason(session: Session, round_id: int, what: str | None) -> None:
    """Keep on a round's row what it waits for, or that it waits no more."""
    answered = {} if what is not None else {"away_model_id": None, "away_since": None}
    _set(session, round_id, (states.RUNNING,), error=what, **answered)


def release_slot(session: Session, round_id: int, model_id: int, away: float, pause: float, what: str) -> None:
    """Let workers play others until `pause` seconds from now: the model has given no answer for `away` seconds.

    A round that another worker plays stays a running one.
    """
    now = datetime.now(UTC)
    values: dict[str, Any] = {
        "error": what,
        "away_model_id": model_id,
        "away_since": now - timedelta(seconds=away),
        "retry_at": now + timedelta(seconds=pause),
    }
    if not ROUND.has_worker(session, ROUND.get(session, round_id)):
        values["status"] = states.WAITING
    _set(session, round_id, (states.RUNNING,), **values)


def away_seconds(row: RoundRow, model_id: int) -> float | None:
    """For how long a model of the round has given no answer, as far as workers have written it down."""
    if row.away_since is None or row.away_model_id != model_id:
        return None
    return (datetime.now(UTC) - row.away_since).total_seconds()


def all_aborted(row: RoundRow) -> bool:
    """Whether a round is done and has nothing to show for it: models or we broke off every match."""
    return row.status == states.DONE and row.aborted >= row.matches


def _set(session: Session, round_id: int, before: Sequence[str], **values: Any) -> None:
    ROUND.update(session, RoundRow.id == round_id, RoundRow.status.in_(before), **values)
