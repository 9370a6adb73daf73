"""Recipes for tests: short ones, runs of them, and what they came to without what differs between two runs."""

from pathlib import Path
from typing import Any

from sqlalchemy import Engine, func, select

from app.cli.jobs import run_job_here
from app.core.config import Settings
from app.core.extensions import reading, writing
from app.jobs.chained import AwaitedJob
from app.jobs.context import JobContext
from app.models import Dataset, LanguageModel, RecipeRun, RoundRow, TrainingJob
from app.recipes import lifecycle, steps
from app.recipes.job import RECIPE
from app.recipes.reader import load_recipe, parse_recipe
from app.recipes.spec import RecipeSpec
from app.rounds.job import ROUND
from tests.rounds import play

# Scripted players alone: each run takes a second.
GAMES = """\
recipe: games
version: 1
about: Rounds of scripted players, their rows, and a table over two seeds.
inputs: {player: scripted, seed: 7, seeds: [1, 2], turns: 2}
steps:
  - name: play
    do: round
    for: turn in 1..turns
    with: {game: negotiation, models: ["${player}"], matches: 6}
  - name: rows
    do: keep
    for: turn in 1..turns
    with: {rounds: ["${all.play.round}"], filter: all, style: compact}
  - name: measure
    do: evaluate
    for: [turn in 1..turns, seed in seeds]
    when: turn > 1
    with: {game: negotiation, model: "${player}", matches: 12, seed: "${seed}"}
  - name: table
    do: compare
    with: {of: "${all.measure.figures}", over: seed, figures: [score_mean, agreement_rate]}
"""
KEYS = (
    "play turn=1", "rows turn=1", "play turn=2", "rows turn=2", "measure turn=2, seed=1", "measure turn=2, seed=2",
    "table",
)  # fmt: skip


def make_run(engine: Engine, text: str = GAMES, name: str = "", *, queued: bool = False, **inputs: Any) -> int:
    """A run that waits; gives its number."""
    return _made(engine, parse_recipe(text, "games.yaml", inputs), RecipeSpec(name=name, inputs=inputs), queued)


def make_run_of_file(engine: Engine, path: Path, **inputs: Any) -> int:
    """The same of a file, with those beside it."""
    return _made(engine, load_recipe(path, inputs), RecipeSpec(inputs=inputs), queued=False)


def _made(engine: Engine, loaded: Any, spec: RecipeSpec, queued: bool) -> int:
    with reading(engine) as session:
        new = lifecycle.prepare(session, loaded, spec)
    with writing(engine) as session:
        return lifecycle.create(session, new, queued=queued).id


def carry_on(engine: Engine, settings: Settings, number: int, jobs: int = 1000) -> AwaitedJob | None:
    """Go on with a run in this process, until it is over or so many jobs were run; gives the one that it waits for."""
    for done in range(jobs + 1):
        part = steps.take_steps(JobContext(engine, settings, f"owner {number} {done}"), number)
        if part is None or done == jobs:
            return part
        if part.kind is ROUND:
            play(engine, settings, part.number)
        else:
            run_job_here(part.kind, part.number)
    return None


def row_of(engine: Engine, number: int) -> RecipeRun:
    with reading(engine) as session:
        row = session.get_one(RecipeRun, number)
        session.expunge(row)
    return row


def came_of(engine: Engine, number: int) -> dict[str, Any]:
    """Each step of a run by its key: its seed and settings, its figures, and what it made, by hashes."""
    found: dict[str, Any] = {}
    with reading(engine) as session:
        for step in RECIPE.steps_of(session, number):
            named = ("name", "rounds", "dataset", "base", "model", "models", "version", "of", "beside")
            asked = {key: value for key, value in step.spec.items() if key not in named}
            made: Any = None
            if step.dataset_id is not None:
                row = session.get_one(Dataset, step.dataset_id)
                made = row.rows, row.words, row.figures["scores"]
            elif step.kind == "training":
                model = session.get_one(TrainingJob, step.number).model_id
                made = session.get_one(LanguageModel, model).options["sha256"]
            elif step.kind == "round":
                played = session.get_one(RoundRow, step.number)
                made = played.seed, played.finished, played.moves
            figures = step.figures
            if figures is not None and "rows" in figures:
                figures = {**figures, "rows": [{**each, "model": None} for each in figures["rows"]]}
            found[step.key] = asked, figures, made, step.ended_at is not None
    return found


def count_of(engine: Engine, table: Any) -> int:
    with reading(engine) as session:
        return session.scalar(select(func.count()).select_from(table)) or 0
