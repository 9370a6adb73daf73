"""The rounds of a campaign: of its models with themselves, with partners, and those that they are evaluated in.

Nothing here commits.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.campaigns.job import CAMPAIGN
from app.campaigns.spec import CampaignSpec, EvaluationSpec
from app.games.base import JSON
from app.jobs.kind import requester_of
from app.models import Campaign, LanguageModel
from app.rounds import lifecycle as rounds
from app.rounds.plan import IN_ORDER, SHUFFLED, Pick, match_seed
from app.rounds.spec import RoundSampling, RoundSpec


def play(session: Session, row: Campaign, spec: CampaignSpec, number: int, model_id: int | None) -> int:
    """Create the round of an iteration's model with itself; its number."""
    matches = spec.matches_of_round - sum(spec.matches_against.values())
    return _create(
        session, row, (_model_name(session, model_id),), matches, match_seed(spec.seed, number),
        spec.sampling.options(), f"round {number}", row.material["play"],
    )  # fmt: skip


def teach(session: Session, row: Campaign, spec: CampaignSpec, number: int) -> int:
    """Create the round of the teacher with itself, sampled as its own row says; its number."""
    seed = match_seed(spec.seed, number)
    called = f"round {number}, {spec.teacher}"
    return _create(session, row, (str(spec.teacher),), spec.matches_of_round, seed, {}, called, row.material["play"])


def play_with(
    session: Session, row: Campaign, spec: CampaignSpec, number: int, model_id: int | None, partner: str
) -> int:
    """Create the round of an iteration's model with a partner, the seats swapped half of the time; its number."""
    seed = match_seed(match_seed(spec.seed, number), 1 + [*spec.play_with].index(partner))
    names = (_model_name(session, model_id), partner)
    called = f"round {number}, with {partner}"
    matches, sampling = spec.matches_against[partner], spec.sampling.options()
    return _create(session, row, names, matches, seed, sampling, called, row.material["play"])


def evaluate(
    session: Session, row: Campaign, spec: CampaignSpec, number: int, model_id: int | None, evaluation: EvaluationSpec
) -> int:
    """Create an evaluation of an iteration's model; its number.

    All evaluations of a kind are the same matches, so that models compare.
    """
    names, matches = [_model_name(session, model_id)], spec.evaluation
    if evaluation.partner:
        names.append(evaluation.partner)
        matches -= matches % 2  # as many from either seat
    called = f"evaluation {number}" + (f", {evaluation.label}" if evaluation.label else "")
    return _create(
        session, row, names, matches, match_seed(spec.seed, 0), evaluation.sampling,
        called, row.material["held_out"], pick=IN_ORDER,
    )  # fmt: skip


def _create(
    session: Session,
    row: Campaign,
    models: Sequence[str],
    matches: int,
    seed: int,
    sampling: JSON,
    called: str,
    items: Sequence[Any],
    *,
    pick: Pick = SHUFFLED,
) -> int:
    spec = RoundSpec(
        game=row.game,
        models=(models[0], models[-1]),
        swap_seats=len(models) > 1,
        matches=matches,
        seed=seed,
        config=row.spec["config"],
        lenient=row.spec.get("lenient", False),  # a campaign of before there was such reading goes on without
        pick=pick,
        sampling=RoundSampling.read(sampling),
        name=f"{row.name}, {called}"[:120],
        budget=CAMPAIGN.budget_left(session, row),
    )
    material = rounds.Material(f"campaign {row.id}", items) if items else None
    return rounds.create(session, spec, material, queued=row.queued, goes_on=True, requester=requester_of(row)).id


def _model_name(session: Session, model_id: int | None) -> str:
    return session.get_one(LanguageModel, model_id).name
