"""The files of a training job."""

import stat
from pathlib import Path

import pytest

from app.core.errors import Conflict
from app.finetuning.files import JobFiles


def test_a_job_claims_its_checkpoint_in_files_that_only_its_owner_reads(tmp_path: Path) -> None:
    files, other = JobFiles(tmp_path, 1, "mine"), JobFiles(tmp_path, 2, "mine")
    files.prepare()
    files.output.mkdir()
    other.prepare()  # claims nothing that is there
    files.refuse_foreign_output()
    with pytest.raises(Conflict, match="a checkpoint that this job has not made"):
        other.refuse_foreign_output()
    made = [each for each in tmp_path.rglob("*") if each != files.output]
    assert {stat.S_IMODE(each.stat().st_mode) & 0o077 for each in made} == {0}
