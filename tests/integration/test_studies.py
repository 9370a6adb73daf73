"""`flask study`: from a file to a stored version and back, on both databases."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import Result
from flask import Flask

from app.core.extensions import reading, writing
from app.models import Arm, LanguageModel
from app.registry import add_scripted_model
from app.studies import store
from tests.integration.test_cli_dataset import flask
from tests.waves import STUDIES

EXAMPLE = STUDIES / "two-models" / "two-models.yaml"


def study(app: Flask, *arguments: object) -> Result:
    return flask(app, "study", *map(str, arguments))


@pytest.fixture
def path(app: Flask, tmp_path: Path) -> Path:
    """The file of an example that may be written to, with a second scripted model for the one that it ships with."""
    with app.app_context(), writing() as session:
        add_scripted_model(session, "casual", None, {"manner": "casual"})
    path = Path(shutil.copytree(EXAMPLE.parent, tmp_path / "study")) / EXAMPLE.name
    path.write_text(path.read_text().replace("b: tiny}", "b: casual}"))
    return path


def test_a_study_is_checked_before_it_is_loaded(app: Flask, path: Path) -> None:
    told = study(app, "validate", path)
    assert told.exit_code == 0
    assert "coop then self, order 2: b/coop a/coop | a/self b/self" in told.stdout
    assert "two-models: 4 arms, 4 matches a person, sha256 " in told.stdout
    described = json.loads(study(app, "validate", path, "--json").stdout)
    assert (len(described["arms"]), described["matches"], described["warnings"]) == (4, 4, [])
    path.write_text(path.read_text().replace("minutes: 25", "minuts: 25"))
    refused = study(app, "validate", path)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == "Error: two-models.yaml:5: minuts: expected minutes, got minuts\n"


def test_a_change_makes_another_version_and_the_same_file_none(app: Flask, path: Path) -> None:
    assert study(app, "list").stdout == "No studies yet: flask study load FILE\n"
    assert study(app, "load", path).stdout.startswith("Loaded two-models@1, sha256 ")
    assert study(app, "load", path).stdout.startswith("Already loaded as two-models@1, ")
    path.write_text(path.read_text().replace("title: Sharing things", "title: Sharing more things"))
    assert json.loads(study(app, "load", path, "--json").stdout)["version"] == 2
    (listed,) = json.loads(study(app, "list", "--json").stdout)
    facts = (listed["study"], listed["version"], listed["title"], listed["enrolled"])
    assert facts == ("two-models", 2, "Sharing more things", 0)
    with reading() as session:
        arms = [row.name for row in session.query(Arm).order_by(Arm.id)]
        assert len(arms) == 8


def test_a_version_pins_its_models(app: Flask, path: Path) -> None:
    study(app, "load", path)
    with reading() as session:
        version = store.find_version(session, "two-models@1")
        names = {name: row.name for name, row in store.models_of(session, version).items()}
        assert names == {"scripted": "scripted", "casual": "casual"}
        assert version.design["models"]["casual"] == session.query(LanguageModel.id).filter_by(name="casual").scalar()


def test_a_model_that_is_not_there_is_refused_and_nothing_is_stored(app: Flask, path: Path) -> None:
    path.write_text(path.read_text().replace("b: casual}", "b: nobody}"))
    refused = study(app, "load", path)
    assert refused.exit_code == 2
    assert refused.stderr.startswith("Error: conditions.model: expected one that plays negotiation")
    assert json.loads(study(app, "list", "--json").stdout) == []


def test_a_study_that_is_written_out_loads_as_the_same_version(app: Flask, path: Path, tmp_path: Path) -> None:
    study(app, "load", path)
    written = study(app, "export", "two-models", "--out", tmp_path / "out").stdout.strip()
    assert Path(written) == tmp_path / "out" / "two-models.yaml"
    assert study(app, "load", written).stdout.startswith("Already loaded as two-models@1, ")
    again = study(app, "export", "two-models", "--out", tmp_path / "out")
    assert (again.exit_code, "expected a folder that is not there yet" in again.stderr) == (2, True)


def test_the_order_of_levels_outlives_the_database(app: Flask, path: Path, tmp_path: Path) -> None:
    path.write_text(path.read_text().replace("{a: scripted, b: casual}", "{b: casual, a: scripted}"))
    study(app, "load", path)
    with reading() as session:
        version = store.find_version(session, "two-models")
        assert version.design["format"] == 2
        assert list(store.design_of(version).levels("model")) == ["b", "a"]
    written = study(app, "export", "two-models", "--out", tmp_path / "out").stdout.strip()
    assert study(app, "load", written).stdout.startswith("Already loaded as two-models@1, ")


def test_the_same_file_is_the_same_version_when_its_model_is_gone(app: Flask, path: Path) -> None:
    study(app, "load", path)
    with app.app_context(), writing() as session:
        session.query(LanguageModel).filter_by(name="casual").one().name = "formal"
    assert study(app, "load", path).stdout.startswith("Already loaded as two-models@1, ")


def test_the_same_file_is_another_version_when_its_names_stand_for_other_models(app: Flask, path: Path) -> None:
    study(app, "load", path)
    with app.app_context(), writing() as session:
        session.query(LanguageModel).filter_by(name="casual").one().name = "formal"
        session.flush()
        add_scripted_model(session, "casual", None, {"manner": "casual"})
    assert study(app, "load", path).stdout.startswith("Loaded two-models@2, ")


def test_a_copy_has_another_name(app: Flask, path: Path, tmp_path: Path) -> None:
    study(app, "load", path)
    written = study(app, "duplicate", "two-models@1", "second-try", "--out", tmp_path / "second")
    assert study(app, "load", written.stdout.strip()).stdout.startswith("Loaded second-try@1, ")
    taken = study(app, "duplicate", "two-models", "second-try", "--out", tmp_path / "third")
    assert taken.stderr == "Error: new: expected a name that no study has, got 'second-try'\n"
    outside = study(app, "duplicate", "two-models", "../third", "--out", tmp_path / "third")
    assert outside.stderr == "Error: new: expected at most 40 small letters, digits and hyphens, got '../third'\n"
    unknown = study(app, "export", "two-models@9", "--out", tmp_path / "third")
    assert "expected two-models or two-models@NUMBER, with a version that is there" in unknown.stderr
    assert not (tmp_path / "third").exists()


def test_costs_are_told_of_a_file_and_of_a_loaded_study(app: Flask, path: Path) -> None:
    study(app, "load", path)
    told = [study(app, "cost", each, "--places", 96, "--fee", 0.333).stdout for each in (path, "two-models")]
    assert told[0] == told[1]
    assert "96 places: 895.78 USD expected, 1279.68 at most; the base is 12.00 an hour in 25 minutes." in told[0]
    known = json.loads(study(app, "cost", path, "--mean-points", "a=6", "b=2.5", "--json").stdout)
    assert {arm["expected"] for arm in known["arms"].values()} == {"1.28"}
    for arguments, expected in (
        (("--places", "none"), "--places: expected a number from 0 to 1000000, got 'none'"),
        (("--places", "1e40"), "--places: expected a number from 0 to 1000000, got '1e40'"),
        (("--places", "1.5"), "--places: expected a whole number from 1, got '1.5'"),
        (("--mean-points", "a=21"), "--mean-points: expected a number from 0 to 20, got 21"),
        (("--mean-points", "c=6"), "--mean-points: expected labels of models (a, b), got 'c'"),
    ):
        refused = study(app, "cost", path, *arguments)
        assert (refused.exit_code, refused.stderr) == (2, f"Error: {expected}\n")


def test_a_loaded_study_is_priced_beside_a_folder_of_its_name(
    app: Flask, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study(app, "load", path)
    (tmp_path / "two-models").mkdir()
    monkeypatch.chdir(tmp_path)
    assert study(app, "cost", "two-models").exit_code == 0


def test_points_that_are_known_may_be_negative(app: Flask) -> None:
    taboo = EXAMPLE.parents[1] / "taboo-roles" / "taboo-roles.yaml"
    known = json.loads(study(app, "cost", taboo, "--mean-points", "a=-0.2", "--json").stdout)
    # 4 · (0.50 − 0.2 · 0.50)
    assert {name: arm["expected"] for name, arm in known["arms"].items() if name.startswith("a, ")} == {
        "a, attacker then defender": "1.60",
        "a, defender then attacker": "1.60",
    }
