"""Every command and option that is written down exists, whatever else was loaded before."""

import importlib.util
import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from app.cli.commands import LIST
from app.core.config import ROOT
from app.job_kinds import JOB_KINDS
from tests.shell import Shell

DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "data/SOURCES.md", "Dockerfile", "docker-compose.yml")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
PRODUCT = [
    path
    for folder, kind in (("app", "*.py"), ("workers", "*.py"), ("templates", "*.html"))
    for path in (ROOT / folder).rglob(kind)
]
OPTION = re.compile(r"--[a-z][\w-]*")
A_KIND = re.compile(r"KIND|tally|%\(kind\)s|\{self\.kind\.name\}")  # stands for every kind of job
NAMES = [*dict.fromkeys((*json.loads(LIST.read_text(encoding="utf-8")), *(kind.name for kind in JOB_KINDS)))]
Words = tuple[str, ...]


def written(path: Path) -> Iterator[str]:
    """What stands between backticks in a file, and in a document each line of a block of code."""
    text = path.read_text()
    if path.suffix == ".md":
        for block in re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            yield from re.sub(r"\\\n", " ", block).splitlines()
        text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    yield from (re.sub(r"\s+", " ", each) for each in re.findall(r"`([^`]+)`", text))


def commands(program: str, *, paths: list[Path]) -> Iterator[tuple[str, Words]]:
    """Where `program` is called, and the words behind it; of a|b each by itself, up to what a shell would take."""
    for path in paths:
        for line in written(path):
            found = re.match(rf"(?:\w+=\S* )*(?:\S*/)?{program} (.*)", line.strip())
            if found and not found[1].startswith("-"):  # of no command
                words = re.split(r" #|[;>&]| \|| -- ", found[1])[0].split()  # behind -- another program's
                if words and A_KIND.fullmatch(words[0]):
                    words[0] = "|".join(kind.name for kind in JOB_KINDS)
                for each in product(*(word.split("|") for word in words)):
                    yield path.relative_to(ROOT).as_posix(), each


def subcommands(shown: str) -> set[str]:
    _, _, listed = shown.partition("\nCommands:\n")
    return set(re.findall(r"^  ([a-z][\w-]*)", listed, re.MULTILINE))


@pytest.fixture(scope="module")
def helps(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> dict[Words, str]:
    """What `--help` says of every command, by its words. Each group is asked in a process of its own."""
    env = {"PARLOR_HOME": str(tmp_path_factory.mktemp("home"))}
    found: dict[Words, str] = {}
    for name in NAMES:
        top = shell.flask([name, "--help"], env=env)
        assert top.exit_code == 0, top.stderr
        found[(name,)] = top.stdout
        below = sorted(subcommands(top.stdout))
        all_of_them = shell.flask(*([name, each, "--help"] for each in below), env=env).stdout
        texts = re.split(r"^Usage: ", all_of_them, flags=re.MULTILINE)[1:]
        found |= {(name, each): text for each, text in zip(below, texts, strict=True)}
    return found


def test_every_command_of_flask_that_is_written_down_exists_with_its_options(helps: dict[Words, str]) -> None:
    wrong = []
    for where, words in commands("flask", paths=[*DOCUMENTS, *PRODUCT]):
        path = words[:1] if words[:2] not in helps else words[:2]
        if path not in helps or ("Commands:" in helps[path] and len(words) > 1 and re.match(r"[a-z]", words[1])):
            wrong.append(f"{where}: flask {' '.join(words[:2])}")
        else:
            known = OPTION.findall(helps[path])
            options = [option for word in words for option in OPTION.findall(word)]
            wrong += [f"{where}: flask {' '.join(path)} {option}" for option in options if option not in known]
    assert wrong == [], "\n".join(wrong)


def test_a_group_has_the_same_commands_alone_as_beside_all_others(shell: Shell, helps: dict[Words, str]) -> None:
    twice = [*NAMES, *NAMES]  # whatever the first time loads, the second time finds
    shown = shell.flask(*([name, "--help"] for name in twice)).stdout
    together = re.split(r"^Usage: ", shown, flags=re.MULTILINE)[1:][len(NAMES) :]
    alone = [helps[(name,)] for name in NAMES]
    assert [subcommands(each) for each in together] == [subcommands(each) for each in alone]


def test_every_module_that_is_to_be_run_exists_with_its_options() -> None:
    wrong = []
    for where, (module, *words) in commands(r"python3? -m", paths=DOCUMENTS):
        if module.partition(".")[0] not in ("app", "bench", "scripts", "tests", "training", "workers"):
            continue  # a library's
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.submodule_search_locations:
            spec = importlib.util.find_spec(f"{module}.__main__")
        if spec is None or spec.origin is None:
            wrong.append(f"{where}: python -m {module}")
            continue
        known = OPTION.findall(Path(spec.origin).read_text())
        wrong += [f"{where}: python -m {module} {word}" for word in words if OPTION.match(word) and word not in known]
    assert wrong == [], "\n".join(wrong)


def test_everything_that_is_to_be_made_has_a_rule() -> None:
    makefile = (ROOT / "Makefile").read_text()
    wrong = [
        f"{where}: make {words[0]}"
        for where, words in commands("make", paths=DOCUMENTS)
        if not re.search(rf"^{re.escape(words[0])}:", makefile, re.MULTILINE)
    ]
    assert wrong == [], "\n".join(wrong)
