"""A copy of sft under another name is a method, as docs/training.md ("Adding a training method") says."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.finetuning.config import find_method, read_config
from tests.training.conftest import events_in
from training import methods
from training.methods import all_methods


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


def test_an_unknown_method_is_one_line(
    train: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train("dpo", tmp_path / "none.json") == 2
    assert capsys.readouterr().err == (f"error: method: expected {' or '.join(all_methods())} or check, got 'dpo'\n")
