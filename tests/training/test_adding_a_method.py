"""A copy of sft under another name is a method, as docs/training.md ("Adding a training method") says."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.core.errors import Invalid
from app.finetuning.config import find_method, read_config
from app.finetuning.spec import TrainingSpec
from tests.training.conftest import events_in
from training import methods
from training.methods import all_methods, methods_here


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The one file that is added."""
    [package] = methods.__path__
    folder = tmp_path / "methods"
    folder.mkdir()
    text = Path(package, "sft.py").read_text()
    assert text.count('name="sft"') == 1
    (folder / "mine.py").write_text(text.replace('name="sft"', 'name="mine"'))
    monkeypatch.setattr(methods, "__path__", [package, str(folder)])
    all_methods.cache_clear()
    yield "mine"
    all_methods.cache_clear()


def test_a_copy_of_sft_trains_the_same_weights_and_jobs_may_name_it(
    mine: str, config_file: Callable[..., Path], train: Callable[..., int], tmp_path: Path
) -> None:
    assert find_method(mine).goes_on_from_base
    assert read_config(mine, {"epochs": "2"}) == {"epochs": 2}
    for method in ("sft", mine):
        assert train(method, config_file(method, max_steps=2), tmp_path / f"{method}.jsonl") == 0
    ends = [events_in(tmp_path / f"{method}.jsonl")[-1] for method in ("sft", mine)]
    assert ends[0]["checkpoint_sha256"] == ends[1]["checkpoint_sha256"]
    assert json.loads((tmp_path / mine / "model" / "parlor.json").read_text())["method"] == mine


def test_the_spec_of_trainings_has_the_fields_of_a_method_that_is_added(mine: str) -> None:
    wish = {"method": mine, "dataset": "rows", "name": "new", "base": "old"}
    assert TrainingSpec.read({**wish, "config": {"epochs": "2", "warmup": "0.1"}}).config == {
        "epochs": 2,
        "warmup": 0.1,
    }
    with pytest.raises(Invalid, match=r"config.warmup: expected a number from 0 to below 1, got '1'"):
        TrainingSpec.read({**wish, "config": {"warmup": "1"}})
    assert mine in TrainingSpec.only_with()["base"][1]
    told = [
        each
        for each in TrainingSpec.model_json_schema()["allOf"]
        if each["if"]["properties"]["method"]["const"] == mine
    ]
    assert told[0]["then"]["properties"]["config"]["properties"]["warmup"]["exclusiveMaximum"] == 1


def test_an_unknown_method_is_one_line(
    train: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train("ppo", tmp_path / "none.json") == 2
    assert capsys.readouterr().err == (
        f"error: method: expected {' or '.join(methods_here())} or check or merge, got 'ppo'\n"
    )
