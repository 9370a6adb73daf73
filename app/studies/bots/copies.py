"""The copy of a study for bots: a study of its own, so that bots take nobody's place or arm.

Nothing here commits.
"""

import json
import secrets
from typing import Any, get_args

from sqlalchemy.orm import Session

from app.matches.filter import REHEARSAL_SUFFIX
from app.models import Study, StudyVersion, Wave
from app.studies import store, waves
from app.studies.checks import MODEL
from app.studies.cost import highest_base
from app.studies.design import StudyDesign
from app.studies.endings import EndingName
from app.studies.loaded_design import LoadedDesign
from app.studies.wave_file import WaveFile

ID_PARAMETER = "bot"
# A different code for each ending, so that it tells a bot how it ended.
CODES = {name: f"BOT-{name.replace('_', '-').upper()}" for name in get_args(EndingName)}
_TURN, _GRACE = "20 s", "10 s"  # how long a silent bot is waited for, and then asked whether it is there


def open_rehearsal(session: Session, reference: str, count: int, *, live: bool) -> Wave:
    """Open a wave of a copy of a version, with `count` places for bots. Raises NotFound for an unknown version."""
    original = store.find_version(session, reference)
    version, _ = store.load(session, _rehearsal_design(original, live=live))
    study = session.get_one(Study, version.study_id)
    design = store.design_of(version)
    most = (highest_base(design) + design.pay.most_a_person) * (count + 1)
    file = {
        "wave": f"bots-{secrets.token_hex(4)}",
        "of": f"{study.name}@{version.number}",
        "provider": {"link": {"id_parameter": ID_PARAMETER}},
        "places": count,
        "codes": CODES,
        "most_spent": str(most),
    }
    return waves.open_wave(session, WaveFile.model_validate(file), rehearsal=True)


def link_of(session: Session, wave: Wave) -> str:
    """The address at which a bot enters, without its id."""
    study = session.get_one(Study, wave.study_id).name
    return f"/s/{study}/{wave.name}?{ID_PARAMETER}="


def _rehearsal_design(original: StudyVersion, *, live: bool) -> LoadedDesign:
    """A version under another name; unless it is `live`, with scripted partners and without pauses."""
    written: dict[str, Any] = store.written_design(original)
    written["study"] = f"{written['study'][: 40 - len(REHEARSAL_SUFFIX)]}{REHEARSAL_SUFFIX}"
    if not live:
        levels = written["conditions"].get(MODEL)
        labels = list(levels) if levels is not None else []
        if labels:
            written["conditions"][MODEL] = {str(label): "scripted" for label in labels}
        same = written.setdefault("same_for_all", {})
        same["reply_after"] = {"seconds_per_word": 0, "least": 0, "most": 0}
        same["limits"] = {**same.get("limits", {}), "turn": _TURN}
        same["idle"] = {"end": _GRACE}
        if "practice" in written["plan"]:
            written["plan"]["practice"]["against"] = "scripted"
    design = StudyDesign.model_validate_json(json.dumps(written))
    stored = original.design
    kind = "live" if live else "scripted"
    return LoadedDesign(design, written, stored["texts"], stored["material"], (), f"{original.sha256[:56]}{kind:>8}")
