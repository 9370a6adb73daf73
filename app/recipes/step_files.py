"""What the files hold that steps name: material of games, questions, first memories, rows to import."""

from collections.abc import Mapping
from io import BytesIO
from typing import Any

from app.core.errors import Invalid, Verbatim
from app.datasets.import_tally import ImportTally
from app.datasets.importers.training_rows import FORMATS
from app.datasets.row_files import read_rows
from app.games import find_game
from app.jobs.spec import SHIPPED, JobSpec
from app.recipes.plan import PlannedStep
from app.rounds.lifecycle import Material
from app.rounds.material import ALL, material_of_text, own_material

MATERIAL_FIELD = "material"


def material_of(spec: Any, texts: Mapping[str, str]) -> Material | None:
    """What a round or an evaluation is played on, before some of it is held out. Raises Invalid."""
    game = find_game(spec.game)
    kind = game.material
    if kind is None or spec.config.get(kind.fields[0]) is not None:
        if spec.material is not None:
            raise Invalid(MATERIAL_FIELD, expected="none, as all matches are played on the same", got=spec.material)
        return None
    if spec.material in (None, ALL):
        return own_material(game)
    return material_of_text(kind, texts[spec.material], spec.material)


def files_of(spec: JobSpec, texts: Mapping[str, str]) -> dict[str, Any]:
    """What the files of a spec hold, by field, or what ships. Raises Invalid."""
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
    elif field == MATERIAL_FIELD:
        game = find_game(str(step.fields.get("game")))
        if game.material is None:
            expected = f"none, as {game.name} has no material"
            raise Invalid(None, expected=expected, got=name)
        material_of_text(game.material, text, name)
    else:
        _check_rows(step.fields, name, text)


def _check_rows(fields: Mapping[str, Any], name: str, text: str) -> None:
    """Raises Invalid for a file of rows with a bad one, unless bad ones are left out."""
    tally = ImportTally(FORMATS[str(fields["format"])])
    for _ in tally.lines(read_rows(BytesIO(text.encode()), name)):
        pass
    if (tally.bad and not fields.get("skip_bad")) or not tally.rows:
        first = next((f"row {each.number}: {each.error.message}" for each in tally.refused), "no row")
        raise Invalid(None, expected=f"rows of the format {fields['format']}", got=Verbatim(f"{name}: {first}"))
