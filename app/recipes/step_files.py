"""The contents of the files that steps name: material of games, questions, first memories, rows to import."""

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from typing import Any

from app.core.errors import Invalid, Verbatim
from app.datasets.import_tally import ImportTally
from app.datasets.importers.training_rows import FORMATS
from app.datasets.row_files import read_rows
from app.games import find_game
from app.jobs.spec import SHIPPED, JobSpec
from app.recipes.expressions import Input
from app.recipes.operations import EvaluateSpec
from app.recipes.plan import PlannedStep
from app.rounds.held_out import HELD_OUT, is_held_out
from app.rounds.lifecycle import USUAL_MATCHES, Material
from app.rounds.material import ALL, material_of_text
from app.rounds.spec import RoundSpec

MATERIAL_FIELD = "material"


def played_material(spec: RoundSpec, texts: Mapping[str, str], seed: Input = 0) -> Material | None:
    """The material of a round: pieces that no evaluation has. None if all matches share one, or there are none.

    `seed` is the run's. Raises Invalid.
    """
    whole = _whole_material(spec, texts, seed)
    if whole is None:
        return None
    kind = find_game(spec.game).material
    play = [piece for piece in whole.items if kind is not None and not is_held_out(kind, piece)]
    if not play:
        expected = "a list of which nine tenths can be played with"
        raise Invalid(MATERIAL_FIELD, expected=expected, got=Verbatim(f"{len(whole.items)} that are held out"))
    if spec.material is None:  # only as many as are played, as they are stored with the round
        play = random.Random(f"{spec.seed}/played").sample(play, min(len(play), spec.matches or USUAL_MATCHES))
    return Material(whole.source, play)


def held_out_material(spec: EvaluateSpec, texts: Mapping[str, str], seed: Input = 0) -> Material | None:
    """The material of an evaluation: one held-out piece for each match, some repeated if necessary.

    If all pieces of a list are held out, they keep its order; otherwise they are drawn. `seed` is the run's. Raises
    Invalid.
    """
    whole = _whole_material(spec, texts, seed)
    if whole is None:
        return None
    kind = find_game(spec.game).material
    held = [piece for piece in whole.items if kind is not None and is_held_out(kind, piece)]
    if not held:
        expected = "a list of which a tenth can be held out"
        raise Invalid(MATERIAL_FIELD, expected=expected, got=Verbatim(f"{len(whole.items)} of which none is"))
    if len(held) < len(whole.items):
        random.Random(f"{spec.seed}/held out").shuffle(held)
    return Material(HELD_OUT, (held * -(-spec.matches // len(held)))[: spec.matches])


def _whole_material(spec: RoundSpec | EvaluateSpec, texts: Mapping[str, str], seed: Input) -> Material | None:
    """All pieces, before some of them are held out."""
    kind = find_game(spec.game).material
    if kind is None or spec.config.get(kind.fields[0]) is not None:
        if spec.material is not None:
            expected = "none, as all matches are played on the same"
            raise Invalid(MATERIAL_FIELD, expected=expected, got=spec.material)
        return None
    if spec.material not in (None, ALL):
        return material_of_text(kind, texts[str(spec.material)], str(spec.material))
    source = f"the list of {kind.title.lower()}" if kind.listed() else f"generated {kind.name}"
    return Material(source, _draw_all_pieces(spec.game, str(seed)))


@lru_cache(maxsize=4)
def _draw_all_pieces(game: str, seed: str) -> Sequence[Any]:
    """All pieces of a game without a file; drawing takes up to a second, and all steps of a run share them."""
    kind = find_game(game).material
    return () if kind is None else tuple(kind.draw_all(random.Random(f"{seed}/recipe")))


def files_of(spec: JobSpec, texts: Mapping[str, str]) -> dict[str, Any]:
    """The contents of a spec's files, by field, or those that are shipped. Raises Invalid."""
    found: dict[str, Any] = {}
    for name, file in spec.files.items():
        given = getattr(spec, name) or SHIPPED
        if given != SHIPPED:
            found[name] = file.parse(texts[given].encode(), given)
        else:
            found[name] = None if file.shipped is None else file.parse(file.shipped.read_bytes(), SHIPPED)
    return found


def check_file(step: PlannedStep, field: str, name: str, text: str) -> None:
    """Raises Invalid for a file that the step cannot take."""
    spec_files = step.kind.spec.files
    if field in spec_files:
        spec_files[field].parse(text.encode(), name)
    elif isinstance(step.draft, RoundSpec):
        played_material(step.draft, {name: text})
    elif isinstance(step.draft, EvaluateSpec):
        held_out_material(step.draft, {name: text})
    else:
        _check_rows(step.fields, name, text)


def _check_rows(fields: Mapping[str, Any], name: str, text: str) -> None:
    """Raises Invalid for a file of rows with a bad one, unless bad rows are skipped."""
    tally = ImportTally(FORMATS[str(fields["format"])])
    for _ in tally.lines(read_rows(BytesIO(text.encode()), name)):
        pass
    if (tally.bad and not fields.get("skip_bad")) or not tally.rows:
        first = next((f"row {each.number}: {each.error.message}" for each in tally.refused), "no row")
        raise Invalid(None, expected=f"rows of the format {fields['format']}", got=Verbatim(f"{name}: {first}"))
