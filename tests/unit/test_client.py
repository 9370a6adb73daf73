"""The Python client as a package: its version, its types, what it imports."""

import ast
import sys
from pathlib import Path

import parlor_client
import pytest
from mypy import api as mypy
from parlor_client import Lab, NotReachable, ParlorError, Refused
from parlor_client.connection import _as_numbers
from parlor_client.tables import Table
from parlor_client.version import OLDEST_SERVER

import app
from app.core.config import ROOT
from scripts.client_types import FOLDER, files

OPTIONAL = {"pandas", "tqdm"}


def test_the_client_has_the_version_of_the_parlor_it_is_released_with() -> None:
    assert parlor_client.__version__ == app.__version__
    assert _as_numbers(OLDEST_SERVER) <= _as_numbers(app.__version__)


@pytest.mark.parametrize(("older", "newer"), [("0.9.0", "0.10.0"), ("0.2", "0.2.1"), ("0.3.0rc1", "0.3.1")])
def test_versions_are_compared_as_numbers(older: str, newer: str) -> None:
    assert _as_numbers(older) < _as_numbers(newer)


@pytest.mark.parametrize("name", ["_types.py", "_kinds.py"])
def test_the_types_are_those_of_the_api(name: str) -> None:
    assert files()[name] == (FOLDER / name).read_text(encoding="utf-8"), "`python -m scripts.client_types` writes them"


def test_mypy_knows_the_fields_of_a_spec(tmp_path: Path) -> None:
    sample = tmp_path / "sample.py"
    sample.write_text(
        "from parlor_client import Lab\n"
        "lab = Lab()\n"
        "lab.rounds.run(game='taboo', models=['scripted'], matches=3)\n"
        "lab.rounds.run(game='taboo', models=['scripted'], macthes=3)\n"
        "lab.rounds.run(models=['scripted'])\n"
        "lab.trainings.run(method='sft', dataset=True, name='mine')\n"
        "lab.matches(round=3, gmae='taboo')\n"
    )
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache")]
    out, err, _ = mypy.run([*options, str(sample)])
    wrong = {int(line.split(":")[1]) for line in out.splitlines() if ": error: " in line}
    assert wrong == {4, 5, 6, 7}, out + err
    assert '"macthes"' in out


def test_the_client_needs_httpx_alone() -> None:
    taken = set[str]()
    loaded_by_name = set[str]()
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                taken |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                taken.add((node.module or "").partition(".")[0])
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
                [given] = node.args
                assert isinstance(given, ast.Constant)
                loaded_by_name.add(str(given.value).partition(".")[0])
    assert taken - sys.stdlib_module_names == {"parlor_client", "httpx"}
    assert loaded_by_name == OPTIONAL


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("127.0.0.1:8000", "got 127.0.0.1:8000; write http://127.0.0.1:8000"),
        ("ftp://lab", "got ftp://lab"),
        ("http://", "got http://"),
        ("", "got none"),
    ],
)
def test_what_is_no_address_is_refused_in_one_line(url: str, said: str) -> None:
    with pytest.raises(NotReachable) as refused:
        Lab(url, "parlor_token")
    assert str(refused.value) == f"url: expected an address such as http://127.0.0.1:8000, {said}"


@pytest.mark.parametrize("token", ["", "  ", "parlor_\n", "parlor_…"])
def test_what_is_no_token_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(Refused, match=r"^token: expected one that begins with parlor_, got ") as refused:
        Lab("http://127.0.0.1:8000", token)
    assert (refused.value.code, refused.value.field, "\n" in str(refused.value)) == ("not_signed_in", "token", False)


def test_address_and_token_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLOR_URL", "http://lab.example/")
    monkeypatch.setenv("PARLOR_TOKEN", "parlor_secret")
    assert repr(Lab()) == "<Lab at http://lab.example>"


def test_a_frame_without_pandas_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ParlorError) as refused:
        Table(lambda: iter([{"a": 1}])).frame()
    assert str(refused.value) == (
        "frame: expected pandas to be installed, got none; pip install pandas, or take list(…) of it for dictionaries"
    )
