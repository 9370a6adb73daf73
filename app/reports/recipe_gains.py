"""The arms that a recipe run trains in different ways, and the gain of each, with one as the control."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase, either
from app.recipes.listing import RecipeStepLine
from app.recipes.outline import key_of
from app.recipes.sweep import SEED, Sweep
from app.reports.gains import GainArm, difference_of, gain_section, gains_of
from app.reports.origins import Origins
from app.reports.report import ReportSection

EVALUATE = "evaluate"  # the action of steps that measure a model


def recipe_gains(
    session: Session, lines: Sequence[RecipeStepLine], sweep: Sweep, origins: Origins, control: str | None
) -> list[ReportSection]:
    """A section for each game. The control is a step, swept values, or both; raises Invalid for any other.

    Values alone are the control in each game, for each step that has them.
    """
    arms = _arms_by_game(lines, sweep, origins)
    labels = list(dict.fromkeys(arm.label for found in arms.values() for arm in found))
    if control is not None and control not in {name for label in labels for name in (label, _values_of(label))}:
        nothing = Phrase("none, as no model was evaluated before and after a training")
        raise Invalid("control", expected=either(labels) if labels else nothing, got=control)
    sections = []
    for game, found in arms.items():
        pairs = [(arm, _control_of(arm, found, control)) for arm in found] if control else []
        apart = [
            (arm.label, difference_of(session, game, arm, beside))
            for arm, beside in pairs
            if beside is not None and beside is not arm
        ]
        section = gain_section(game, gains_of(session, game, found), apart)
        sections.append(replace(section, key=f"{section.key}-{game}") if len(arms) > 1 else section)
    return sections


def _control_of(arm: GainArm, arms: Sequence[GainArm], control: str) -> GainArm | None:
    """The arm that a control names for this arm; for values alone, that of the same step."""
    step = arm.label.partition(" ")[0]
    return next((each for each in arms if each.label in (control, f"{step} {control}")), None)


def _values_of(label: str) -> str:
    """The swept values in the label of an arm; its step if there are none."""
    return label.partition(" ")[2] or label


def _arms_by_game(lines: Sequence[RecipeStepLine], sweep: Sweep, origins: Origins) -> dict[str, list[GainArm]]:
    """The arms by game: each step that evaluates models in self-play, for each combination of swept values.

    The model before is that of the first evaluation outside a loop, or else of the arm's first; the one after is that
    of the last evaluation, and is one that the run has trained.
    """
    made = {each.model_id for each in origins.trainings}
    of_trained = {each.id for each in origins.rounds if each.model_0_id in made}
    games = {each.id: each.game for each in origins.rounds if each.model_0_id == each.model_1_id}
    swept = [axis.variable for axis in sweep.axes]
    before: dict[tuple[str, Any], int] = {}  # rounds by game and seed
    found: dict[tuple[str, str], dict[Any, list[int]]] = {}  # rounds by seed, for each arm of a game
    for line in lines:
        step = line.step
        if line.do != EVALUATE or step is None or step.number not in games or not line.result:
            continue
        game, seed = games[step.number], line.values.get(SEED)
        if not line.values.keys() - {SEED}:
            before.setdefault((game, seed), step.number)
        label = key_of(step.name, {name: line.values[name] for name in swept if name in line.values})
        found.setdefault((game, label), {}).setdefault(seed, []).append(step.number)
    arms: dict[str, list[GainArm]] = {}
    for (game, label), by_seed in found.items():
        ends = {
            seed: (before.get((game, seed)) or before.get((game, None)) or rounds[0], rounds[-1])
            for seed, rounds in by_seed.items()
        }
        trained = {seed: (first, last) for seed, (first, last) in ends.items() if first != last in of_trained}
        if trained:
            arms.setdefault(game, []).append(GainArm(label, trained))
    return arms
