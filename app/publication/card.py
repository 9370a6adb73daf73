"""The card of a model or a dataset: a README.md with YAML front matter, as the hub reads it. Only reads.

The same rows give the same bytes: nothing in it depends on the time or the machine. It names no person and no
experimenter. It has a licence only if one was chosen.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import DatasetCardData, EvalResult, ModelCardData
from huggingface_hub.repocard_data import CardData
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from app import __version__
from app.analysis.bootstrap import Figure
from app.analysis.rounds import RoundAnalysis, analyse
from app.assessments.listing import figures_of
from app.benchmarks.listing import compare
from app.core.errors import NotFound, Phrase, Verbatim
from app.finetuning.spec import TrainingSpec
from app.inference.weights import parameters
from app.jobs import states
from app.jobs.spec import command_words
from app.lineage import TRAINED, ModelOrigin, ancestors
from app.models import Assessment, BenchmarkResult, Dataset, LanguageModel, RoundRow
from app.players.local.options import read_options, resolve
from app.publication.licences import warnings
from app.publication.release import Release, release_of_dataset, release_of_model
from training.hashes import PROVENANCE

ROWS = "rows.jsonl"  # the name of a dataset's rows where they are published
_ROUNDS = 5  # a model's latest ones, whose figures its card shows
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
_GAMES_LIMIT = "It was made to play games in rounds and studies, and to be compared with other models there."
_PEOPLE_LIMIT = "It learned from games of people, who agreed to publication, and may repeat what they wrote."


def folder_of(home: Path, row: LanguageModel) -> Path:
    """The checkpoint of a local model. Raises NotFound if it has none or the checkpoint is gone."""
    folder = None if row.kind != "local" else resolve(home, read_options(row.options).path)
    if folder is None or not folder.is_dir():
        raise NotFound(
            "model",
            expected=Phrase("one whose checkpoint is here"),
            got=Verbatim(row.name if folder is None else folder),
        )
    return folder


def model_card(session: Session, home: Path, row: LanguageModel, licence: str = "", licence_link: str = "") -> str:
    """The card of a local model. Raises NotFound for any other, or one whose checkpoint is gone."""
    folder = folder_of(home, row)
    found, origins = release_of_model(session, row), ancestors(session, row.id)
    compared = compare(session, [row])
    results = list(compared.models[0].results.values()) if compared is not None and compared.models else []
    adapters = row.adapter_base
    data = ModelCardData(
        **_licence_fields(licence, licence_link, row.name),
        library_name="transformers" if adapters is None else "peft",
        pipeline_tag="text-generation",
        tags=["parlor", *sorted(row.games)],
        model_name=row.name,
        eval_results=[_eval_result(each) for each in sorted(results, key=lambda each: each.task)] or None,
    )
    facts = [("weights (sha256)", row.options["sha256"]), ("parameters", parameters(folder)),
             ("games", ", ".join(sorted(row.games))), ("prompts", row.prompt_style)]  # fmt: skip
    if adapters is not None:
        facts.append(("adapters over", f"{adapters.name}, sha256 {adapters.options['sha256']}"))
    sections = [
        ("", _markdown_table(("", ""), [(name, _escaped_for_markdown(value)) for name, value in facts if value])),
        ("Lineage", _lineage(origins)),
        ("Data", _data(found)),
        ("Results", "\n\n".join([*_benchmarks(results), *_assessments(session, row), *_rounds(session, row)])),
        ("Intended use and limits", _limits_of_use(found)),
        ("Licence", _licence(licence, licence_link, found)),
        ("How to make it again", _again(origins, folder)),
    ]
    return _card(data, row.name, sections)


def dataset_card(session: Session, row: Dataset, licence: str = "", licence_link: str = "") -> str:
    """The card of a dataset."""
    found = release_of_dataset(session, row)
    size = next((name for most, name in _SIZES if row.rows < most), "n>10M")
    data = DatasetCardData(
        **_licence_fields(licence, licence_link, row.name),
        pretty_name=row.reference,
        task_categories=["text-generation"],
        size_categories=size,
        tags=["parlor", row.kind],
        configs=[{"config_name": "default", "data_files": ROWS}],
    )
    facts = [("rows", row.rows), ("kind", row.kind), ("words", row.words), ("words to be learned", row.own_words),
             ("bytes", row.size), ("rows (sha256)", row.sha256)]  # fmt: skip
    sections = [
        ("", _markdown_table(("", ""), [(name, _escaped_for_markdown(value)) for name, value in facts])),
        ("Data", _data(found)),
        ("Rows", f"`{ROWS}`: a row of JSON a line, with the messages of a chat, or a question with rated responses."),
        ("Intended use and limits", _limits_of_use(found)),
        ("Licence", _licence(licence, licence_link, found)),
        ("How to make it again", f"Cut by this:\n\n{_json_code_block(row.spec)}"),
    ]
    return _card(data, row.reference, sections)


def _card(data: CardData, title: str, sections: Iterable[tuple[str, str]]) -> str:
    written = [f"## {heading}\n\n{text}" if heading else text for heading, text in sections if text]
    made = f"Made with Parlor {__version__}, in which people and language models play language games."
    return (
        "\n\n".join(
            [f"---\n{data.to_yaml(line_break=chr(10))}\n---", f"# {_escaped_for_markdown(title)}", made, *written]
        )
        + "\n"
    )


# ---- Licence -------------------------------------------------------------------------


def _licence_fields(licence: str, link: str, name: str) -> dict[str, Any]:
    if not licence:
        return {}
    return {"license": licence, **({"license_name": f"{name}-licence", "license_link": link} if link else {})}


def _licence(licence: str, link: str, found: Release) -> str:
    chosen = f"{licence}{f' ({link})' if link else ''}." if licence else "None has been chosen yet."
    lines = [f"- {each.name}: {each.licence}" for each in found.inherited]
    inherited = ["In it is, under a licence of its own:\n\n" + "\n".join(lines)] if lines else []
    asked = [f"{each}." for each in warnings(licence, found.inherited)] if licence else []
    return "\n\n".join([chosen, *inherited, *asked])


# ---- What it was made from -------------------------------------------------------------


def _lineage(origins: Sequence[ModelOrigin]) -> str:
    rows = []
    for each in origins:
        job = each.job
        datasets = [row.reference for row in (each.dataset, each.sft_dataset) if row is not None]
        made = each.origin if job is None else f"{job.method}, step {job.registered_step or job.steps or '–'}"
        rows.append((
            each.model.name, made, each.base.name if each.base else "–", ", ".join(datasets) or "–",
            str(each.model.options.get("sha256", "–")),
        ))  # fmt: skip
    return _markdown_table(("Model", "Made by", "From", "On", "Weights (sha256)"), rows)


def _data(found: Release) -> str:
    rows = [
        (each.reference, str(each.rows), _source_of(each), each.sha256)
        for each in found.datasets
    ]  # fmt: skip
    parts = [_markdown_table(("Dataset", "Rows", "Cut from", "Rows (sha256)"), rows)] if rows else ["None."]
    if found.sources:
        counted = [(source, str(number)) for source, number in found.sources.items()]
        parts.append(_markdown_table(("Source of matches", "Matches"), counted))
    if found.people:
        people = [
            (each.study or "guests", str(each.matches), str(each.agreed)) for each in found.people
        ]  # fmt: skip
        parts.append(_markdown_table(("Study", "Matches with people", "Everybody agreed to publication"), people))
    return "\n\n".join(parts)


def _source_of(row: Dataset) -> str:
    if (imported := row.spec.get("imported")) is not None:
        return f"{imported['file']} ({imported['format']}, sha256 {imported['sha256']})"
    if (society := row.spec.get("society")) is not None:
        return f"a society ({society['name']}, seed {society['seed']})"
    if (best := row.spec.get("best_of")) is not None:
        return f"the best responses of {best['dataset']}"
    return "matches"


def _limits_of_use(found: Release) -> str:
    lines = [_GAMES_LIMIT]
    if found.people:
        lines.append(_PEOPLE_LIMIT)
    if found.services:
        lines.append(
            f"It holds words of models behind APIs ({', '.join(found.services)}), whose terms of use may restrict it."
        )
    return "\n".join(f"- {line}" for line in lines)


# ---- Results -------------------------------------------------------------------------


def _eval_result(each: BenchmarkResult) -> EvalResult:
    return EvalResult(
        task_type="text-generation", dataset_type=each.task, dataset_name=each.task, metric_type=each.metric,
        metric_value=each.value,
    )  # fmt: skip


def _benchmarks(results: Sequence[BenchmarkResult]) -> Iterator[str]:
    if results:
        rows = [
            (each.task, each.metric, f"{each.value:.4g}{'' if each.stderr is None else f' ± {each.stderr:.2g}'}",
             str(each.n), f"{each.source}, version {each.version} of the task")
            for each in sorted(results, key=lambda each: each.task)
        ]  # fmt: skip
        yield "Benchmarks (± standard error)"
        yield _markdown_table(("Task", "Metric", "Score", "Items", "Scored by"), rows)


def _assessments(session: Session, row: LanguageModel) -> Iterator[str]:
    done = select(Assessment).where(Assessment.model_id == row.id, Assessment.status == states.DONE)
    for each in session.scalars(done.order_by(Assessment.id)):
        base = session.get_one(LanguageModel, each.base_id).name
        rows = [
            (figures.aspect, figures.rater or "all", *map(_figure, (figures.model, figures.base, figures.difference)))
            for figures in figures_of(session, each)
        ]
        yield f"Held-out questions, rated beside {_escaped_for_markdown(base)} (1 to 7, with 95 % intervals)"
        yield _markdown_table(("Aspect", "Rater", row.name, base, "Difference"), rows)


def _rounds(session: Session, row: LanguageModel) -> Iterator[str]:
    played = or_(RoundRow.model_0_id == row.id, RoundRow.model_1_id == row.id)
    latest = select(RoundRow.id).where(played, RoundRow.status == states.DONE).order_by(RoundRow.id.desc())
    numbers = sorted(session.scalars(latest.limit(_ROUNDS)))
    found = analyse(session, numbers) if numbers else []
    lines = [line for each in found for line in _lines_of_round(row.name, each)]
    if lines:
        yield "Rounds (with 95 % intervals)"
        yield _markdown_table(("Game", "Players", "Role", "Matches", "Metric", "Value"), lines)


def _lines_of_round(name: str, found: RoundAnalysis) -> Iterator[Sequence[str]]:
    """The figures of a model in a round, if the round has figures per model, else those of the round."""
    parts = [(part.role or "both", part.matches, part.columns) for part in found.metrics.parts if part.player == name]
    defined = found.defined.of_models if parts else [*found.defined.columns.values()]
    for role, matches, columns in parts or [("both", found.matches, found.metrics.columns)]:
        for metric in defined:
            value = columns.get(metric.name, Figure(None))
            if value.value is not None:
                players = " and ".join(found.players)
                yield found.game, players, role, str(matches), metric.title, _figure(value)


def _figure(each: Figure) -> str:
    if each.value is None:
        return "–"
    return f"{each.value:.4g}" if each.low is None else f"{each.value:.4g} [{each.low:.4g}, {each.high:.4g}]"


# ---- Again ---------------------------------------------------------------------------


def _again(origins: Sequence[ModelOrigin], folder: Path) -> str:
    """The commands of all trainings, the earliest first, and the checkpoint's provenance."""
    parts = []
    for each in reversed(origins):
        if each.origin == TRAINED and each.job is not None:
            if each.job.spec is not None:
                command = f"flask training run {command_words(TrainingSpec.of_json(each.job.spec))}"
                parts.append(f"```sh\n{command}\n```")
            parts.append(
                _json_code_block({"model": each.model.name, "method": each.job.method, "config": each.job.config})
            )
    provenance = folder / PROVENANCE
    if provenance.is_file():
        parts.append(f"`{PROVENANCE}` has seed, hashes and versions:")
        parts.append(_json_code_block(json.loads(provenance.read_text(encoding="utf-8"))))
    return "\n\n".join(parts)


# ---- Markdown ------------------------------------------------------------------------


def _markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(map(_escaped_for_markdown, line))} |" for line in lines)


def _escaped_for_markdown(value: object) -> str:
    """Text escaped for Markdown: names come from experimenters and from elsewhere."""
    text = " ".join(str(value).split())
    return "".join(f"\\{sign}" if sign in "\\`*_<>[]|#" else sign for sign in text)


def _json_code_block(value: Any) -> str:
    return f"```json\n{json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)}\n```"
