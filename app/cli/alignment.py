"""`flask alignment`: demonstrations, a society, a training on it, the society again and what raters say of it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from sqlalchemy.orm import Session

from app.alignments import lifecycle, listing, steps
from app.alignments.job import ALIGNMENT
from app.alignments.spec import ALIGN, HELD_OUT_SHARE, PUBLISHED, SFT, AlignmentSpec, part, presets
from app.cli.assessment import table
from app.cli.base import (
    Command,
    Interrupted,
    RepeatableOption,
    ensure_database,
    is_name,
    is_pair,
    read_pairs,
    settings,
)
from app.cli.dataset_import import read_file
from app.cli.jobs import Described, JobCommands, json_option, queue_option, run_job_here
from app.cli.model_ask import read_sampling
from app.cli.model_options import number_options
from app.cli.society import read_share
from app.cli.training import train_here
from app.core import write_priority
from app.core.errors import Invalid, Verbatim
from app.core.extensions import db, reading, transact, writing
from app.core.validation import real_number, whole_number
from app.datasets import register, row_import
from app.datasets.import_tally import ImportTally
from app.datasets.importers.training_rows import FORMATS
from app.finetuning.job import TRAINING
from app.jobs.context import JobContext
from app.matches.lobby import new_seed
from app.model_calls.question_templates import SAMPLING_PRESETS
from app.models import Alignment
from app.society.config import LARGEST_SEED
from app.society.config import PRESETS as SOCIETY_PRESETS
from app.society.embedders import TFIDF
from app.society.material import PriorMemories, QuestionList
from app.society.priors import read_priors
from app.society.questions import read_questions


@click.command(cls=Command)
@click.option("--base", required=True, metavar="MODEL", help="The local model that learns.")
@click.option(
    "--demonstrations", metavar="D", help="A dataset that it learns first; of rated responses, the best ones."
)
@click.option("--import", "imported", metavar="FILE", help="Demonstrations that are imported first, with --format.")
@click.option("--format", "row_format", type=click.Choice(list(FORMATS)), help="Of --import: hh, alpaca and others.")
@click.option(
    "--agents",
    cls=RepeatableOption,
    belongs=is_name,
    metavar="MODEL[=SHARE]",
    help="Further agents of the societies. [default: the model that learns alone]",
)
@click.option(
    "--share", default="1", show_default=True, metavar="S", help="Of the model that learns, among the agents."
)
@click.option(
    "--observers", cls=RepeatableOption, belongs=is_name, required=True, metavar="MODEL", help="Of the societies."
)
@click.option(
    "--raters", cls=RepeatableOption, belongs=is_name, metavar="NAME", help="Of the assessment. [default: observers]"
)
@click.option(
    "--config", cls=RepeatableOption, belongs=is_pair, metavar="K=V", help="A setting of the societies: size=4."
)
@click.option("--society-preset", type=click.Choice(tuple(SOCIETY_PRESETS)), help="Their settings by name.")
@click.option("--questions", type=Path, metavar="FILE", help="Of the societies. [default: what ships]")
@click.option(
    "--held-out", type=Path, metavar="FILE", help="Questions of the assessment. [default: a fifth of --questions]"
)
@click.option("--priors", type=Path, metavar="FILE", help="First memories by label, JSON. [default: what ships]")
@click.option("--embedder", default=TFIDF, show_default=True, metavar="NAME", help="Whose vectors say what is similar.")
@click.option(
    "--preset",
    type=click.Choice(tuple(presets())),
    default=PUBLISHED,
    show_default=True,
    help=f"Fields of {ALIGN} and the mixing ratio of its data.",
)
@click.option(
    "--train", cls=RepeatableOption, belongs=is_pair, metavar="K=V", help=f"A field of {ALIGN}, over the preset."
)
@click.option(
    "--sft", cls=RepeatableOption, belongs=is_pair, metavar="K=V", help=f"A field of {SFT}, on the demonstrations."
)
@click.option("--sampling", type=click.Choice(list(SAMPLING_PRESETS)), help="Of the answers, by name.")
@number_options(
    temperature="Of the answers, 0 to 2. [default: the model's own]",
    top_p="0 to 1. [default: the model's own]",
    top_k="Of local models. [default: the model's own]",
    max_tokens="Most tokens of an answer. [default: the model's own]",
    no_repeat_ngram="Of local models: so many tokens in a row never come twice. [default: they may]",
)
@click.option("--seed", metavar="S", help="Of everything that is drawn. [default: drawn]")
@click.option("--name", metavar="NAME", help="Models are called NAME-sft, NAME-aligned. [default: base and number]")
@queue_option
@json_option
def run(name: str | None, queue: bool, as_json: bool, **given: Any) -> None:
    """Demonstrations → society → stable-alignment → society again → assessment beside the model before.

    Exit code 0: all of it is done; 1: it stopped, and a line says why; 130: interrupted, and a line says how to resume.
    """
    if (given["imported"] is None) != (given["row_format"] is None):
        expected = "--import FILE and --format beside each other"
        raise Invalid("--import", expected=expected, got=Verbatim("one of them"))
    if given["imported"] is not None and given["demonstrations"] is not None:
        raise Invalid("--import", expected="it without --demonstrations", got=Verbatim("both"))
    seed = new_seed() % (LARGEST_SEED + 1) if given["seed"] is None else given["seed"]
    seed = whole_number(seed, "--seed", 0, LARGEST_SEED)
    asked, held = _questions(given["questions"], given["held_out"], seed)
    priors = PriorMemories(str(given["priors"] or "shipped"), read_priors(given["priors"]))
    spec = _spec(given, seed)
    ensure_database()
    if given["imported"] is not None:
        spec = _with_demonstrations(spec, given["imported"], given["row_format"])
    with writing() as session:
        number = lifecycle.create(session, spec, name, asked, priors, held, queued=queue).id
    _ALIGNMENTS.go_on(number, queue, as_json)


class _AlignmentCommands(JobCommands[Alignment]):
    """See `flask alignment`."""

    help = "Have a model learn from a society that it lives in, and say what raters see of it."
    none_yet = "No alignments yet: flask alignment run --base MODEL --observers MODEL"
    resume_help = "Go on with an alignment that failed, was cancelled or interrupted, from its last step."
    cancel_help = "Stop an alignment, and the training, society or assessment that it is at. All that was made stays."
    show_help = "Show one alignment: its jobs, and the assessment of its model beside the one before."
    list_help = "Show the alignments, the latest first."

    def described(self, session: Session, rows: Sequence[Alignment]) -> list[Described]:
        """Alignments as JSON."""
        return listing.described(session, rows)

    def shown(self, described: Described) -> Described:
        """All but the jobs, which the log has in lines."""
        return {name: value for name, value in described.items() if name != "jobs"}

    def log(self, row: Alignment) -> str:
        """Its jobs, and the figures of the assessment."""
        with reading() as session:
            [described] = listing.described(session, [row])
            figures = listing.figures_of(session, row)
        lines = [_line(each) for each in described["jobs"]]
        return "\n".join([*lines, *([] if figures is None else ["", table(figures)])])

    def stopped(self, described: Described) -> str:
        """After how many of its jobs."""
        return f", {described['done']} of {described['of']} jobs over"

    def run_here(self, number: int, as_json: bool) -> None:
        """Carry an alignment on in this process."""
        write_priority.give_way()
        owner = JobContext(db.engine, settings(), f"alignment {number} {new_seed()}")
        while (awaited := steps.take_steps(owner, number)) is not None:
            click.echo(str(awaited.kind.subject(awaited.number)), err=True)
            if train_here(awaited.number) if awaited.kind is TRAINING else run_job_here(awaited.kind, awaited.number):
                raise Interrupted(f"Interrupted {self.kind.subject(number)}; {self.goes_on(number)}.")
        self.report(number, as_json)

    def report(self, number: int, as_json: bool) -> None:
        """Say what came of it, with its jobs and figures."""
        super().report(number, as_json)
        if not as_json:
            with reading() as session:
                row = ALIGNMENT.get(session, number)
            click.echo(self.log(row))


_ALIGNMENTS = _AlignmentCommands(ALIGNMENT)
alignment = _ALIGNMENTS.group()
alignment.add_command(run)


# ---- Reading ------------------------------------------------------------------


def _spec(given: dict[str, Any], seed: int) -> AlignmentSpec:
    sampling = {name: given[name] for name in ("temperature", "top_p", "top_k", "max_tokens", "no_repeat_ngram")}
    agents = [(name, real_number(share, "agents", 0, 1e6)) for name, share in map(read_share, given["agents"])]
    return AlignmentSpec(
        base=given["base"],
        observers=list(given["observers"]),
        raters=list(given["raters"] or given["observers"]),
        demonstrations=given["demonstrations"],
        agents=agents,
        share=real_number(given["share"], "--share", 0, 1e6),
        society=read_pairs(given["config"], "--config"),
        society_preset=given["society_preset"],
        embedder=given["embedder"],
        sft=read_pairs(given["sft"], "--sft"),
        preset=given["preset"],
        training=read_pairs(given["train"], "--train"),
        sampling=read_sampling(sampling, given["sampling"]),
        seed=seed,
    )


def _questions(path: Path | None, held_out: Path | None, seed: int) -> tuple[QuestionList, QuestionList]:
    """The questions of the societies and those of the assessment."""
    source, every = str(path or "shipped"), read_questions(path)
    if held_out is not None:
        return QuestionList(source, every), QuestionList(str(held_out), read_questions(held_out))
    asked, held = part(every, HELD_OUT_SHARE, seed)
    return QuestionList(source, asked), QuestionList(f"{HELD_OUT_SHARE:.0%} of {source}", held)


def _with_demonstrations(spec: AlignmentSpec, file: str, row_format: str) -> AlignmentSpec:
    """The spec with a file as its dataset; one that was imported before gives the same. Raises Invalid for bad rows."""
    found, wanted = read_file(file, row_format, skip_bad=False)
    number = found.dataset_id
    if number is None and found.draft is not None:
        number = register.save(transact(db.engine), found.draft, row_import.default_name(file))
    if number is None:
        raise row_import.refusal(wanted, found.tally or ImportTally(FORMATS[row_format]))
    return replace(spec, demonstrations=str(number))


# ---- Words ------------------------------------------------------------------------


def _line(job: Described) -> str:
    made = f"  {job['made']}" if job["made"] else ""
    number = "–" if job["number"] is None else f"{job['kind']} {job['number']}"
    return f"{job['part']:<16}{number:<16}{job['status'] or 'not begun':<12}{made}".rstrip()
