"""The paths of a job's files."""

from dataclasses import dataclass
from pathlib import Path

from app.core.errors import Conflict, Verbatim
from app.core.files import private_folder, replace_file

FOLDER, CHECKPOINTS = "training", "checkpoints"  # in PARLOR_HOME


@dataclass(frozen=True, slots=True)
class JobFiles:
    """The folder of a job, and the checkpoint that it makes, named after the model.

    `launcher` and `devices` are the settings TRAINING_LAUNCHER and TRAINING_DEVICES of the process that runs it,
    `hosts` those that API_HOSTS allows; empty: any.
    """

    home: Path
    job_id: int
    name: str
    launcher: str = ""
    devices: str = ""
    hosts: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return self.home / FOLDER / str(self.job_id)

    @property
    def config(self) -> Path:
        return self.folder / "config.json"

    @property
    def run(self) -> Path:
        """The folder with everything that the training needs to continue after a kill."""
        return self.folder / "run"

    @property
    def reference_cache(self) -> Path:
        """The log-probabilities of rows under reference models, shared by all jobs."""
        return self.home / FOLDER / "reference"

    @property
    def progress(self) -> Path:
        """The file with the events of all its runs."""
        return self.folder / "progress.jsonl"

    @property
    def log(self) -> Path:
        """The file with its printed output."""
        return self.folder / "log.txt"

    @property
    def lock(self) -> Path:
        """The file that the training locks as long as it lives, with its process id."""
        return self.folder / "lock"

    @property
    def output(self) -> Path:
        return self.home / self.output_name

    @property
    def output_name(self) -> str:
        """The checkpoint's path in the registry, relative to PARLOR_HOME."""
        return f"{CHECKPOINTS}/{self.name}"

    @property
    def _claim(self) -> Path:
        return self.home / CHECKPOINTS / f".{self.name}.job"

    def prepare(self) -> None:
        """Make the folders, and claim the checkpoint for this job if it does not exist yet. Raises OSError."""
        for folder in (self.folder.parent, self.folder, self.output.parent):
            private_folder(folder)
        if not self.output.exists():
            replace_file(self._claim, [str(self.job_id).encode()], private=True)

    def refuse_foreign_output(self) -> None:
        """Raises Conflict if a checkpoint under the model's name was not made by this job."""
        if not self._claim.is_file() or self._claim.read_text(encoding="utf-8") != str(self.job_id):
            raise Conflict(
                None,
                expected="a folder that is not there yet",
                got=Verbatim("a checkpoint that this job has not made"),
                remedy="remove it, or name the model otherwise",
                subject=self.output,
            )
