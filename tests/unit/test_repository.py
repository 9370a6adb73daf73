"""The repository itself: what is pinned, what is committed, what is documented."""

import ast
import gzip
import importlib.metadata
import lzma
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from app.core.config import ROOT, Settings

LARGEST_FILE = 700_000  # bytes; axe-core, vendored for tests, is the largest there is
LARGEST_WEIGHTS = 8_000_000  # bytes of a small model
FOREIGN = ("gevent-websocket", "eventlet", "psycopg2", "psycopg2-binary")
# Written in halves, so that this file does not hold what it looks for.
NOT_TO_BE_COMMITTED = [
    *(name + tail for name in ("pypi.", "files.pythonhosted.", "npmjs.", "deb.debian.") for tail in ("org", "com")),
    *("/" + folder + "/" for folder in ("work", "root", "home", "Users")),
    "BEGIN " + "PRIVATE KEY",
    "sk-" + "proj-",
]


@pytest.fixture(scope="module")
def committed() -> list[Path]:
    """Every file that git keeps."""
    if not (ROOT / ".git").exists():
        pytest.skip("this copy of Parlor is not a git repository")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().split()
    return {canonical(name): version for name, _, version in (line.partition("==") for line in lines)}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_dependency_is_pinned_to_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    names = {canonical(re.split(r"\[|==|;", name)[0].strip()) for name in wanted}
    assert names - set(pins()) == {"parlor"}  # one of its extras holds another
    assert all(re.fullmatch(r"[\w.]+", version) for version in pins().values())


def test_what_is_installed_is_what_is_pinned() -> None:
    # What follows a + says how it was built: torch for CPUs is 2.13.0+cpu.
    installed = {canonical(each.name): each.version.split("+")[0] for each in importlib.metadata.distributions()}
    pinned = {name: version for name, version in pins().items() if name in installed}
    assert {name: version for name, version in installed.items() if name in pinned} == pinned


@pytest.mark.parametrize("image", ["web", "models"])
def test_images_install_what_is_pinned_each_file_by_its_hash(image: str) -> None:
    _, *lines = (ROOT / "requirements" / f"{image}.txt").read_text().splitlines()
    found = [re.fullmatch(r"([\w.-]+)==([\w.]+) --hash=sha256:[0-9a-f]{64}", line) for line in lines]
    assert all(found)
    versions = {canonical(each[1]): each[2] for each in found if each}
    pinned = pins()
    for_gpus = ("nvidia-", "cuda-", "triton")  # what torch's own build for Linux needs, and no other machine
    others = {name: version for name, version in versions.items() if not name.startswith(for_gpus)}
    assert {name: pinned.get(name) for name in others} == others, "make hashes writes the lists anew"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(project["optional-dependencies"]["training"] if image == "models" else ())]
    assert {canonical(re.split(r"\[|==|;", name)[0].strip()) for name in wanted} - set(versions) == set()
    assert ("torch" in versions) == (image == "models")


def test_torch_is_wished_for_by_its_version_so_that_no_machine_gets_the_build_for_gpus_it_does_not_have() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wishes = [name for names in extras.values() for name in names if name.startswith("torch")]
    assert wishes == [f"torch=={pins()['torch']}"]


@pytest.mark.parametrize("name", FOREIGN)
def test_what_would_do_harm_is_neither_pinned_nor_installed(name: str) -> None:
    assert name not in pins()
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version(name)


def test_no_page_writes_on_the_event_loop() -> None:
    own = {"form_writes.py", "move_writer.py"}  # which do it in threads
    paths = [path for part in ("web", "api") for path in (ROOT / "app" / part).rglob("*.py")]
    found = [path for path in paths if re.search(r"import .*\bwriting\b", path.read_text())]
    assert {path.name for path in found} == own


def test_no_committed_file_is_large(committed: list[Path]) -> None:
    large = [path for path in committed if path.stat().st_size > LARGEST_FILE]
    assert [str(path) for path in large if path.suffix != ".safetensors"] == []
    assert [str(path) for path in large if path.stat().st_size > LARGEST_WEIGHTS] == []


def test_every_committed_file_says_by_its_name_what_it_is(committed: list[Path]) -> None:
    # What a slip of a shell writes, as `> 0` does, has neither a suffix nor a name that tools know.
    known = {"Dockerfile", "LICENSE", "Makefile", "run"}
    nameless = [path for path in committed if not path.suffix and not path.name.startswith(".")]
    assert [str(path) for path in nameless if path.name.split("-")[-1] not in known] == []


def test_no_committed_file_names_a_package_host_or_a_folder_of_one_machine(committed: list[Path]) -> None:
    found = []
    for path in committed:
        if "vendor" not in path.parts and path.suffix not in (".png", ".jpg", ".woff2", ".safetensors"):
            unpack = {".gz": gzip.decompress, ".xz": lzma.decompress}.get(path.suffix, bytes)
            text = unpack(path.read_bytes()).decode()
            found += [f"{path.relative_to(ROOT)}: {word}" for word in NOT_TO_BE_COMMITTED if word in text]
    assert found == []


def test_migrations_form_one_line() -> None:
    config = Config()
    config.set_main_option("script_location", str(ROOT / "migrations"))
    script = ScriptDirectory.from_config(config)
    assert len(script.get_heads()) == 1
    assert len(script.get_bases()) == 1
    assert all(not revision.is_merge_point for revision in script.walk_revisions())


def test_no_test_passes_or_fails_by_how_fast_the_machine_is() -> None:
    # What took so long may be more than something, never less: `tests.effort.growth` asks what a clock cannot.
    clock = r"(?:monotonic|perf_counter|process_time|time)\(\)"
    bound = re.compile(rf"assert (?:[^\n]*{clock} - \w+(?:\[\w+\])? <(?!=)|{clock} <|[\d.]+ > {clock} -)")
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    assert tests
    assert [path.name for path in tests if bound.search(path.read_text())] == []


def test_templates_hold_no_inline_script_or_style() -> None:
    inline = re.compile(
        r"<script(?![^>]*\ssrc=)[^>]*>|<style|\sstyle\s*=|\son\w+\s*=\s*[\"']|javascript:", re.IGNORECASE
    )
    templates = list((ROOT / "templates").rglob("*.html"))
    assert templates
    found = {path.name: inline.findall(path.read_text()) for path in templates}
    assert {name: matches for name, matches in found.items() if matches} == {}


def test_templates_load_nothing_from_elsewhere() -> None:
    elsewhere = re.compile(r"<(?:script|link|img|iframe|source)[^>]*(?:src|href)=[\"'](?:https?:)?//", re.IGNORECASE)
    assert [path.name for path in (ROOT / "templates").rglob("*.html") if elsewhere.search(path.read_text())] == []


@pytest.mark.parametrize("document", ["docs/operations.md", ".env.example"])
def test_every_setting_is_written_down(document: str) -> None:
    text = (ROOT / document).read_text()
    mark = r"^\| `{}` \|" if document.endswith(".md") else r"^# {}="
    assert [name for name in Settings.model_fields if not re.search(mark.format(name), text, re.MULTILINE)] == []


def test_the_documented_defaults_are_the_real_ones() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| (\S+) \|", (ROOT / "docs/operations.md").read_text(), re.MULTILINE)
    documented = {name: "" if default == "empty" else default.strip("`") for name, default in rows}
    real = {name: str(field.default) for name, field in Settings.model_fields.items()}
    assert documented == {name: {"True": "true", "False": "false"}.get(text, text) for name, text in real.items()}


def test_links_between_documents_lead_somewhere(committed: list[Path]) -> None:
    broken = []
    for path in committed:
        if path.suffix == ".md":
            targets = re.findall(r"\]\((?!\w+:)([^)#\s]+)", path.read_text())
            broken += [f"{path.name}: {target}" for target in targets if not (path.parent / target).exists()]
    assert broken == []


def test_continuous_integration_runs_the_same_command_as_everybody() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text().rstrip().endswith("make test")


def test_every_file_and_pipe_of_text_is_read_and_written_in_an_encoding_that_is_named(committed: list[Path]) -> None:
    tests = ROOT / "tests"  # whose texts are their own
    sources = [path for path in committed if path.suffix == ".py" and tests not in path.parents]
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sources
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and _is_text_without_encoding(node)
    ]
    assert found == []
    assert (ROOT / "migrations" / "alembic.ini").read_text("utf-8").isascii()  # alembic reads it by the locale


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("path.read_text()", True),
        ("path.read_text('utf-8')", False),
        ("path.write_text(text)", True),
        ("path.open()", True),
        ("path.open('a+')", True),
        ("path.open('rb')", False),
        ("zip.open(info, 'w')", False),
        ("os.fdopen(number, 'w')", True),
        ("open(1, 'w', encoding='utf-8')", False),
        ("subprocess.run(command, text=True)", True),
        ("subprocess.run(command, text=True, encoding='utf-8')", False),
        ("NamedTemporaryFile('w')", True),
        ("NamedTemporaryFile()", False),
    ],
)
def test_text_without_an_encoding_is_recognised(call: str, expected: bool) -> None:
    node = ast.parse(call).body[0]
    assert isinstance(node, ast.Expr)
    assert isinstance(node.value, ast.Call)
    assert _is_text_without_encoding(node.value) is expected


def _is_text_without_encoding(call: ast.Call) -> bool:
    """Whether a call opens, reads or writes text, and leaves it to the locale how."""
    is_method = isinstance(call.func, ast.Attribute)
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    given = {each.arg: each.value for each in call.keywords}
    if "encoding" in given or None in given:
        return False
    texts = [each.value for each in (*call.args, *given.values()) if isinstance(each, ast.Constant)]
    mode = next((text for text in texts if isinstance(text, str) and text.strip("rwxabt+") == ""), None)
    writes_text = mode is not None and "b" not in mode
    if name in ("read_text", "write_text"):
        return is_method and len(call.args) == (name == "write_text")
    if name == "open" and is_method:  # of a path; an archive's has the name of a member first
        return not call.args if mode is None else writes_text and len(call.args) < 2
    if name == "open":
        return mode is None or writes_text
    if name in ("NamedTemporaryFile", "TemporaryFile", "SpooledTemporaryFile"):
        return writes_text
    if name == "fdopen":
        return mode is None or writes_text
    by_text = [each for each in ("text", "universal_newlines") if getattr(given.get(each), "value", None) is True]
    return name == "TextIOWrapper" or bool(by_text)


def test_every_engine_hides_values_in_tracebacks(committed: list[Path]) -> None:
    running = [
        path for path in committed if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in ("app", "workers")
    ]
    own = [path.name for path in running if "create_engine(" in path.read_text(encoding="utf-8")]
    assert own == ["extensions.py"]
