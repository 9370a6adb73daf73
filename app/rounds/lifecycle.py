"""The lifecycle of a round: created, begun, cancelled, resumed, ended. Nothing here commits.

`app/jobs/states.py` defines the transitions between states.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, insert, select
from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase, Verbatim, refusals_within
from app.core.validation import whole_number
from app.games import find_game
from app.games.base import JSON, Game
from app.games.config import LENIENT
from app.jobs import states
from app.jobs.holding import hold
from app.jobs.kind import Requester
from app.matches.lobby import new_seed
from app.models import LanguageModel, RoundMaterial, RoundRow
from app.registry import find_model, find_round_model, read_options
from app.registry.prices import check_budget
from app.registry.prompts import NO_PROMPT, settled_prompts
from app.rounds import exchanged_talk, ranges
from app.rounds.job import ROUND, SELFPLAY
from app.rounds.plan import RoundPlan, usual_pick
from app.rounds.returned_models import Names
from app.rounds.sampling import check_structured, player_of
from app.rounds.spec import MOST_MATCHES, RoundSpec

USUAL_MATCHES = 100
_LOCK = select(RoundRow.returned_models).where(RoundRow.id == bindparam("of_round")).with_for_update()


@dataclass(frozen=True, slots=True)
class Material:
    """Pieces of a game's material, and their source."""

    source: str
    items: Sequence[Any]


def create(
    session: Session,
    spec: RoundSpec,
    material: Material | None = None,
    *,
    queued: bool,
    goes_on: bool = False,
    requester: Requester | None = None,
) -> RoundRow:
    """Create a waiting round, for workers if it is `queued`.

    Raises NotFound for an unknown game or model, and Invalid for anything else that cannot be played. With `goes_on`,
    for a round that belongs to something already begun, models switched off or archived meanwhile are accepted.
    """
    whole = with_open_fields_filled(spec, material)
    seats = [spec.seats]
    return create_all(session, whole, seats, material, queued=queued, goes_on=goes_on, requester=requester)[0]


def create_all(
    session: Session,
    spec: RoundSpec,
    pairs: Sequence[tuple[str, str]],
    material: Material | None,
    *,
    queued: bool,
    goes_on: bool = False,
    requester: Requester | None = None,
) -> list[RoundRow]:
    """Create a round for each pair of models, by seat, in few statements, as they block all other writers.

    The spec is a settled one. Raises what `create` raises.
    """
    find = find_model if goes_on else find_round_model
    game = find_game(spec.game).name
    known = {name: find(session, game, name, "models") for name in sorted({name for pair in pairs for name in pair})}
    hold(session, known.values())
    prompts = settled_prompts(session, spec.prompts)
    if spec.cross_play and len(set(prompts)) > 1:
        raise Invalid("prompts", expected=Phrase("one shared by all models of a cross-play"), got=len(spec.prompts))
    rows = [_new_row(spec, [known[name] for name in pair], material, queued, requester) for pair in pairs]
    talk_of = None if spec.talk_of is None else exchanged_talk.checked(session, spec.talk_of, game)
    for row in rows:
        row.prompts = prompts or None
        row.talk_of = talk_of
    session.add_all(rows)
    session.flush()
    ranges.make_all(session, {row.id: row.matches for row in rows})
    if material is not None:
        _add_material(session, material, [row.id for row in rows])
    return rows


def with_open_fields_filled(spec: RoundSpec, material: Material | None) -> RoundSpec:
    """The spec with its open fields filled in: the number of matches, the seed, which is drawn, and the pick."""
    kind, matches = find_game(spec.game).material, spec.matches
    if matches is None:
        once = material is not None and spec.material is not None and kind is not None and kind.each_once
        matches = each_once(spec, material) if material is not None and once else USUAL_MATCHES
    seed = new_seed() if spec.seed is None else spec.seed
    return spec.model_copy(update={"matches": matches, "seed": seed, "pick": spec.pick or usual_pick(spec.game)})


def each_once(spec: RoundSpec, material: Material) -> int:
    """The number of matches that play each piece of the material once."""
    return len(material.items) * (2 if spec.swap_seats else 1)


def spec_of(session: Session, row: RoundRow) -> RoundSpec:
    """The spec of a round, as far as its row has it; its material is named by its source."""
    material = session.get(RoundMaterial, row.id)
    return RoundSpec.read(
        {
            **{name: getattr(row, name) for name in ("game", "matches", "seed", "swap_seats", "pick", "name")},
            "config": {name: value for name, value in row.config.items() if name != LENIENT},
            "lenient": row.config.get(LENIENT, False),
            "models": [model.name for model in seated(session, row)],
            "material": None if material is None else material.source,
            "prompts": [each or NO_PROMPT for each in row.prompts or ()],
            "talk_of": None if row.talk_of is None else str(row.talk_of),
            "sampling": row.sampling,
            "budget": {"usd": row.budget_usd, "tokens": row.budget_tokens},
        }
    )


def _add_material(session: Session, material: Material, numbers: Sequence[int]) -> None:
    """Store the material of rounds; as it may be long, the database copies it from the first to the others."""
    first, *others = numbers
    session.add(RoundMaterial(round_id=first, source=material.source[-300:], items=list(material.items)))
    session.flush()
    if others:
        kept = select(RoundRow.id, RoundMaterial.source, RoundMaterial.items)
        copies = kept.join(RoundMaterial, RoundMaterial.round_id == first).where(RoundRow.id.in_(others))
        session.execute(insert(RoundMaterial).from_select(["round_id", "source", "items"], copies))


def _new_row(
    spec: RoundSpec,
    models: Sequence[LanguageModel],
    material: Material | None,
    queued: bool,
    requester: Requester | None,
) -> RoundRow:
    """A playable round, not yet stored."""
    game = find_game(spec.game)
    matches = whole_number(spec.matches, "matches", 1, MOST_MATCHES)
    if spec.swap_seats and matches % 2:
        raise Invalid("matches", expected=Phrase("an even number where seats are swapped"), got=matches)
    sampling = spec.sampling.of_game(game.name)
    check_budget(spec.budget, models)
    for model in models:
        read_options(player_of(model, sampling))  # refused here rather than by each worker
    if spec.sampling.structured:
        check_structured(game.name, models)
    config = _checked_config(game, spec, material)
    return ROUND.new_row(
        queued=queued,
        requester=requester,
        name=_check_name(spec) or f"{models[0].name} and {models[1].name}",
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
        **spec.budget.columns,
    )


def _checked_config(game: Game[Any], spec: RoundSpec, material: Material | None) -> JSON:
    """The config shared by all matches, as given; the game must accept it."""
    config = {**({LENIENT: True} if spec.lenient else {}), **spec.config}
    with refusals_within("config"):
        read = game.config(config).to_json()
    kind = game.material
    if material is not None and kind is None:
        raise Invalid(
            "config",
            expected=Phrase("no material, of which %(game)s has none", game=game.name),
            got=Verbatim(material.source),
        )
    if material is not None and kind is not None and (drawn := kind.fields[0]) in read:
        raise Invalid(
            "config",
            expected=Phrase(
                "no %(drawn)s where %(source)s gives each match its own", drawn=drawn, source=material.source
            ),
            got=Phrase("one"),
        )
    return config


def _check_name(spec: RoundSpec) -> str:
    name = " ".join(spec.name.split())
    if not name.isprintable():
        raise Invalid("name", expected=Phrase("at most 120 characters on one line"), got=spec.name)
    return name


def plan_of(session: Session, row: RoundRow) -> RoundPlan:
    """What the matches of a round share."""
    material = session.get(RoundMaterial, row.id)
    items = () if material is None else material.items
    return RoundPlan(row.game, row.config, row.seed, row.swap_seats, row.pick, items)


def seated(session: Session, row: RoundRow) -> list[LanguageModel]:
    """The models of a round, by seat."""
    return [session.get_one(LanguageModel, number) for number in (row.model_0_id, row.model_1_id) if number is not None]


# ---- From state to state --------------------------------------------------------


def lock(session: Session, round_id: int) -> Names | None:
    """Lock the round's row until the transaction ends; call this before anything else that others might lock.

    Returns the names that its models have returned so far. They are read with the lock, so that names added by another
    worker are not lost.
    """
    return session.scalar(_LOCK, {"of_round": round_id})


def begin(session: Session, round_id: int) -> bool:
    """Mark a round as running when play begins. False if the round is not to be played, or not yet."""
    now = datetime.now(UTC)
    row = session.get(RoundRow, round_id, with_for_update=True)
    if row is None or row.status not in states.OPEN or (row.retry_at is not None and row.retry_at > now):
        return False
    row.status, row.retry_at = states.RUNNING, None
    row.started_at = row.started_at or now
    session.flush()
    return True


def finish_if_done(session: Session, round_id: int) -> bool:
    """End a round if nothing is left to play. The caller holds the lock on its row."""
    if not ranges.all_done(session, round_id):
        return False
    values = {"status": states.DONE, "ended_at": datetime.now(UTC), "error": None, "away_since": None}
    _update_if_status_in(session, round_id, states.LIVE, **values)
    return True


def fail(session: Session, round_id: int, error: str) -> None:
    """Stop a round that cannot continue until the problem in `error` has been fixed."""
    _update_if_status_in(session, round_id, states.OPEN, status=states.FAILED, ended_at=datetime.now(UTC), error=error)


def store_waiting_reason(session: Session, round_id: int, what: str | None) -> None:
    """Store on a round's row what it is waiting for; None if it no longer waits."""
    answered = {} if what is not None else {"away_model_id": None, "away_since": None}
    _update_if_status_in(session, round_id, (states.RUNNING,), error=what, **answered)


def release_slot(session: Session, round_id: int, model_id: int, away: float, pause: float, what: str) -> None:
    """Let workers play others until `pause` seconds from now: the model has not answered for `away` seconds.

    A round that another worker is playing stays running.
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
    _update_if_status_in(session, round_id, (states.RUNNING,), **values)


def away_seconds(row: RoundRow, model_id: int) -> float | None:
    """How long a model of the round has not answered, as far as workers have recorded it."""
    if row.away_since is None or row.away_model_id != model_id:
        return None
    return (datetime.now(UTC) - row.away_since).total_seconds()


def all_aborted(row: RoundRow) -> bool:
    """Whether a round is done without a result: every match was aborted because of models or us."""
    return row.status == states.DONE and row.aborted >= row.matches


def _update_if_status_in(session: Session, round_id: int, before: Sequence[str], **values: Any) -> None:
    ROUND.update(session, RoundRow.id == round_id, RoundRow.status.in_(before), **values)
