"""Waves for tests: a study with scripted partners, opened for visitors."""

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from app.core.config import ROOT
from app.models import LanguageModel, Wave
from app.registry import add_scripted_model
from app.studies import store
from app.studies.assignment import assign
from app.studies.design import StudyDesign
from app.studies.design_files import load_design
from app.studies.enrolment import Visitor, enter, take_place
from app.studies.loaded_design import LoadedDesign
from app.studies.progress import StudyProgress
from app.studies.wave_file import WaveFile
from app.studies.waves import open_wave

SECRET = "a secret of thirty-two characters"
# What an example leaves to whoever uses it, and what stands there in tests, which open waves of them.
FILLED_IN = {
    "Write your name here": "Ada Byron",
    "you@example.edu": "ada.byron@parlor.test",
    "Write your university here": "University of Testing",
}


def filled_in(folder: Path) -> Path:
    """The shipped examples in a folder, ready for people."""
    shutil.copytree(ROOT / "data" / "studies", folder, dirs_exist_ok=True)
    for path in folder.glob("*/*.yaml"):
        text = path.read_text(encoding="utf-8")
        for old, new in FILLED_IN.items():
            assert old in text
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    return folder


_FOLDER = tempfile.TemporaryDirectory(prefix="parlor-studies-")
STUDIES = filled_in(Path(_FOLDER.name))


def loaded_study(name: str = "two-models", folder: Path | None = None) -> LoadedDesign:
    """An example, or a study in a folder."""
    return load_design((folder or STUDIES / name) / f"{name}.yaml")


def changed(loaded: LoadedDesign, **keys: Any) -> LoadedDesign:
    """A study with other values; those of mappings are put beside what is there."""
    written = dict(loaded.written)
    for name, value in keys.items():
        together = isinstance(value, dict) and isinstance(written.get(name), dict)
        written[name] = {**written[name], **value} if together else value
    sha256 = f"{hash(json.dumps(written)):064x}"[-64:]
    design = StudyDesign.model_validate_json(json.dumps(written))
    return loaded._replace(design=design, written=written, sha256=sha256)


def store_study(session: Session, loaded: LoadedDesign) -> None:
    """A version of a study. What it calls `tiny` is a scripted model where there is none."""
    if session.query(LanguageModel).filter_by(name="tiny").first() is None:
        add_scripted_model(session, "tiny", None, {"manner": "casual"})
        session.flush()
    store.load(session, loaded)


def wave_file(**keys: Any) -> WaveFile:
    """The file of a wave at Prolific with ten places."""
    whole = {
        "wave": "main",
        "of": "two-models",
        "provider": {"prolific": {"study_id": "66f0c1", "fee": 0.5}},
        "places": 10,
        "codes": {"completed": "C7RX94LM", "withdrawn": "CW9D47ZB"},
        "most_spent": 10000.00,
        **keys,
    }
    return WaveFile.model_validate_json(json.dumps(whole))


def new_wave(session: Session, **keys: Any) -> Wave:
    """A wave of an example, which is stored before if it is not there."""
    file = wave_file(**keys)
    if session.query(LanguageModel).filter_by(name="tiny").first() is None:
        store_study(session, loaded_study(file.of))
    return open_wave(session, file)


def visitor(name: object, **keys: Any) -> Visitor:
    """Somebody from Prolific at a desktop, on a first visit."""
    own: Mapping[str, Any] = {"device": "desktop", "submission_id": f"visit of {name}", **keys}
    return Visitor("prolific", str(name), **own)


def arrive(session: Session, wave: Wave, name: object, **keys: Any) -> StudyProgress:
    """Somebody who opens the link of a wave."""
    return enter(session, wave, visitor(name, **keys), SECRET)


def join(session: Session, wave: Wave, name: object, **keys: Any) -> StudyProgress:
    """Somebody who opens the link of a wave and agrees to take part."""
    progress = arrive(session, wave, name, **keys)
    take_place(session, progress)
    return progress


def assigned(session: Session, wave: Wave, name: object, **keys: Any) -> StudyProgress:
    """Somebody who came as far as to have an arm."""
    progress = join(session, wave, name, **keys)
    if progress.enrolment.ending is None:
        assign(session, progress)
    return progress
