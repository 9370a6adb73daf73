"""Campaigns for tests: local models that nobody can load, rounds that others played in their place, made-up figures."""

import math
import random
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine, func, select, update
from sqlalchemy.orm import Session

from app.campaigns import lifecycle
from app.campaigns.material import split_material
from app.campaigns.spec import CampaignSpec
from app.core.config import Settings
from app.core.extensions import writing
from app.games.base import JSON
from app.games.negotiation.contexts import generate_context
from app.games.negotiation.material import pieces_of
from app.models import Campaign, Dataset, LanguageModel, MatchRow, RecipeStep, RoundRow, SeatRow, TrainingJob
from app.recipes.outline import key_of
from app.registry import add_local_model, get_model
from app.rounds.lifecycle import Material
from app.web.admin.campaigns_new import first_values
from app.web.admin.spec_form import filled_in
from tests.datasets import cut
from tests.rounds import make_round, play


def add_local(engine: Engine, name: str, path: str | None = None) -> int:
    """Register a local model whose checkpoint nobody looks for; gives its number."""
    options = {"path": path or f"checkpoints/{name}", "sha256": "0" * 64}
    with writing(engine) as session:
        return add_local_model(session, name, None, ["negotiation", "taboo"], options, prompt_style="compact").id


def round_of(engine: Engine, settings: Settings, *models: str, matches: int = 6, **wish: Any) -> int:
    """A round that was played, as if by these models; scripted ones have sat in for them."""
    number = make_round(engine, "scripted", matches=matches, **wish)
    play(engine, settings, number)
    with writing(engine) as session:
        ids = [get_model(session, name).id for name in (models[0], models[-1])]
        sat = SeatRow.match_id.in_(select(MatchRow.id).where(MatchRow.round_id == number))
        for seat, model_id in enumerate(ids):
            session.execute(update(SeatRow).where(sat, SeatRow.seat == seat).values(language_model_id=model_id))
        session.execute(
            update(RoundRow).where(RoundRow.id == number).values(model_0_id=ids[0], model_1_id=ids[1], name=models[0])
        )
    return number


def sit_in(engine: Engine, settings: Settings, round_id: int) -> None:
    """Play a round that there is with scripted players, in the seats of its models."""
    with writing(engine) as session:
        row = session.get_one(RoundRow, round_id)
        own, swapped = (row.model_0_id, row.model_1_id), row.swap_seats
        row.model_0_id = row.model_1_id = get_model(session, "scripted").id
    play(engine, settings, round_id)
    with writing(engine) as session:
        row = session.get_one(RoundRow, round_id)
        row.model_0_id, row.model_1_id = own
        matches = session.execute(select(MatchRow.id, MatchRow.index).where(MatchRow.round_id == round_id)).all()
        for match, index in matches:
            seats = own[::-1] if swapped and index % 2 else own
            for seat, model_id in enumerate(seats):
                session.get_one(SeatRow, (match, seat)).language_model_id = model_id


def pretend_trained(engine: Engine, job_id: int) -> None:
    """End a training as if it had been run: its model has the weights of its base, and a hash of its own."""
    with writing(engine) as session:
        row = session.get_one(TrainingJob, job_id)
        base = session.get_one(LanguageModel, row.base_id)
        options = {**base.options, "sha256": f"{job_id:064d}"}
        made = add_local_model(session, row.name, None, base.games, options, prompt_style=str(base.prompt_style))
        row.model_id, row.status = made.id, "done"


def dataset_of(engine: Engine, settings: Settings, *rounds: int, name: str = "rows") -> Dataset:
    """All transcripts of these rounds."""
    return cut(engine, settings.home, name, rounds=list(rounds), filter="all", style="compact")


def job_of(
    engine: Engine, dataset: Dataset, name: str, base: str | None, status: str = "done", **values: Any
) -> TrainingJob:
    """A training as if it had been run; one that is done has made a model."""
    model_id = add_local(engine, name) if status == "done" else None
    with writing(engine) as session:
        row = TrainingJob(
            name=name, method="sft" if base else "tiny", backend="local", dataset_id=dataset.id,
            base_id=base and get_model(session, base).id, config={}, status=status, model_id=model_id,
            created_at=datetime.now(UTC), **values,
        )  # fmt: skip
        session.add(row)
        session.flush()
        session.expunge(row)
    return row


def campaign_of(engine: Engine, base: str, name: str = "loop", *, queued: bool = False, **spec: Any) -> int:
    """A campaign that waits, with a few contexts; gives its number."""
    small = {"game": "negotiation", "iterations": 3, "matches": 6, "evaluation": 4}
    alone = {"evaluation_temperature": "none", "partners": []}
    wanted = CampaignSpec.read({**small, **alone, "seed": 7, **spec, "base": base, "name": name})
    given = _contexts() if wanted.game == "negotiation" else None
    material = split_material(wanted.game, given, wanted.evaluation, wanted.seed)
    with writing(engine) as session:
        return lifecycle.create(session, wanted, material, queued=queued).id


def campaign_that_awaits(engine: Engine, awaited: int, *, spent: int | None = None) -> int:
    """A queued campaign that waits for a round, and may spend a dollar; `spent` is a round that it has begun before."""
    add_local(engine, "base")
    number = campaign_of(engine, "base", queued=True)
    with writing(engine) as session:
        session.get_one(Campaign, number).budget_usd = 1.0
        if spent is not None:
            step(session, number, 0, "evaluate", kind="round", number=spent)
        step(session, number, 1, "play", kind="round", number=awaited)
    return number


def campaign_form(game: str, base: str, preset: str | None = None) -> dict[str, Any]:
    """The form of campaigns, as a browser sends it when nothing was changed."""
    filled = filled_in(CampaignSpec, {**first_values(game, preset), "base": base})
    return {**{name: value for name, value in filled.items() if value != {}}, "action": "start"}


def _contexts() -> Material:
    """Some, because to draw all takes half a second."""
    rng = random.Random(1)
    return Material("a test", pieces_of(generate_context(rng) for _ in range(100)))


def change(engine: Engine, campaign_id: int, number: int, **values: Any) -> None:
    """Write down what an iteration of a campaign has come to, as its steps."""
    model, figures = values.get("model_id"), values.get("figures")
    with writing(engine) as session:
        if number and model is not None and "job_id" not in values:
            values["job_id"] = training_of(session, model)
        ending = "" if number else "_base"
        for column, (name, kind) in _STEPS.items():
            made: dict[str, Any] = {}
            if column in values:
                made = {"dataset_id": values[column]} if kind is None else {"kind": kind, "number": values[column]}
            if name == "evaluate" and figures is not None:
                made["figures"] = figures
            if made:
                step(session, campaign_id, number, name + ending, **made)


_STEPS = {
    "round_id": ("play", "round"), "dataset_id": ("keep", None), "job_id": ("train", "training"),
    "evaluation_id": ("evaluate", "round"),
}  # fmt: skip


def step(session: Session, campaign_id: int, iteration: int, name: str, **made: Any) -> None:
    """Write down a step of a campaign as its newest; all before it are over, and so is one that waits for nothing."""
    values, own = {"iteration": iteration} if iteration else {}, RecipeStep.campaign_id == campaign_id
    key, now = key_of(name, values), datetime.now(UTC)
    session.execute(update(RecipeStep).where(own, RecipeStep.ended_at.is_(None)).values(ended_at=now))
    row = session.scalar(select(RecipeStep).where(own, RecipeStep.key == key))
    if row is None:
        place = session.scalar(select(func.count()).where(own)) or 0
        row = RecipeStep(campaign_id=campaign_id, key=key, place=place, name=name, values=values, spec={}, begun_at=now)
        session.add(row)
    for field, value in made.items():
        setattr(row, field, value)
    row.ended_at = now if made.get("kind") is None or made.get("figures") else None
    session.flush()


def training_of(session: Session, model_id: int) -> int:
    """The training that has made a model, written down if there is none."""
    known = session.scalar(select(TrainingJob.id).where(TrainingJob.model_id == model_id).limit(1))
    if known is not None:
        return known
    now, counted = datetime.now(UTC), dict.fromkeys(("size", "rows", "words", "own_words"), 0)
    dataset = Dataset(name=f"of {model_id}", version=1, spec={}, sha256="", figures={}, created_at=now, **counted)
    session.add(dataset)
    session.flush()
    row = TrainingJob(
        name=f"of {model_id}", method="sft", backend="local", config={}, status="done", model_id=model_id,
        dataset_id=dataset.id, created_at=now,
    )  # fmt: skip
    session.add(row)
    session.flush()
    return row.id


def made_up(number: int, game: str = "negotiation") -> JSON:
    """Figures as an evaluation gives them, better with every iteration."""
    rate = 1 - 0.7 * math.exp(-number / 2)
    if game == "taboo":
        rates = {"attacker_wins_rate": rate / 2, "defender_wins_rate": rate / 3, "tied_rate": 0.3 * (1 - rate)}
        rates |= {"rules_broken_rate": 0.1, "abort_rate": 0.05}
        means = {"attacker_score_mean": rate / 4, "defender_score_mean": -rate / 5, "turns_mean": 4 - rate}
    else:
        rates = {"agreement_rate": rate, "agreed_pareto_rate": 0.3 + rate / 3, "pareto_rate": rate * (0.3 + rate / 3)}
        rates |= {"abort_rate": 0.1 * (1 - rate)}
        means = {"score_mean": 6 * rate, "agreed_score_mean": 5.5 + rate / 2, "messages_mean": 5 + number}
    spans = {**dict.fromkeys(rates, 0.03), **dict.fromkeys(means, 0.2)}
    return {
        name: {"value": value, "low": value - spans[name], "high": value + spans[name]}
        for name, value in {**rates, **means}.items()
    }


def model_named(engine: Engine, name: str) -> LanguageModel:
    with writing(engine) as session:
        row = get_model(session, name)
        session.expunge(row)
    return row
