"""`flask alignment`: demonstrations, a society, a training on it, the society again, and raters' judgements."""

import click

from app.alignments import steps
from app.alignments.creation import CREATION
from app.alignments.export import recipe_archive
from app.alignments.job import ALIGNMENT
from app.alignments.spec import AlignmentSpec
from app.cli.archives import export_command
from app.cli.base import Command, Interrupted, ensure_database, json_option, warn_of_bfloat16
from app.cli.dataset_import import read_file
from app.cli.jobs import Described, JobCommands, create, prepared, queue_option
from app.cli.spec_options import read_files, spec_options
from app.cli.steps import run_steps
from app.core.errors import Invalid, Verbatim
from app.core.extensions import db, transact
from app.datasets import row_import
from app.datasets.importers.spec import DatasetImportSpec
from app.datasets.importers.training_rows import FORMATS
from app.models import Alignment


@click.command(cls=Command)
@spec_options(AlignmentSpec)
# An import is given as a file and its format; the spec has the resulting dataset.
@click.option("--import", "imported", metavar="FILE", help="Demonstrations that are imported first, with --format.")
@click.option(
    "--format",
    "row_format",
    type=click.Choice(list(FORMATS)),
    metavar="NAME",
    help=f"Of --import: {', '.join(FORMATS)}.",
)
@queue_option
@json_option
def run(spec: AlignmentSpec, imported: str | None, row_format: str | None, queue: bool, as_json: bool) -> None:
    """Demonstrations → society → stable-alignment → society again → assessment beside the model before.

    Exit code 0: all of it is done; 1: it stopped, and a line says why; 130: interrupted, and a line says how to resume.
    """
    if (imported is None) != (row_format is None):
        expected = "--import FILE and --format beside each other"
        raise Invalid("--import", expected=expected, got=Verbatim("one of them"))
    if imported is not None and spec.demonstrations is not None:
        raise Invalid("--import", expected="it without --demonstrations", got=Verbatim("both"))
    for field in ("sft", "train"):
        fields = getattr(spec, field)
        warn_of_bfloat16(f"{field}.precision", fields.get("precision"), fields.get("device"))
    material = read_files(spec)
    ensure_database()
    if imported is not None and row_format is not None:
        spec = _with_demonstrations(spec, imported, row_format)
    [number] = create(CREATION, prepared(CREATION, spec, material), queued=queue)
    _ALIGNMENTS.go_on(number, queue, as_json)


class _AlignmentCommands(JobCommands[Alignment]):
    """See `flask alignment`."""

    help = "Train a model on a society of agents, and have raters compare it with the model before."
    none_yet = "No alignments yet: flask alignment run --base MODEL --observers MODEL"
    resume_help = "Resume an alignment that failed, was cancelled or interrupted, from its last step."
    cancel_help = "Cancel an alignment and its current training, society or assessment. Finished results are kept."
    show_help = "Show one alignment: its jobs, and the assessment of its model beside the one before."
    list_help = "Show the alignments, the latest first."

    def stopped(self, described: Described) -> str:
        """The number of its jobs that are over."""
        return f", {described['done']} of {described['of']} jobs over"

    def run_here(self, number: int, as_json: bool) -> None:
        """Run or continue an alignment in this process."""
        if run_steps(steps.take_steps, number):
            raise Interrupted(f"Interrupted {self.kind.subject(number)}; {self.goes_on(number)}.")
        self.report(number, as_json)


_ALIGNMENTS = _AlignmentCommands(ALIGNMENT)
alignment = _ALIGNMENTS.group()
alignment.add_command(run)
alignment.add_command(
    export_command(
        ALIGNMENT,
        recipe_archive,
        "Write an alignment as a recipe, with the files of its questions: `flask recipe run` asks the same again.",
    )
)


# ---- Reading ------------------------------------------------------------------


def _with_demonstrations(spec: AlignmentSpec, file: str, row_format: str) -> AlignmentSpec:
    """The spec with a file as its dataset; a file imported before gives the same one. Raises Invalid for bad rows."""
    found, wanted = read_file(DatasetImportSpec(file=file, format=row_format))
    number = row_import.register_read(transact(db.engine), wanted, found)
    return spec.model_copy(update={"demonstrations": str(number)})
