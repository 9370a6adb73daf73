"""Rows that are longer than a sequence may be, under published settings: what is learnt of them, and their counts."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from app.datasets.importers.training_rows import FORMATS, line_of
from tests.checkpoints import WORDS
from tests.training.conftest import Row, events_in, write_rows
from training.checkpoints import load
from training.methods import methods_here
from training.methods.tiny import TinyConfig
from training.rendering import Renderer, marked_text
from training.tiny import make_model, make_tokenizer

RECIPES = Path(__file__).resolve().parents[2] / "training" / "configs" / "recipes"
LENGTH = 2304  # tokens that the models take, more than any recipe allows
USER, ASSISTANT, END = "<|user|>", "<|assistant|>", "<|end|>"

Chat = list[tuple[str, str]]  # role and text of messages
Likely = Callable[[list[str], list[str]], float]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two checkpoints of one vocabulary, without dropout."""
    found = {}
    for seed, name in enumerate(("policy", "reference")):
        torch.manual_seed(seed)
        folder = found[name] = tmp_path_factory.mktemp("models") / name
        tokenizer = make_tokenizer(WORDS.split(), LENGTH)
        model = make_model(
            TinyConfig(data=folder, output=folder, width=16, layers=1, heads=2, length=LENGTH), tokenizer
        )
        with torch.no_grad():
            for weights in model.parameters():
                weights.mul_(8 if weights.dim() > 1 else 1)  # fresh weights look at little else than the last word
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return found


def words(count: int, word: str = "book") -> str:
    return " ".join([word, "hat", "ball", "no", "cat"][at % 5] for at in range(count))


@pytest.fixture
def likely(models: dict[str, Path]) -> Callable[[str], Likely]:
    """ℓ of tokens after others under a checkpoint: the mean of their log-probabilities, one sequence at a time."""

    def of(name: str) -> Likely:
        model, tokenizer = load(models[name])
        model.eval()

        def mean(prompt: list[str], target: list[str]) -> float:
            ids = torch.tensor([tokenizer.convert_tokens_to_ids([*prompt, *target])])
            with torch.no_grad():
                found = model(ids).logits[0, :-1].double().log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
            return float(found[-len(target) :].mean())

        return mean

    return of


def prompt_of(chat: Chat) -> list[str]:
    """The tokens before an answer to a chat."""
    marks = {"user": USER, "assistant": ASSISTANT}
    return [token for role, text in chat for token in (marks[role], *text.split(), END)] + [ASSISTANT]


def since(chat: Chat, first: int) -> Chat:
    """A chat from one of its own turns on."""
    (role, rules), answered = chat[0], chat[first - 1][1]
    return [(role, rules if first == 1 else f"{rules} {answered}"), *chat[first:]]


def moves_of(chat: Chat, longest: int) -> Iterator[tuple[int, list[str], list[str]]]:
    """Each own move: its place, its prompt without turns that do not fit, and the tokens that it keeps.

    What the first kept turn answers is put behind the rules.
    """
    for at, (role, text) in enumerate(chat):
        if role == "assistant":
            target, first = [*text.split(), END], 1
            while len(prompt := prompt_of(since(chat[:at], first))) + len(target) > longest and first < at:
                first += 2
            if room := max(0, longest - len(prompt)):
                yield at, prompt, target[:room]


def recipe(name: str) -> dict[str, Any]:
    """The published settings, in numbers that a test can compute and for one step."""
    fields: dict[str, Any] = yaml.safe_load((RECIPES / f"{name}.yaml").read_text())
    return {**fields, "precision": "float32", "epochs": 1, "max_steps": 1}


Trained = Callable[..., tuple[dict[str, Any], float, dict[str, Any]]]


@pytest.fixture
def first_step(
    models: dict[str, Path], config_file: Callable[..., Path], train: Callable[..., int], tmp_path: Path
) -> Trained:
    """Trains for a step: what the training said when it began, its loss, and what its checkpoint says."""

    def run(method: str, rows: Path, **fields: Any) -> tuple[dict[str, Any], float, dict[str, Any]]:
        given = {**fields, "data": str(rows), "base": str(models["policy"]), "output": str(tmp_path / "made")}
        assert train(method, config_file(**given), tmp_path / "events.jsonl") == 0
        begun, step, *_ = events_in(tmp_path / "events.jsonl")
        return begun, step["loss"], json.loads((tmp_path / "made" / "parlor.json").read_text())

    return run


def test_the_recipe_of_stable_alignment_cuts_responses_of_published_length(
    first_step: Trained, likely: Callable[[str], Likely], tmp_path: Path
) -> None:
    queries = [f"what is {number} hat ?" for number in range(1, 9)]
    rows: list[Row] = [{"query": query, "responses": ["yes", "no it is"], "scores": [3, 6]} for query in queries]
    rows[1] |= {"responses": ["no", words(420), "yes"], "scores": [1, 7, 4]}  # the best one is too long
    rows[2] |= {"responses": [words(380, "dog"), words(12)], "scores": [2, 5]}  # the worse one is
    rows[3]["query"] = words(400)  # which leaves no room for a response
    rows[4]["history"] = [{"role": role, "content": words(200)} for role in ("user", "assistant")]
    begun, loss, made = first_step(
        "stable-alignment", write_rows(tmp_path / "rows.jsonl", rows), **recipe("stable-alignment")
    )

    mean, values = likely("policy"), []
    for at, row in enumerate(rows):
        # Of a query with a history the first message stays, and so does the query.
        said = f"{words(200)} {row['query']}" if at == 4 else row["query"]
        prompt = prompt_of([("user", said)])
        if len(prompt) < 360:
            rated = [
                (score, -mean(prompt, [*response.split(), END][: 360 - len(prompt)]))
                for response, score in zip(row["responses"], row["scores"], strict=True)
            ]
            best, lowest = max(rated)
            terms = [lowest - other + (best - score) / 7 * 10 for score, other in rated if score < best]
            values.append(lowest + 0.2 * max(0, sum(terms) / len(terms)))
    assert loss == pytest.approx(sum(values) / len(values), rel=1e-5)
    assert len(values) == 7
    counts = {"shortened": 1, "cut": 2, "skipped": 1}
    assert {name: begun[name] for name in counts} == {name: made[name] for name in counts} == counts
    assert begun["config"]["too_long"] == made["config"]["too_long"] == "truncate"


def test_sft_cuts_long_outputs_of_an_alpaca_file(
    first_step: Trained, likely: Callable[[str], Likely], tmp_path: Path
) -> None:
    published = [
        {"instruction": "what is a cat ?", "input": "", "output": "a word"},
        {"instruction": "give me hats", "input": "", "output": words(70)},
        {"instruction": "give me a book", "input": words(45), "output": words(40, "dog")},
        {"instruction": words(64), "input": "", "output": "no"},
    ]
    data = tmp_path / "alpaca.jsonl"
    data.write_bytes(b"".join(line_of(FORMATS["alpaca"].read(row)) for row in published))
    begun, loss, _ = first_step("sft", data, max_length=64)
    mean, sums, counted = likely("policy"), 0.0, 0
    for row in published[:3]:
        prompt = prompt_of([("user", f"{row['instruction']} {row['input']}")])
        target = [*row["output"].split(), END][: 64 - len(prompt)]
        sums, counted = sums - mean(prompt, target) * len(target), counted + len(target)
    assert loss == pytest.approx(sums / counted, rel=1e-5)
    assert begun["targets"] == counted
    assert (begun["rows"], begun["shortened"], begun["cut"], begun["skipped"]) == (4, 0, 2, 1)


def episodes() -> list[Chat]:
    """Four episodes: with an own move too long, a partner's, both in one of several turns, and none."""
    short = [("user", "begin"), ("assistant", "it is a word"), ("user", "is it a dog ?"), ("assistant", "no")]
    own = [*short[:3], ("assistant", words(2100)), ("user", "yes"), ("assistant", "the word is cat")]
    partners = [*short[:2], ("user", words(2100)), ("assistant", "no it is"), ("user", "cat"), ("assistant", "yes")]
    return [own, partners, [*own[:4], *partners[2:]], short]


def test_offline_po_learns_episodes_with_one_long_move(
    first_step: Trained, likely: Callable[[str], Likely], models: dict[str, Path], tmp_path: Path
) -> None:
    rewards, rows = [0.8 ** (7 - at) for at in range(8)], []
    for number, chat in enumerate(episodes(), 1):
        messages: list[Row] = [{"role": role, "content": text} for role, text in chat]
        for at in range(1, len(chat), 2):
            messages[at] |= {"reward": rewards[at], "weight": number}
        rows.append({"messages": messages})
    fields = {**recipe("spag-offline-po"), "reference": str(models["reference"])}
    begun, loss, made = first_step("offline-po", write_rows(tmp_path / "rows.jsonl", rows), **fields)

    policy, reference, values, cut = likely("policy"), likely("reference"), [], set()
    for number, chat in enumerate(episodes(), 1):
        for at, prompt, target in moves_of(chat, 2048):
            drift = policy(prompt, target) - reference(prompt, target)
            ratio = float(torch.tensor(drift).exp())
            advantage = rewards[at] - 0.2 * drift
            values.append(-number * min(advantage * ratio, advantage * min(max(ratio, 0.8), 1.2)))
            cut |= {number} if target[-1] != END else set()
    assert loss == pytest.approx(sum(values) / len(values), rel=1e-4)
    assert (len(values), cut) == (10, {1, 3})  # none for the two answers to what has no room
    counts = {"shortened": 3, "cut": 2, "skipped": 2}
    assert {name: begun[name] for name in counts} == {name: made[name] for name in counts} == counts


@pytest.mark.parametrize("method", methods_here())
def test_every_method_refuses_or_leaves_out_what_is_too_long_where_it_is_told_to(
    method: str, models: dict[str, Path], config_file: Callable[..., Path], train: Callable[..., int],
    capsys: pytest.CaptureFixture[str], tmp_path: Path,
) -> None:  # fmt: skip
    if method == "stable-alignment":
        rows: list[Row] = [
            {"query": "begin", "responses": [words(9), long], "scores": [1, 2]} for long in (words(90), "no")
        ]
    else:
        moves = ({"role": "assistant", "content": each, "reward": 1.0} for each in (words(90), "no"))
        rows = [{"messages": [{"role": "user", "content": "begin"}, move]} for move in moves]
    fields: dict[str, Any] = {"data": str(write_rows(tmp_path / "rows.jsonl", rows)), "max_steps": 1}
    if method == "tiny":
        fields |= {"base": None, "width": 16, "layers": 1, "heads": 2, "length": 40, "min_count": 1}
    else:
        fields |= {"base": str(models["policy"]), "max_length": 40}
    assert train(method, config_file("refusing", **fields, too_long="refuse")) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "rows.jsonl, line 1 (line 1): expected rules and a turn in 40 tokens, which is " in line
    assert "set too_long to truncate or skip" in line
    assert not (tmp_path / "refusing" / "model").exists()
    for too_long, counts in (("skip", (0, 1)), ("truncate", (1, 0))):
        assert train(method, config_file(too_long, **fields, too_long=too_long), tmp_path / f"{too_long}.jsonl") == 0
        begun, *_ = events_in(tmp_path / f"{too_long}.jsonl")
        assert (begun["cut"], begun["skipped"]) == counts
        assert begun["sequences"] == {"skip": 1, "truncate": 2}[too_long] * (2 if method == "stable-alignment" else 1)


def test_a_move_that_is_cut_is_not_taught_to_end_and_others_of_its_row_stay_whole(tokenizer: Any) -> None:
    chat = [{"role": role, "content": text} for role, text in episodes()[0]]
    chat[3]["content"] = "[message] no, thanks " * 4
    chat[1]["content"] = chat[5]["content"] = "[message] no"
    shown = {}
    for too_long in ("truncate", "skip"):
        sequences, done = Renderer(tokenizer, 20, too_long=too_long).render(chat)
        shown[too_long] = [marked_text(each, tokenizer) for each in sequences]
        assert done == {"shortened": 1, "cut" if too_long == "truncate" else "skipped": 1}
    first, long, last = shown["truncate"]
    assert first.endswith("[[message] no <|end|>]")
    assert "[[message] no, thanks [message] no, thanks" in long
    assert "<|end|>]" not in long
    assert last.endswith("[[message] no <|end|>]")
    assert shown["skip"] == [first, last]


def test_a_conversation_of_many_turns_is_shortened_without_rendering_it_in_every_form(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns, longest = 32, 40
    chat = [{"role": ("user", "assistant")[at % 2], "content": "no hats " * (1 + at % 3)} for at in range(2 * turns)]
    renderer, rendered = Renderer(tokenizer, longest), 0
    template = tokenizer.apply_chat_template

    def counted(chats: Any, **arguments: Any) -> Any:
        nonlocal rendered
        rendered += len(chats)
        return template(chats, **arguments)

    monkeypatch.setattr(tokenizer, "apply_chat_template", counted)
    sequences, done = renderer.render(chat)
    assert done == {"shortened": 1}
    assert rendered < 20 * turns  # each turn in some six forms, with and without its move
    forms = [Renderer(tokenizer, 128).render(kept)[0][-1].ids for kept in renderer.shorter(chat)]
    assert sequences[-1].ids == next(each for each in forms if len(each) <= longest)


def test_a_part_kept_aside_of_which_nothing_fits_is_refused(
    data: Path, config_file: Callable[..., Path], refusal: Callable[..., str], tmp_path: Path
) -> None:
    row = {"messages": [{"role": "user", "content": "books " * 40}, {"role": "assistant", "content": "no"}]}
    held_out = write_rows(tmp_path / "held-out.jsonl", [row])
    line = refusal(config_file(data=str(data), eval_data=str(held_out), max_length=40))
    assert "expected a row to evaluate on, got 1 that do not fit into 40 tokens and no other; raise max_length" in line
