"""Builds the wheel: the package with a copy of Parlor's rules, so that it can be installed without Parlor.

The copy holds what the package imports of `app` and `training`, followed module by module, as `parlor_games.rules`, and
the files of data that they read. In the repository the package imports `app` itself.
"""

import ast
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "parlor_games"
RULES = f"{PACKAGE}.rules"
COPIED = ("app", "training")
# Packages whose modules are found in their folder, and are imported by no statement.
FOUND = ("app/games/*/**/*.py", "app/players/scripted/negotiation/*.py", "app/players/scripted/taboo/*.py")
DATA = ("prompts", "taboo")
_IMPORT = re.compile(rf"^(\s*(?:from|import) )({'|'.join(COPIED)})(?=[.\s])", re.MULTILINE)


class BuildWithRules(build_py):
    """Copies the package, the rules and their data."""

    def run(self) -> None:
        """As setuptools does, and then the copy."""
        super().run()
        target = Path(self.build_lib) / PACKAGE
        own = sorted(target.glob("*.py"))
        for path in modules_of([*own, *(path for pattern in FOUND for path in ROOT.glob(pattern))]):
            self._write(path, target / "rules" / path.relative_to(ROOT))
        for path in own:
            self._write(path, path)
        about = '"""Parlor\'s rules, copied when this package was built."""\n'
        (target / "rules" / "__init__.py").write_text(about, encoding="utf-8")
        for name in DATA:
            shutil.copytree(ROOT / "data" / name, target / "rules" / "data" / name, dirs_exist_ok=True)

    def _write(self, source: Path, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        text = _IMPORT.sub(rf"\g<1>{RULES}.\g<2>", source.read_text(encoding="utf-8"))
        target.write_text(text, encoding="utf-8")


def modules_of(paths: Iterable[Path]) -> set[Path]:
    """The files of Parlor's modules that these files import, and those import, and so on; with their packages."""
    waiting, found = list(paths), set()
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        waiting.extend(_imported(path))
        waiting.extend(parent / "__init__.py" for parent in path.parents if ROOT in parent.parents)
    return {
        path for path in found if path.is_file() and ROOT in path.parents and path.relative_to(ROOT).parts[0] in COPIED
    }


def _imported(path: Path) -> Iterator[Path]:
    if not path.is_file():
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        for name in names:
            if name.partition(".")[0] in COPIED:
                below = ROOT.joinpath(*name.split("."))
                yield from (each for each in (below.with_suffix(".py"), below / "__init__.py") if each.is_file())


setup(cmdclass={"build_py": BuildWithRules})
