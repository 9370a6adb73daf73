"""The origins of a result: rounds, trainings, datasets and models, with their seeds, hashes and prompts."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session, defer

from app import __version__
from app.analysis.language import ENGLISH
from app.analysis.losses import loss_title, points_of
from app.analysis.overlaid import MOST, Smoothing, overlaid
from app.core.commit import Commit
from app.finetuning.config import LOCAL
from app.finetuning.job import TRAINING
from app.finetuning.listing import events_of, is_by_token
from app.games import GAMES
from app.jobs.spec import SpecPart, fields_of
from app.models import (
    Assessment,
    BenchmarkJob,
    Dataset,
    GenerationRow,
    LanguageModel,
    MatchRow,
    RecipeStep,
    RoundMaterial,
    RoundRow,
    SeatRow,
    Society,
    TrainingJob,
)
from app.players.local.options import resolve
from app.players.prompts import FOLDER
from app.recipes.stepped import JOBS_OF_STEPS
from app.reports.report import FoldedText, ReportFigure, ReportSection, ReportTable, plain_table
from app.rounds.job import ROUND, SELFPLAY
from app.society.job import SOCIETY

_MOST_PROMPTS = 12
_NUMBER = re.compile(r"\d+")
NONE = "–"


class ReportContext(NamedTuple):
    """The context of a report: the home folder, the commit of the program if known, and its control."""

    home: Path
    commit: Commit | None
    control: str | None = None  # what the result is compared with, for subjects that can have one


@dataclass(frozen=True, slots=True)
class Origins:
    """The rows from which a result was made, each kind ordered by number."""

    rounds: Sequence[RoundRow] = ()
    trainings: Sequence[TrainingJob] = ()
    societies: Sequence[Society] = ()
    assessments: Sequence[Assessment] = ()
    benchmarks: Sequence[BenchmarkJob] = ()
    datasets: Sequence[Dataset] = ()
    models: Sequence[LanguageModel] = ()

    @property
    def games(self) -> list[str]:
        """The games that were played, by name."""
        return sorted({each.game for each in self.rounds} & set(GAMES))


# ---- Reading -----------------------------------------------------------------------


def origins_of_steps(session: Session, steps: Iterable[RecipeStep], models: Collection[int] = ()) -> Origins:
    """The jobs, datasets and models of these steps, with further models by number."""
    steps = [*steps]
    jobs = {kind: [step.number for step in steps if step.kind == kind and step.number] for kind in JOBS_OF_STEPS}
    made = {number for step in steps for number in (step.dataset_id, step.realignment_id) if number}
    return origins_of(session, jobs, models, made)


def origins_of(
    session: Session, jobs: dict[str, list[int]], models: Collection[int] = (), datasets: Collection[int] = ()
) -> Origins:
    """The origins of jobs given by kind and number."""
    found: dict[str, list[Any]] = {
        kind.name: _by_number(session, kind.table, jobs.get(kind.name, ())) for kind in JOBS_OF_STEPS.values()
    }
    rounds, trainings, societies = found[ROUND.name], found[TRAINING.name], found[SOCIETY.name]
    wanted = {*models}
    wanted |= {number for row in rounds for number in (row.model_0_id, row.model_1_id)}
    wanted |= {number for row in trainings for number in (row.base_id, row.model_id)}
    wanted |= {each["model_id"] for row in societies for each in (*row.agents, *row.observers)}
    wanted |= {number for row in found["assessment"] for number in (row.model_id, row.base_id)}
    wanted |= {each["model_id"] for row in found["assessment"] for each in row.raters}
    wanted |= {row.model_id for row in found["benchmark"]}
    return Origins(
        rounds, trainings, societies, found["assessment"], found["benchmark"],
        _by_number(session, Dataset, {*datasets, *(row.dataset_id for row in trainings)}),
        _by_number(session, LanguageModel, wanted - {None}),
    )  # fmt: skip


def _by_number(session: Session, table: Any, numbers: Collection[int | None]) -> list[Any]:
    found = select(table).where(table.id.in_(numbers)).order_by(table.id)
    return [*session.scalars(found.options(defer(table.log)) if table is TrainingJob else found)]


# ---- Versions and hashes -------------------------------------------------------------


def versions_section(session: Session, origins: Origins, context: ReportContext, *more: Sequence[str]) -> ReportSection:
    """The origins of the figures: versions, and the SHA-256 of material, datasets and models."""
    commit = "commit unknown"
    if context.commit is not None:
        commit = f"commit {context.commit.sha}, {'with' if context.commit.changed else 'no'} local changes"
    rows = [
        ("Parlor", f"{__version__}, {commit}", NONE),
        *((f"Game {name}", f"rules {GAMES[name].version}", NONE) for name in origins.games),
        *_materials(session, origins.rounds),
        *more,
        *((f"Dataset {row.reference}", _rows_of(row), row.sha256 or NONE) for row in origins.datasets),
        *((f"Model {row.name}", _made_how(row, origins), row.options.get("sha256", NONE)) for row in origins.models),
        *_training_versions(origins, context.home),
    ]
    caption = "What the figures were made with."
    return ReportSection(
        "versions",
        "Versions and hashes",
        tables=[plain_table("versions", caption, ("What", "Version or value", "SHA-256"), rows)],
    )


def _rows_of(row: Dataset) -> str:
    gone = "" if row.unusable_at is None else "; withdrawn, as a person in it took that back"
    return f"{row.rows} {'row' if row.rows == 1 else 'rows'}{gone}"


def _materials(session: Session, rounds: Sequence[RoundRow]) -> Iterator[tuple[str, str, str]]:
    """The material of rounds, each distinct content once."""
    seen = set()
    for row in rounds:
        material = session.get(RoundMaterial, row.id)
        if material is None or not material.items:
            continue
        digest = hashlib.sha256(json.dumps(material.items, sort_keys=True).encode()).hexdigest()
        if digest not in seen:
            seen.add(digest)
            yield f"Material of round {row.id}", f"{material.source}: {len(material.items)} as JSON", digest


def _made_how(row: LanguageModel, origins: Origins) -> str:
    """What a model is, and for one trained here, by which job, from which base and on which dataset."""
    job = next((each for each in origins.trainings if each.model_id == row.id), None)
    if job is not None:
        names = {each.id: each.name for each in origins.models}
        datasets = {each.id: each.reference for each in origins.datasets}
        base = f" from {names[job.base_id]}" if job.base_id in names else ""
        return f"training {job.id}, {job.method}{base} on {datasets.get(job.dataset_id, 'a dataset')}"
    if row.kind == "api":
        answered = sorted({
            name for each in origins.rounds for name in (each.returned_models or {}).get(str(row.id), ())
        })  # fmt: skip
        called = f", called itself {', '.join(answered)}" if answered else ""
        return f"API, asked as {row.options.get('model', 'unknown')}{called}"
    return f"scripted, {json.dumps(row.options, sort_keys=True)}" if row.kind == "scripted" else row.kind


def _training_versions(origins: Origins, home: Path) -> Iterator[tuple[str, str, str]]:
    """The software versions of local trainings, from their checkpoints if these still exist; each set once."""
    made = {row.model_id for row in origins.trainings if row.backend == LOCAL}
    seen = []
    for row in origins.models:
        if row.id in made and row.kind == "local":
            try:
                facts = json.loads((resolve(home, row.options["path"]) / "parlor.json").read_text(encoding="utf-8"))
                versions = dict(facts["versions"])
            except (OSError, ValueError, KeyError, TypeError):
                continue
            if versions not in seen:
                seen.append(versions)
                said = ", ".join(f"{name} {version}" for name, version in versions.items())
                yield f"Training of {row.name}", said, NONE


# ---- Seeds, settings and prompts ------------------------------------------------------


def seeds_sentence(origins: Origins, *more: str) -> str:
    """All seeds, in a sentence."""
    parts = [
        *more,
        *(f"round {row.id}: {row.seed}" for row in origins.rounds if row.source == SELFPLAY),
        *(f"training {row.id}: {row.config['seed']}" for row in origins.trainings if "seed" in row.config),
        *(f"society {row.id}: {row.config['seed']}" for row in origins.societies if "seed" in row.config),
        *(f"assessment {row.id}: {row.seed}" for row in origins.assessments),
    ]
    return f"Seeds: {'; '.join(parts)}." if parts else "No seed was drawn."


def settings_table(name: str, caption: str, spec: SpecPart) -> ReportTable:
    """The requested settings: each field of a spec with its title and value."""
    return plain_table(name, caption, ("Setting", "Value"), [*_titled_settings(spec)])


def differing_settings(name: str, caption: str, heads: Sequence[str], spec: SpecPart, other: SpecPart) -> ReportTable:
    """The fields in which two specs of a kind differ, with the value of each."""
    own, others = dict(_titled_settings(spec)), dict(_titled_settings(other))
    titles = [title for title in {**own, **others} if own.get(title) != others.get(title)]
    rows = [(title, own.get(title, NONE), others.get(title, NONE)) for title in titles]
    return plain_table(name, caption, ("Setting", *heads), rows)


def _titled_settings(spec: SpecPart, before: str = "") -> Iterator[tuple[str, str]]:
    for name, schema in fields_of(type(spec)).items():
        value, title = getattr(spec, name), f"{before}{schema.get('title', name)}"
        if isinstance(value, SpecPart):
            yield from _titled_settings(value, f"{title}: ")
        else:
            yield title, _in_words(value)


def _in_words(value: Any) -> str:
    match value:
        case None | () | [] | {}:
            return NONE
        case bool():
            return "yes" if value else "no"
        case tuple() | list():
            return ", ".join(_in_words(each) for each in value)
        case dict():
            return "; ".join(f"{name} = {_in_words(each)}" for name, each in value.items())
        case float():
            return f"{value:g}"
    return str(value)


def prompts_and_configs(session: Session, origins: Origins) -> list[FoldedText]:
    """The prompts of rounds, societies and assessments, and the config of each training, as JSON."""
    configs = [
        FoldedText(f"Training {row.id}: {row.name}, {row.method}", as_json({"method": row.method, **row.config}))
        for row in origins.trainings
    ]
    return [*_prompts_of(session, origins.rounds), *_chat_prompts(origins), *configs]


def _prompts_of(session: Session, rounds: Sequence[RoundRow]) -> list[FoldedText]:
    """The exact first prompts of models in the first match of each round, for the model that begins and the one that
    follows: for the former one of each wording, regardless of numbers, and for the latter one.

    Only from self-play: nothing that a person wrote is in them.
    """
    numbers = [row.id for row in rounds if row.source == SELFPLAY]
    calls = session.execute(
        select(
            MatchRow.round_id,
            SeatRow.role,
            GenerationRow.ply,
            GenerationRow.model,
            GenerationRow.prompt,
            GenerationRow.sampling,
        )
        .join(MatchRow, MatchRow.id == GenerationRow.match_id)
        .join(SeatRow, (SeatRow.match_id == MatchRow.id) & (SeatRow.seat == GenerationRow.seat))
        .where(MatchRow.round_id.in_(numbers), MatchRow.index == 0)
        .where(GenerationRow.ply <= 1, GenerationRow.attempt == 0)
        .order_by(MatchRow.round_id, GenerationRow.ply, GenerationRow.id)
    )
    found: dict[str, FoldedText] = {}
    for round_id, role, ply, model, prompt, sampling in calls:
        text = "\n\n".join(f"[{each['role']}]\n{each['content']}" for each in prompt)
        # Prompts of later moves contain what was said before, and so differ in each match.
        wording = _NUMBER.sub("#", prompt[0]["content"]) if prompt and not ply else ""
        key = f"{role} {ply} {wording}"
        if key not in found and len(found) < _MOST_PROMPTS:
            digest = hashlib.sha256(json.dumps(prompt, sort_keys=True).encode()).hexdigest()
            title = f"Prompt of {model} as {role} in round {round_id} (sha256 {digest[:12]}…)"
            found[key] = FoldedText(title, f"{text}\n\n[sampling]\n{as_json(sampling)}")
    return [*found.values()]


def _chat_prompts(origins: Origins) -> list[FoldedText]:
    """The prompts of societies and assessments with their placeholders, each template once."""
    rows: list[Any] = [*origins.societies, *origins.assessments]
    paths = {row.template: FOLDER / "society" / f"{row.template}.txt" for row in rows}
    return [
        FoldedText(f"Prompts of agents and raters, {name}", path.read_text(encoding="utf-8"))
        for name, path in paths.items()
        if path.exists()
    ]


def as_json(value: Any) -> str:
    """Readable JSON, the same for equal values."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)


# ---- What was done ---------------------------------------------------------------------


def rounds_table(origins: Origins) -> list[ReportTable]:
    """The rounds that were played, with their failures; empty if there are none."""
    names = {each.id: each.name for each in origins.models}
    head = (
        "Round", "Models", "Matches planned", "Over", "Broken off", "Refused moves", "Calls", "Failed calls", "USD",
    )  # fmt: skip
    rows = [
        (
            f"{row.id}: {row.name}"
            + ("" if row.removed_at is None else f" (matches removed on {row.removed_at:%Y-%m-%d})"),
            " – ".join(dict.fromkeys(names.get(each or 0, "unknown") for each in (row.model_0_id, row.model_1_id))),
            *(str(each) for each in (row.matches, row.finished, row.aborted, row.violations, row.calls)),
            str(row.failed_calls),
            f"{row.cost:.2f}" if row.unpriced_calls == 0 else "unknown",
        )
        for row in origins.rounds
    ]
    return [plain_table("rounds", "The rounds that were played.", head, rows)] if rows else []


def training_section(session: Session, origins: Origins) -> ReportSection:
    """The losses of the trainings; empty if none has reported a step. Of many, the last ones are drawn."""
    told = [(row, points_of(events_of(session, row.id), "step")) for row in origins.trainings[-MOST:]]
    found = [(row, points) for row, points in told if points]
    if not found:
        return ReportSection("training", "Training")
    title = loss_title(all(is_by_token(row) for row, _ in found), ENGLISH)
    chart = overlaid(title, "Step", {f"{row.id}: {row.name}": points for row, points in found}, Smoothing())
    of = "All trainings" if len(found) == len(origins.trainings) else f"{len(found)} of {len(origins.trainings)}"
    caption = f"{title} on the rows that are learnt. {of}, by the number of the job and the model that it makes."
    return ReportSection("training", "Training", figures=[ReportFigure(replace(chart, name="losses"), caption)])


def limits_of(origins: Origins, *, trained_once: bool = True) -> list[str]:
    """The limitations of the figures that follow from how they were made; `trained_once`: with one seed."""
    planned, over = sum(row.matches for row in origins.rounds), sum(row.finished for row in origins.rounds)
    broken = sum(row.aborted for row in origins.rounds)
    found = []
    if over < planned:
        found.append(f"Missing data: {planned - over} of {planned} planned matches are not over and in no figure.")
    removed = [str(row.id) for row in origins.rounds if row.removed_at is not None]
    if removed:
        found.append(
            f"Matches of round {', '.join(removed)} were removed: no figure that is taken of matches now has them, and"
            " those that were taken before stay."
        )
    if broken:
        found.append(f"{broken} of {over} matches were aborted; they count with a score of 0.")
    if origins.trainings and trained_once:
        found.append(
            "Each model was trained once: intervals cover matches and questions, not how a training would come out"
            " with another seed."
        )
    api = sorted(row.name for row in origins.models if row.kind == "api")
    if api:
        found.append(f"Models behind an API can change without notice: {', '.join(api)}.")
    raters: list[Any] = [*origins.societies, *origins.assessments]
    unread, rated = sum(row.unread_ratings for row in raters), sum(row.ratings for row in raters)
    if rated:
        found.append(
            f"Ratings are those of models, which may favour what is long, fluent or like themselves. {unread} of"
            f" {rated} held no number from 1 to 7 and are in no mean."
        )
    failed = sum(row.failed for row in origins.societies)
    if failed:
        found.append(f"{failed} interactions failed because a model refused to answer; they are in no mean.")
    return found
