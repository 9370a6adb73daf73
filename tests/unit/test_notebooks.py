"""The notebooks as they are committed: whole, run in order, with outputs that say nothing of where they were run."""

import ast
import base64
import importlib.util
import json
import re
import sys
import tomllib
from typing import Any

import pytest

from app.core.config import ROOT
from scripts.notebooks import FOLDER, INSTALL, NAMES

README = FOLDER / "README.md"
LARGEST_IMAGE = 60_000  # bytes
# Paths, addresses, moments, tokens and codes of people, which are other ones with each run.
OF_ONE_RUN = re.compile(
    r"/(?:tmp|home|root|usr)/|site-packages|https?://|\b20\d\d-\d\d-\d\d|parlor_\w{20}|\bp[0-9a-f]{10}\b"
)


@pytest.fixture(params=NAMES)
def notebook(request: pytest.FixtureRequest) -> Any:
    return json.loads((FOLDER / f"{request.param}.ipynb").read_text(encoding="utf-8"))


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def text_of(output: Any) -> str:
    """What an output says, its pictures left out."""
    data = {name: value for name, value in output.get("data", {}).items() if name.startswith("text/")}
    return "".join(["".join(each) for each in (output.get("text", ""), *data.values())])


def test_every_notebook_of_the_folder_is_run_by_the_command() -> None:
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == {*NAMES}


def test_a_notebook_is_valid(notebook: Any) -> None:
    assert (notebook["nbformat"], notebook["nbformat_minor"] >= 5) == (4, True)
    assert set(notebook) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    names = [cell["id"] for cell in notebook["cells"]]
    assert len(set(names)) == len(names)
    assert {cell["cell_type"] for cell in notebook["cells"]} == {"markdown", "code"}
    assert notebook["cells"][0]["source"][0].startswith("# ")
    if importlib.util.find_spec("nbformat"):
        import nbformat

        nbformat.validate(notebook)


def test_two_models_are_compared_in_ten_cells() -> None:
    found = json.loads((FOLDER / "compare-two-models.ipynb").read_text(encoding="utf-8"))
    assert len(found["cells"]) == 10


def test_a_notebook_was_run_from_its_first_cell_to_its_last_without_an_error(notebook: Any) -> None:
    cells = code_cells(notebook)
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {"stream", "display_data", "execute_result"}
    assert [output for output in outputs if output.get("name") == "stderr"] == []
    assert any("text/html" in output.get("data", {}) for output in outputs)
    pictures = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    assert pictures
    assert all(1000 < len(base64.b64decode(each)) < LARGEST_IMAGE for each in pictures)


def test_the_picture_of_the_page_is_that_of_the_notebook() -> None:
    for name in NAMES:
        cells = code_cells(json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")))
        data = [output.get("data", {}) for cell in cells for output in cell["outputs"]]
        *_, last = (each["image/png"] for each in data if "image/png" in each)
        assert (FOLDER / f"{name}.png").read_bytes() == base64.b64decode(last)


def test_the_figures_of_tables_are_finite(notebook: Any) -> None:
    tables = [each["data"]["text/plain"] for cell in code_cells(notebook) for each in cell["outputs"] if "data" in each]
    lines = [line for table in tables for line in table if re.search(r"\b(?:NaN|nan|inf|None)\b", line)]
    # Nothing was trained before the first iteration of a campaign, so there is no loss.
    assert [line for line in lines if " tiny-base " not in line] == []


def test_outputs_say_nothing_of_one_machine_or_one_run(notebook: Any) -> None:
    found = [text_of(output) for cell in code_cells(notebook) for output in cell["outputs"]]
    assert [each for each in found if OF_ONE_RUN.search(each)] == []
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert all(cell["metadata"] == {} for cell in notebook["cells"])


def test_a_notebook_imports_the_client_and_what_the_page_says_how_to_install(notebook: Any) -> None:
    trees = [ast.parse("".join(cell["source"])) for cell in code_cells(notebook)]
    imports = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name for node in imports]
    used = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {*project["optional-dependencies"]["notebooks"], "numpy"}  # which pandas brings along
    assert "parlor_client" in used
    assert used - {"parlor_client"} <= declared
    [line] = re.findall(r"^pip install (.*client\[notebook\].*)$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert used - {"parlor_client", "numpy", "pandas"} <= set(line.split())


def test_the_page_names_each_notebook_and_the_command_that_runs_them() -> None:
    text = README.read_text(encoding="utf-8")
    assert all(f"]({name}.ipynb)" in text and f"]({name}.png)" in text for name in NAMES)
    assert INSTALL in text
    assert "python -m scripts.notebooks" in text
