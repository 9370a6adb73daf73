"""What documents and pyproject.toml say of the code is so: names, paths, contracts."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from app.core.config import ROOT, Settings

TEXT = (ROOT / "docs/architecture.md").read_text()
CODE = ("app", "training", "workers", "bench", "client", "scripts", "tests")
FOLDERS = (*CODE, "docs", "data", "static", "templates", "translations")
COMMANDS = ("flask ", "make ", "python -m ", "celery ", "gunicorn ")  # tests/integration/test_commands.py knows these


@lru_cache
def paths() -> list[str]:
    """All files and folders, each with a slash before it."""
    return [f"/{path.relative_to(ROOT)}" for folder in FOLDERS for path in (ROOT / folder).rglob("*")]


@lru_cache
def sources() -> str:
    files = [path for folder in ("app", "training", "workers") for path in (ROOT / folder).rglob("*.py")]
    return "\n".join(path.read_text() for path in [*files, ROOT / "constraints.txt", ROOT / "pyproject.toml"])


def is_a_path(name: str) -> bool:
    if (ROOT / name).exists() or list((ROOT / "app").glob(name)):
        return True
    return any(path.endswith(f"/{name.rstrip('/')}") for path in paths())


def has(module: str, name: str) -> bool:
    """Whether a module of ours has a function, class or constant of that name, or a class of that name a method."""
    for path in paths():
        if path.endswith(f"/{module}.py"):
            tree = ast.parse(Path(f"{ROOT}{path}").read_text())
            if name in {getattr(node, "name", None) for node in tree.body} | {
                target.id
                for node in tree.body
                if isinstance(node, ast.Assign)
                for target in node.targets
                if isinstance(target, ast.Name)
            }:
                return True
    return bool(re.search(rf"^class {module}\b.*?^    def {name}\b", sources(), re.MULTILINE | re.DOTALL))


def exists(name: str) -> bool:
    if route := re.fullmatch(r"(GET|POST) (/\w+)(/\w+)", name):
        return all(f'{part}"' in sources() for part in (f'url_prefix="{route[2]}', f'.{route[1].lower()}("{route[3]}'))
    if re.search(r"/$|\.(py|js|json|css|html|md|txt|toml|yml)$", name):
        return is_a_path(name)
    if dotted := re.fullmatch(r"([\w/]+)\.(\w+)(\(\))?", name):
        return has(dotted[1], dotted[2])
    if re.fullmatch(r"[A-Z][A-Z_]+", name):
        return name in Settings.model_fields
    return bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sources()))


def test_every_name_between_backticks_is_there() -> None:
    names = set(re.findall(r"`([^`]+)`", TEXT))
    assert len(names) > 100
    assert sorted(name for name in names if not name.startswith(COMMANDS) and not exists(name)) == []


def test_a_name_that_is_gone_would_be_found() -> None:
    gone = ("web/nothing.py", "app/nowhere/", "record.append", "live.no_such", "Game.sight", "NO_SETTING", "no_word")
    assert [name for name in gone if exists(name)] == []


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every module of the product by its dotted name, parsed."""
    for folder in ("app", "training", "workers"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            yield name, ast.parse(path.read_text())


def test_what_calls_itself_pure_is_in_the_contract_that_checks_it() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (checked,) = [each["source_modules"] for each in contracts if each["name"].startswith("What is pure ")]
    pure = [
        name for name, tree in modules() if re.search(r"\bPure\b", (ast.get_docstring(tree) or "").partition("\n\n")[0])
    ]
    assert pure
    covered = tuple(f"{module}." for module in checked)
    assert [name for name in pure if not f"{name}.".startswith(covered)] == []


def test_every_class_has_a_name_of_its_own() -> None:
    # Config and State are what the contract of games names; a private class is nobody else's business.
    found: dict[str, list[str]] = {}
    for module, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                if module.startswith("app.games.") and node.name in ("Config", "State"):
                    continue
                found.setdefault(node.name, []).append(module)
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def documents() -> list[Path]:
    return [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


@pytest.mark.parametrize("document", documents(), ids=lambda path: path.name)
def test_every_source_file_that_a_document_names_is_there(document: Path) -> None:
    prose = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    names = set(re.findall(r"`([\w./*-]+\.(?:py|js|css|html|toml))`", prose))
    # Their readers write these files: those of a third game, chain, and of a training method.
    written = {"adding-a-game.md": "chain", "training.md": "mine.py"}.get(document.name)
    names = {name for name in names if written is None or written not in name}
    assert [name for name in sorted(names) if not (is_a_path(name) or list(ROOT.glob(name)))] == []
