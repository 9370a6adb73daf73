"""The engine's answers are those of the library, model by model, whoever else is answered and whatever it has kept."""

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from app.inference.batch import Batch
from app.inference.generate_batch import GenerateBatch
from app.inference.key_value_cache import KeyValueCache
from app.inference.prefix_cache import common_length
from app.inference.requests import Checkpoint, Completion, GenerationRequest, Sampling
from app.inference.runner import ModelRunner
from tests.checkpoints import ARCHITECTURES, CHATML, bytes_model, scripted_model, thinking_tokenizer
from training import checkpoints

WINDOWED = ("mistral", "gemma2", "gemma3")
IN_ROWS = [kind for kind in ARCHITECTURES if kind not in WINDOWED]
GREEDY = Sampling(0, None, None)
MOST = 6  # tokens of an answer
SAID = ("I want 2 books", "no, thanks", "[propose] (1 books, 2 hats, 0 balls)", "Größe? 🎈", "a")


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def new_runner(folder: Path, kind: str, memory: int = 1 << 29) -> ModelRunner:
    checkpoint = Checkpoint(folder, bytes_model(folder, kind), "cpu", "float32")
    return ModelRunner(checkpoint, lambda: memory)


class Talk:
    """A conversation of some turns, each of which goes on from the last one and its answer."""

    def __init__(self, number: int, loop: asyncio.AbstractEventLoop, sampling: Sampling = GREEDY) -> None:
        words = f"{' '.join(SAID[: number % len(SAID) + 1])} {number}"
        self._messages = [{"role": "user", "content": words}]
        self._number, self._loop, self._sampling = number, loop, sampling
        self.requests: list[GenerationRequest] = []

    def ask(self) -> GenerationRequest:
        """The request for its next turn."""
        seed = f"{self._number}/{len(self.requests)}"
        request = GenerationRequest(
            list(self._messages), self._sampling, MOST, seed, self._loop, self._loop.create_future()
        )
        self.requests.append(request)
        return request

    def hear(self) -> None:
        """Go on from the answer."""
        reply = {"role": "user", "content": SAID[(self._number + len(self.requests)) % len(SAID)]}
        self._messages += [{"role": "assistant", "content": self.answers[-1].text or "-"}, reply]

    @property
    def answers(self) -> list[Completion]:
        found = [request.result for request in self.requests]
        assert all(isinstance(each, Completion) for each in found), found
        return [each for each in found if isinstance(each, Completion)]


def converse(runner: ModelRunner, talks: Sequence[Talk], turns: int = 2, every: int = 3) -> None:
    """Have all conversations, of which one more begins every so many tokens."""
    waiting, coming, by_request = deque[GenerationRequest](), deque(talks), dict[GenerationRequest, Talk]()
    step = 0

    def ask(talk: Talk) -> None:
        request = talk.ask()
        assert runner.prepare(request), request.result
        by_request[request] = talk
        waiting.append(request)

    while coming or waiting or len(runner.batch):
        if coming and step % every == 0:
            ask(coming.popleft())
        for request in runner.go_on(waiting, len(talks), len(talks)):
            talk = by_request[request]
            if len(talk.requests) < turns:
                talk.hear()
                ask(talk)
        step += 1


def answer(runner: ModelRunner, *requests: GenerationRequest) -> None:
    """Have them answered together."""
    assert all(runner.prepare(request) for request in requests)
    waiting, over = deque(requests), 0
    while over < len(requests):
        over += len(runner.go_on(waiting, len(requests), len(requests)))


def of_the_library(prompt: Sequence[int], model: Any, tokenizer: Any) -> list[int]:
    """What `generate` says greedily, alone; control tokens but the end are never said."""
    silent = [token for token in tokenizer.all_special_ids if token != tokenizer.eos_token_id]
    ids = torch.tensor([prompt])
    found = model.generate(
        input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=MOST, do_sample=False,
        suppress_tokens=silent, eos_token_id=tokenizer.eos_token_id, pad_token_id=0,
    )  # fmt: skip
    said: list[int] = found[0, len(prompt) :].tolist()
    return said


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_greedy_answers_are_those_of_the_library_whoever_joins_and_leaves(
    tmp_path: Path, loop: asyncio.AbstractEventLoop, kind: str
) -> None:
    runner = new_runner(tmp_path / "model", kind)
    assert isinstance(runner.batch, GenerateBatch if kind in WINDOWED else Batch), runner.slow
    talks = [Talk(number, loop) for number in range(3)]
    converse(runner, talks)
    model, tokenizer = checkpoints.load(tmp_path / "model")
    for request in (request for talk in talks for request in talk.requests):
        assert request.sampled == of_the_library(request.prompt, model.eval(), tokenizer)
    assert len({tuple(request.sampled) for talk in talks for request in talk.requests}) > 1


@pytest.mark.parametrize("kind", IN_ROWS)
def test_logits_behind_what_was_kept_are_those_of_the_whole_prompt(tmp_path: Path, kind: str) -> None:
    bytes_model(tmp_path, kind)
    model, _ = checkpoints.load(tmp_path)
    model.eval()
    ids = [(37 * at + 11) % 250 for at in range(90)]  # more columns than storage begins with
    rows = KeyValueCache(model)
    with torch.inference_mode():
        rows.forward(0, [ids[:70], ids[5:9]], [0, 0])
        rows.put(1, [rows.get(0, 0, 20), rows.get(0, 20, 50)])
        found = rows.forward(1, [ids[50:]], [50])
        torch.testing.assert_close(found, model(input_ids=torch.tensor([ids])).logits[:, -1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["qwen3", "gemma2"])
def test_what_a_seed_samples_is_the_same_alone_and_in_a_crowd(
    tmp_path: Path, loop: asyncio.AbstractEventLoop, kind: str
) -> None:
    sampling = Sampling(1.3, 60, 0.95)
    runner = new_runner(tmp_path / "model", kind)
    crowd, alone = [Talk(number, loop, sampling) for number in range(5)], Talk(3, loop, sampling)
    converse(runner, crowd)
    runner.release()
    converse(runner, [alone])
    for there, here in zip(crowd[3].answers, alone.answers, strict=True):
        assert there.ids == here.ids
        assert there.log_probs == pytest.approx(here.log_probs, abs=1e-4)


def test_an_answer_that_is_cut_within_a_character_ends_before_it(
    tmp_path: Path, loop: asyncio.AbstractEventLoop
) -> None:
    pieces = thinking_tokenizer(CHATML).tokenize("Gö🎈!")
    assert len(pieces) == 8  # ö has two of them, and the balloon four
    runner = ModelRunner(Checkpoint(tmp_path, scripted_model(tmp_path, CHATML, pieces), "cpu", "auto"), lambda: 1 << 29)
    texts = []
    for most in range(1, 10):
        request = GenerationRequest([{"role": "user", "content": "a"}], GREEDY, most, None, loop, loop.create_future())
        answer(runner, request)
        assert isinstance(request.result, Completion)
        assert len(request.result.ids) == most
        texts.append(request.result.text)
    assert texts == ["G", "G", "Gö", "Gö", "Gö", "Gö", "Gö🎈", "Gö🎈!", "Gö🎈!"]


# ---- What is computed once ----------------------------------------------------------


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokens of prompts each forward pass has computed."""
    found, whole = list[int](), KeyValueCache.forward

    def forward(self: KeyValueCache, begin: int, pieces: Sequence[Sequence[int]], starts: Sequence[int]) -> Any:
        found.extend(sum(map(len, pieces)) for _ in [0] if max(map(len, pieces)) > 1)
        return whole(self, begin, pieces, starts)

    monkeypatch.setattr(KeyValueCache, "forward", forward)
    return found


def test_a_beginning_that_prompts_share_is_computed_once(
    tmp_path: Path, loop: asyncio.AbstractEventLoop, computed: list[int]
) -> None:
    rules = [" ".join([SAID[3] * 12, kind, SAID[2] * 3]) for kind in ("one", "two")]
    runner = new_runner(tmp_path / "model", "llama")

    def ask(number: int, *more: str) -> GenerationRequest:
        texts = [f"{rules[number % 2]} {number}{SAID[number % 3]}", *more]
        messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]
        return GenerationRequest(messages, GREEDY, MOST, None, loop, loop.create_future())

    def took(*requests: GenerationRequest) -> int:
        computed.clear()
        answer(runner, *requests)
        return sum(computed)

    together = [ask(number) for number in range(6)]
    tokens = took(*together)
    prompts = [request.prompt for request in together]
    both, alike = common_length(*prompts[:2]), common_length(prompts[0], prompts[2])
    assert (both > 100, alike > both + 32) == (True, True)
    # The first of either kind, less what both have, and what each has of its own.
    assert tokens <= 2 * alike - both + sum(len(prompt) - alike + 3 for prompt in prompts)
    new = ask(6)
    assert took(new) <= len(new.prompt) - alike + 3
    for number, request in enumerate(together):
        assert isinstance(request.result, Completion)
        more = ask(number, request.result.text or "-", SAID[0])
        assert took(more) <= len(more.prompt) - len(request.prompt)
    for request in (*together, new):
        runner.release()
        answer(runner, alone := GenerationRequest(request.messages, GREEDY, MOST, None, loop, loop.create_future()))
        assert alone.sampled == request.sampled
        assert alone.log_probs == pytest.approx(request.log_probs, abs=1e-4)


# ---- Whose answers are made first ---------------------------------------------------


@pytest.mark.parametrize("memory", [1 << 29, 45_000], ids=["enough memory", "memory for a few"])
def test_answers_that_a_person_waits_for_go_first_and_the_others_stay_the_same(
    tmp_path: Path, loop: asyncio.AbstractEventLoop, memory: int
) -> None:
    runner = new_runner(tmp_path / "model", "llama", memory)

    def ask(number: int, urgent: bool = False) -> GenerationRequest:
        messages = [{"role": "user", "content": f"{SAID[number % 3]} {number}"}]
        future = loop.create_future()
        request = GenerationRequest(messages, Sampling(1, None, None), 24, f"{number}", loop, future, urgent=urgent)
        assert runner.prepare(request)
        return request

    others, most = [ask(number) for number in range(4)], 4
    waiting = deque(others)
    for _ in range(3):
        runner.go_on(waiting, most, most)
    made = [len(request.sampled) for request in others]
    urgent = [ask(number, urgent=True) for number in (7, 8)]
    waiting.extendleft(urgent)
    while any(request.result is None for request in urgent):
        assert all(request.urgent for request in runner.go_on(waiting, most, most))
        now = [len(request.sampled) for request in others]
        assert all(new in (0, old) for new, old in zip(now, made, strict=True))  # 0: made again, for want of memory
    assert (made != now) == (memory < 1 << 20)
    while waiting or len(runner.batch):
        runner.go_on(waiting, most, most)
    for request in (*others, *urgent):
        runner.release()
        alone = ask(int(request.seed or ""))
        answer(runner, alone)
        assert alone.sampled == request.sampled
        assert alone.log_probs == pytest.approx(request.log_probs, abs=1e-4)


# ---- Where an answer ends -----------------------------------------------------------


@pytest.mark.parametrize("sliding", [False, True], ids=["in rows", "by the library"])
def test_an_answer_ends_before_the_first_text_to_stop_at(
    tmp_path: Path, loop: asyncio.AbstractEventLoop, sliding: bool
) -> None:
    pieces = ["I", "Ġwant", "Ġ2", "Ġbooks", "ĉ", "no", ",", "Ġthanks"]
    checkpoint = Checkpoint(tmp_path, scripted_model(tmp_path, CHATML, pieces, sliding), "cpu", "auto")
    runner = ModelRunner(checkpoint, lambda: 1 << 29)
    assert isinstance(runner.batch, GenerateBatch if sliding else Batch)

    def said(*stop: str) -> tuple[str, int, str]:
        messages, future = [{"role": "user", "content": "a"}], loop.create_future()
        request = GenerationRequest(messages, GREEDY, 20, None, loop, future, stop=list(stop))
        answer(runner, request)
        assert isinstance(request.result, Completion)
        assert len(request.result.log_probs) == len(request.result.ids)
        return request.result.text, len(request.result.ids), request.result.finish

    whole = "I want 2 books\tno, thanks"
    assert said() == said("hats") == (whole, 9, "stop")
    assert said("\t") == ("I want 2 books", 5, "stop_string")
    assert said("ook") == ("I want 2 b", 4, "stop_string")  # within a token
    assert said("want 2 b") == ("I", 4, "stop_string")  # over three of them
    assert said("thanks", "2") == ("I want", 3, "stop_string")
    assert said("I") == ("", 1, "stop_string")


def test_what_a_model_thinks_does_not_stop_its_answer(tmp_path: Path, loop: asyncio.AbstractEventLoop) -> None:
    says = ["<think>", "no", ",", "</think>", "I", "Ġwant", "Ġ2"]
    checkpoint = Checkpoint(tmp_path, scripted_model(tmp_path, CHATML, says), "cpu", "auto")
    runner = ModelRunner(checkpoint, lambda: 1 << 29)
    messages, future = [{"role": "user", "content": "a"}], loop.create_future()
    request = GenerationRequest(messages, GREEDY, 6, None, loop, future, room=9, stop=["no", "<think>", " 2"])
    answer(runner, request)
    assert isinstance(request.result, Completion)
    assert (request.result.text, request.result.reasoning) == ("I want", "no,")
    assert request.result.finish == "stop_string"
