"""A handful of rows and a model of a few thousand weights, both made on the spot."""

import json
import random
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from training.__main__ import main
from training.errors import TrainingFailed
from training.log_probs import ReferenceLogProbs
from training.methods.tiny import TinyConfig
from training.tiny import make_model, make_tokenizer, words_of
from training.trainer import TokenTrainer

Row = dict[str, Any]


def negotiation(match: int, seat: int, rng: random.Random) -> Row:
    """A row as a dataset has it: rules first, then the moves of both, this seat's as the assistant's."""
    books, hats, balls = (rng.randrange(4) for _ in range(3))
    messages = [{"role": "user", "content": f"books {books} hats {hats} balls {balls}. you begin"}]
    for _ in range(rng.randrange(1, 4)):
        messages.append({"role": "assistant", "content": f"[message] i want {books} books"})
        messages.append({"role": "user", "content": "[message] no, thanks"})
    messages.append({"role": "assistant", "content": f"[propose] ({books} books, {hats} hats, {balls} balls)"})
    return {"messages": messages, "group": f"{match}:{seat}"}


def rows_of(matches: int) -> list[Row]:
    rng = random.Random(7)
    return [negotiation(match, seat, rng) for match in range(matches) for seat in (0, 1)]


def write_rows(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty-eight rows of 24 matches."""
    return write_rows(tmp_path_factory.mktemp("data") / "rows.jsonl", rows_of(24))


@pytest.fixture(scope="session")
def tokenizer(data: Path) -> Any:
    from training.data import read_conversations

    return make_tokenizer(words_of(read_conversations(data), 1, 1000), 128)


@pytest.fixture(scope="session")
def base(tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint to go on from. It has dropout, so that a resumed training needs the state of the generator, too."""
    folder = tmp_path_factory.mktemp("base") / "small"
    torch.manual_seed(3)
    config = TinyConfig(data=folder, output=folder, width=16, layers=2, heads=2, length=128)
    model = make_model(config, tokenizer)
    model.config.attention_dropout = 0.1
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def config_file(data: Path, base: Path, tmp_path: Path) -> Callable[..., Path]:
    """Writes a config for the base and the data; fields given by name are changed, and None takes one out."""

    def write(name: str = "config", **fields: Any) -> Path:
        usual = {"data": str(data), "base": str(base), "output": str(tmp_path / name / "model"), "device": "cpu"}
        wanted = {key: value for key, value in (usual | {"threads": 1} | fields).items() if value is not None}
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(wanted))
        return path

    return write


@pytest.fixture
def train() -> Iterator[Callable[..., int]]:
    """`python -m training` without its four seconds of imports: takes a method, a config and where events go."""
    hook, before = (
        threading.excepthook,
        {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)},
    )

    def run(method: str, config: Path, events: Path | None = None) -> int:
        return main([method, "--config", str(config), *(["--progress", str(events)] if events else [])])

    yield run
    threading.excepthook = hook
    for number, handler in before.items():
        signal.signal(number, handler)
    torch.use_deterministic_algorithms(False)


@pytest.fixture
def refusal(train: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The one line on stderr of a training that was refused before it began."""

    def refused(config: Path, method: str = "sft") -> str:
        assert train(method, config) == 2
        out, err = capsys.readouterr()
        [line] = err.splitlines()
        assert [json.loads(each)["event"] for each in out.splitlines()] == ["failed"]
        return line

    return refused


@pytest.fixture
def killed_and_resumed(
    config_file: Callable[..., Path], train: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """Trains `undisturbed`, and `killed` after its seventh step and gone on with: both make the same bytes.

    The log-probabilities of a reference are not computed again. Events lie in files of the two names.
    """

    def compare(method: str, **fields: Any) -> None:
        assert train(method, config_file("undisturbed", **fields), tmp_path / "undisturbed.jsonl") == 0
        config, events = config_file("killed", **fields), tmp_path / "killed.jsonl"
        check = TokenTrainer.check_step

        def killed(trainer: TokenTrainer) -> None:
            check(trainer)
            if trainer.state.global_step == 7:
                raise TrainingFailed("killed")

        with monkeypatch.context() as patch:
            patch.setattr(TokenTrainer, "check_step", killed)
            assert train(method, config, events) == 1
        with monkeypatch.context() as patch:
            patch.setattr(ReferenceLogProbs, "_computed", lambda *_: pytest.fail("the reference was computed again"))
            assert train(method, config, events) == 0
        one, other = (tmp_path / name / "model" for name in ("undisturbed", "killed"))
        for name in ("model.safetensors", "parlor.json"):
            assert (one / name).read_bytes() == (other / name).read_bytes()

    return compare


def events_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def rewarded(rows: list[Row]) -> list[Row]:
    """The rows with roles, and with rewards that favour moves about few books; every fifth is of type sft."""
    for at, row in enumerate(rows):
        moves = [each for each in row["messages"] if each["role"] == "assistant"]
        for number, each in enumerate(moves):
            few = any(f"{count} books" in each["content"] for count in (0, 1))
            each |= {"reward": (1.0 if few else -0.5) * 0.8 ** (len(moves) - number - 1), "weight": 1 + at % 2}
            each["player_role"] = ("first", "second")[at % 2]
        row["type"] = "sft" if at % 5 == 4 else None
    return rows


def comparisons_of(queries: int) -> list[Row]:
    """Rows of comparisons in which the answer with the number of the query is rated best."""
    rng = random.Random(11)
    rows = []
    for _ in range(queries):
        books = rng.randrange(4)
        responses = [f"[message] i want {count} books" for count in range(4)]
        scores = [7 - 2 * abs(count - books) for count in range(4)]
        rows.append({"query": f"books {books} hats 1 balls 1. you begin", "responses": responses, "scores": scores})
    return rows


@pytest.fixture(scope="session")
def data_of(data: Path) -> dict[str, Path]:
    """A file of rows for each of the methods that count spans."""
    rewards = write_rows(data.with_name("rewarded.jsonl"), rewarded(rows_of(24)))
    compared = write_rows(data.with_name("comparisons.jsonl"), comparisons_of(24))
    return {"sft-kl": rewards, "offline-po": rewards, "stable-alignment": compared}
