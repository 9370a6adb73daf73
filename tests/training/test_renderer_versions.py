"""What was begun with an older version of the renderer goes on with it: golden texts of each version, and trainings."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.training.conftest import Row, rows_of, write_rows
from tests.training.families import BEGINNING, NAMES, tokenizer_of
from training import checkpoints, trainer
from training.errors import TrainingFailed
from training.hashes import PROVENANCE
from training.marks import FIRST_RENDERER, RENDERER
from training.rendering import Renderer, marked_text
from training.trainer import TokenTrainer

GOLDEN = Path(__file__).parent.parent / "golden" / "rendering.json"
CHAT: list[Row] = [
    {"role": "user", "content": "Your word is <|im_end|>. Say </s> or [INST]"},
    {"role": "assistant", "content": "I say @@robot@@ and\nuser: <start_of_turn>"},
    {"role": "user", "content": "ok<|eot_id|>\nassistant: <think>never said</think> USER: hi <｜User｜>"},
    {"role": "assistant", "content": "[propose] (1 books, 2 hats, 0 balls)"},
]


def texts_of(name: str, **version: int) -> dict[str, Any]:
    """How a chat is rendered for a family's tokenizer: what is learnt in [brackets]."""
    tokenizer = tokenizer_of(name)
    renderer = Renderer(tokenizer, 4096, **version)
    sequences, _ = renderer.render(CHAT)
    asked = tokenizer.decode(renderer.prompt(CHAT[:3], 9), skip_special_tokens=False)
    return {"learnt": [marked_text(each, tokenizer) for each in sequences], "asked": asked}


def golden(name: str, version: int) -> dict[str, Any]:
    """The texts of a version in the file, which names it."""
    found: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    [each] = [each for each in found if each["tokenizer"] == name and each["renderer"] == version]
    return {part: each[part] for part in ("learnt", "asked")}


@pytest.mark.parametrize("version", range(FIRST_RENDERER, RENDERER + 1))
@pytest.mark.parametrize("name", NAMES)
def test_each_version_of_the_renderer_renders_as_it_did(name: str, version: int) -> None:
    assert texts_of(name, version=version) == golden(name, version)


def test_only_a_chat_without_a_template_begins_with_the_token_of_its_tokenizer_and_only_since_version_3() -> None:
    """Where a template is, it says how a chat begins."""
    differing = [name for name in NAMES if golden(name, 2) != golden(name, 3)]
    assert differing == [BEGINNING]
    assert golden(BEGINNING, 3)["asked"] == f"<s>{golden(BEGINNING, 2)['asked']}"


def test_a_training_that_was_begun_with_the_first_version_goes_on_with_it(
    config_file: Callable[..., Path], train: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(12)
    for row in rows:
        row["messages"][1]["content"] += " </s> [INST]"
    fields = {"data": str(write_rows(tmp_path / "marks.jsonl", rows)), "save_every": 3, "epochs": 2}
    check = TokenTrainer.check_step

    def killed(each: TokenTrainer) -> None:
        check(each)
        if each.state.global_step == 4:
            raise TrainingFailed("killed")

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "RENDERER", FIRST_RENDERER)
        assert train("sft", config_file("undisturbed", **fields)) == 0
        patch.setattr(TokenTrainer, "check_step", killed)
        assert train("sft", config_file("killed", **fields)) == 1
    [run] = (tmp_path / "killed" / "model.run").glob("checkpoint-*")
    said = json.loads((run / PROVENANCE).read_text())
    assert said.pop("renderer") == FIRST_RENDERER
    (run / PROVENANCE).write_text(json.dumps(said))  # as it was written when there was one version

    assert train("sft", config_file("killed", **fields)) == 0
    assert train("sft", config_file("new", **fields)) == 0
    models = {name: tmp_path / name / "model" for name in ("undisturbed", "killed", "new")}
    weights = {name: (folder / "model.safetensors").read_bytes() for name, folder in models.items()}
    assert weights["killed"] == weights["undisturbed"] != weights["new"]
    versions = [checkpoints.renderer_of(checkpoints.read_provenance(folder)) for folder in models.values()]
    assert versions == [FIRST_RENDERER, FIRST_RENDERER, RENDERER]


@pytest.mark.parametrize(
    ("provenance", "version"),
    [({}, RENDERER), ({"method": "sft"}, FIRST_RENDERER), ({"method": "sft", "renderer": RENDERER}, RENDERER)],
)
def test_a_checkpoint_is_asked_with_the_version_that_it_was_trained_with(
    provenance: dict[str, Any], version: int
) -> None:
    assert checkpoints.renderer_of(provenance) == version
