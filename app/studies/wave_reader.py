"""Reading the file of a wave, with the line of each key."""

from pathlib import Path
from typing import NamedTuple

from app.core.documents import Document
from app.core.errors import FieldError, Verbatim
from app.core.yaml_reader import read_yaml
from app.studies.design_files import read_part
from app.studies.wave_file import WaveFile


class LoadedWave(NamedTuple):
    """The file of a wave, and the lines of its keys."""

    file: WaveFile
    document: Document

    def placed(self, error: FieldError) -> FieldError:
        """An error about a key of the file, beginning with its line."""
        known = error.field in self.document.value
        place = Verbatim(self.document.place((str(error.field),) if known else ()))
        return error.of(None, subject=place) if known else error.at(place)


def load_wave(path: Path) -> LoadedWave:
    """Read the file of a wave. Raises Invalid, with file, line and key, for the first error."""
    document = read_yaml(path)
    return LoadedWave(read_part(WaveFile, document), document)
