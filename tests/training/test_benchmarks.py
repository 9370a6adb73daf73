"""Benchmarks of a checkpoint: the definitions of scores, questions in files, recorded answers, and the harness."""

import importlib.util
import io
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.checkpoints import bytes_model, bytes_tokenizer, word_model
from training.benchmarks.__main__ import CHATS_FIRST, main
from training.benchmarks.config import BenchmarkedCheckpoint
from training.benchmarks.likelihoods import LogLikelihoods, load_checkpoint
from training.benchmarks.questions import chosen_letter, read_questions, score_choices
from training.benchmarks.scores import choice_scores, headline, mean_score
from training.checkpoints import load
from training.errors import TrainingFailed, TrainingRefused
from training.hashes import checkpoint_hash
from training.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "data" / "benchmarks" / "everyday-reasoning.jsonl"
needs_harness = pytest.mark.skipif(
    importlib.util.find_spec("lm_eval") is None,
    reason="lm-evaluation-harness is an extra: pip install -e '.[benchmarks]'",
)


def run(folder: Path, **config: Any) -> tuple[int, list[dict[str, Any]]]:
    """A run of a config: its exit code, and the events that it told."""
    path, events = folder / "config.json", folder / "events.jsonl"
    path.write_text(json.dumps(config))
    events.unlink(missing_ok=True)
    code = main(["run", "--config", str(path), "--progress", str(events)])
    return code, [json.loads(line) for line in events.read_text().splitlines()]


def questions(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "questions.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


# ---- Scores ---------------------------------------------------------------------------


def test_a_mean_has_the_standard_error_of_a_sample() -> None:
    value, error = mean_score([1.0, 0.0, 0.0, 1.0])
    assert value == 0.5
    assert error == pytest.approx(math.sqrt(0.25 * 4 / 3) / 2)
    assert mean_score([1.0]) == (1.0, None)


def test_the_likeliest_choice_is_right_as_it_is_or_by_the_character() -> None:
    # The second choice is the likeliest one, by the character it is the first, which is ten times as long.
    found = choice_scores([[-5.0, -1.0]], [["ten letters", "x"]], [0])
    assert (found["acc"].value, found["acc_norm"].value) == (0.0, 1.0)


def test_a_task_counts_by_its_accuracy_where_it_has_one() -> None:
    assert [headline(names) for names in (["acc_norm", "acc"], ["mrr", "r@1"], ["f1", "em"])] == ["acc", "r@1", "f1"]


def test_the_shipped_questions_are_sound_and_no_letter_is_right_more_often_than_another() -> None:
    found = read_questions(SHIPPED)
    assert len({each.text for each in found}) == len(found) == 40
    assert all(len(set(each.choices)) == 4 for each in found)
    assert [sum(each.answer == letter for each in found) for letter in range(4)] == [10, 10, 10, 10]


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ({"choices": ["a", "b"], "answer": 0}, "question: expected text, got None"),
        ({"question": "Why?", "choices": ["a"], "answer": 0}, "choices: expected 2 to 26 of them, got 1"),
        ({"question": "Why?", "choices": ["a", "b"], "answer": 2}, "answer: expected a number from 0 to 1, got 2"),
    ],
)
def test_a_bad_question_is_named_by_its_line(tmp_path: Path, row: dict[str, Any], line: str) -> None:
    with pytest.raises(TrainingRefused, match="line 2") as refused:
        read_questions(questions(tmp_path, {"question": "?", "choices": ["a", "b"], "answer": 1}, row))
    assert line in str(refused.value)


def test_numbers_that_json_does_not_have_are_null_wherever_they_stand() -> None:
    stream = io.StringIO()
    Progress(stream).tell("task", n=math.inf, scores={"acc": {"value": math.nan}}, values=[1.5, -math.inf])
    told = json.loads(stream.getvalue())
    assert (told["n"], told["scores"], told["values"]) == (None, {"acc": {"value": None}}, [1.5, None])


# ---- A checkpoint ---------------------------------------------------------------------


def test_log_likelihoods_do_not_depend_on_what_else_is_in_the_batch(tmp_path: Path) -> None:
    checkpoint = BenchmarkedCheckpoint(path=tmp_path, sha256=bytes_model(tmp_path), device="cpu")
    model, tokenizer = load_checkpoint(checkpoint)
    pairs = [("I want", " 2 books"), ("no, thanks. I want the hats and", " 1 balls")]
    together = LogLikelihoods(model, tokenizer, 8, lambda _done, _of: None)(pairs)
    text = "".join(pairs[0])
    ids = torch.tensor([tokenizer.encode(text)])
    begin = len(tokenizer.encode(pairs[0][0]))
    with torch.no_grad():
        log_probs = model(ids).logits[0].log_softmax(-1)
    alone = sum(float(log_probs[at - 1, ids[0, at]]) for at in range(begin, ids.shape[1]))
    assert together[0] == pytest.approx(alone, abs=1e-4)


def test_a_pair_begins_with_the_token_of_the_tokenizer_and_loses_its_beginning_where_it_is_too_long(
    tmp_path: Path,
) -> None:
    sha256 = bytes_model(tmp_path, template=None, begins=True)
    model, tokenizer = load_checkpoint(BenchmarkedCheckpoint(path=tmp_path, sha256=sha256, device="cpu"))
    plain = bytes_tokenizer(None)
    pairs = [("I want", " 2 books"), ("no " * 2000, " 1 balls"), ("I want", " hats" * 2000)]
    found = LogLikelihoods(model, tokenizer, 2, lambda _done, _of: None)(pairs)
    for (context, continuation), value in zip(pairs, found, strict=True):
        whole = [tokenizer.bos_token_id, *plain.encode(context + continuation)][-1025:]  # it takes 1,024 tokens
        count = min(len(plain.encode(context + continuation)) - len(plain.encode(context)), 1024)
        with torch.no_grad():
            log_probs = model(torch.tensor([whole[:-1]])).logits[0].log_softmax(-1)
        expected = sum(float(log_probs[at - 1, whole[at]]) for at in range(len(whole) - count, len(whole)))
        assert value == pytest.approx(expected, rel=1e-5)


def test_a_model_that_computes_no_numbers_has_no_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    word_model(tmp_path / "model")
    model, tokenizer = load(tmp_path / "model")
    with torch.no_grad():
        model.model.norm.weight[0] = math.nan
    model.save_pretrained(tmp_path / "broken")
    tokenizer.save_pretrained(tmp_path / "broken")
    checkpoint = {"path": str(tmp_path / "broken"), "sha256": checkpoint_hash(tmp_path / "broken"), "device": "cpu"}
    code, events = run(tmp_path, tasks=[{"name": "shipped", "questions": str(SHIPPED)}], checkpoint=checkpoint)
    assert (code, [each["event"] for each in events]) == (1, ["started", "failed"])
    assert events[-1]["message"].startswith("expected log-likelihoods that are numbers, got nan of the continuation ")
    assert capsys.readouterr().err == f"error: {events[-1]['message']}\n"


def test_a_run_tells_each_task_as_soon_as_it_is_scored(tmp_path: Path) -> None:
    sha256 = word_model(tmp_path / "model")
    tasks = [{"name": name, "questions": str(SHIPPED)} for name in ("first", "second")]
    checkpoint = {"path": str(tmp_path / "model"), "sha256": sha256, "device": "cpu"}
    code, events = run(tmp_path, tasks=tasks, checkpoint=checkpoint, limit=6, batch=4)
    assert code == 0
    told = [each for each in events if each["event"] != "progress"]
    assert [each["event"] for each in told] == ["started", "task", "task", "finished"]
    assert [each["done"] for each in events if each["event"] == "progress"][-1] == 24
    first, second = told[1:3]
    assert (first["task"], first["n"], first["metric"], first["source"]) == ("first", 6, "acc", "parlor")
    assert first["scores"] == second["scores"]
    assert first["scores"]["acc"]["stderr"] > 0


def test_a_checkpoint_that_was_changed_is_not_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    word_model(tmp_path / "model")
    task = {"name": "shipped", "questions": str(SHIPPED)}
    code, events = run(tmp_path, tasks=[task], checkpoint={"path": str(tmp_path / "model"), "sha256": "0" * 64})
    assert (code, [each["event"] for each in events]) == (2, ["failed"])
    assert "expected the checkpoint with hash 000000000000…" in events[0]["message"]
    assert capsys.readouterr().err.endswith(f"error: {events[0]['message']}\n")


def test_want_of_memory_says_what_to_lower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr(LogLikelihoods, "__call__", full)
    checkpoint = {"path": str(tmp_path / "model"), "sha256": word_model(tmp_path / "model"), "device": "cpu"}
    code, events = run(tmp_path, tasks=[{"name": "shipped", "questions": str(SHIPPED)}], checkpoint=checkpoint)
    assert (code, events[-1]["event"]) == (1, "failed")
    assert events[-1]["message"].endswith("; lower batch")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (TrainingRefused("memory-tasks: expected a task that can be loaded"), "memory-tasks: expected a task that can"),
        (TrainingFailed("no score of long_memory"), "no score of long_memory"),
        (ImportError("libtorch.so: failed to map segment from shared object"), "there is not even room for the librar"),
        (ModuleNotFoundError("No module named 'transformers'"), "expected the packages of a training to be installed"),
    ],
)
def test_what_else_stops_a_run_is_not_called_want_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, line: str
) -> None:
    def stop(*_: object) -> None:
        raise error

    monkeypatch.setattr("training.benchmarks.run.run", stop)
    checkpoint = {"path": str(tmp_path), "sha256": "0" * 64}
    code, [failed] = run(tmp_path, tasks=[{"name": "mmlu"}], checkpoint=checkpoint)
    assert (code, failed["event"]) == (2 if isinstance(error, TrainingRefused) else 1, "failed")
    assert line in failed["message"]
    assert "lower batch" not in failed["message"]


# ---- Answers of a chat model ------------------------------------------------------------


def test_answers_are_asked_for_once_and_scored_by_their_letter(tmp_path: Path) -> None:
    rows = [{"question": f"Which is {right}?", "choices": ["red", "blue"], "answer": right} for right in (0, 1, 1)]
    task = {"name": "letters", "questions": str(questions(tmp_path, *rows)), "form": "letters"}
    config = {"tasks": [task], "answers": str(tmp_path / "answers.jsonl"), "requests": str(tmp_path / "asked.jsonl")}
    code, events = run(tmp_path, **config)
    assert (code, events) == (CHATS_FIRST, [])
    asked = [json.loads(line) for line in (tmp_path / "asked.jsonl").read_text().splitlines()]
    assert len(asked) == 2  # the last two questions are the same
    assert asked[0]["text"].splitlines()[1:3] == ["A. red", "B. blue"]
    answers = [{"key": asked[0]["key"], "text": "A. red, I think"}, {"key": asked[1]["key"], "text": "It is red"}]
    (tmp_path / "answers.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in answers))
    code, [scored, finished] = run(tmp_path, **config)
    assert (code, finished["event"]) == (0, "finished")
    assert scored["metric"] == "exact_match"
    assert scored["scores"]["exact_match"]["value"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B", "B"),
        ("B.", "B"),
        (" B\n", "B"),
        ("(B)", "B"),
        ("[B]", "B"),
        ("B) blue", "B"),
        ("B. blue, I think", "B"),
        ("B: A red one would be hot.", "B"),
        ("B - A blue one", "B"),
        ("B\n\nA red one would be hot.", "B"),
        ("**B**", "B"),
        ("**B. blue**", "B"),
        ("__B__: blue", "B"),
        ("`B`", "B"),
        ("'B'", "B"),
        ("Answer: B", "B"),
        ("**Answer:** B", "B"),
        ("Answer: **B. blue**", "B"),
        ("My answer would be (B), blue.", "B"),
        ("I think the answer is B.", "B"),
        ("The correct answer is option B, not option", "B"),
        ("The answer is $\\boxed{B}$", "B"),
        ("Option B", "B"),
        ("I'd say **C**", "C"),
        ("I would go for C here.", "C"),
        ("A good question: the answer is D", "D"),
        ("A hard one. I take D.", "D"),
        ("A wheel is round, so C.", "C"),
        ("C is correct, since A is hot.", "C"),
        ("The answer is not A but B.", "B"),
        ("It is A", "A"),
        ("A is right", "A"),
        ("A, without a doubt", "A"),
        ("It is red", None),
        ("I do not know.", None),
        ("E", None),  # there are four choices
        ("That is A's view.", None),
        ("", None),
    ],
)
def test_the_letter_of_an_answer_is_found_as_models_give_it(text: str, letter: str | None) -> None:
    assert chosen_letter(text, 4) == letter


def test_a_letter_that_is_a_word_counts_where_there_are_so_many_choices() -> None:
    assert (chosen_letter("I think it is C.", 9), chosen_letter("I", 9)) == ("C", "I")


def test_log_likelihoods_cannot_be_had_of_answers(tmp_path: Path) -> None:
    task = {"name": "shipped", "questions": str(SHIPPED)}
    code, events = run(tmp_path, tasks=[task], answers=str(tmp_path / "none.jsonl"))
    assert code == 2
    assert "shipped: expected a checkpoint, whose log-likelihoods it scores" in events[-1]["message"]


# ---- lm-evaluation-harness ----------------------------------------------------------------


def test_no_library_is_loaded_before_it_is_told_to_ask_no_server() -> None:
    heavy = "[name for name in ('torch', 'transformers', 'huggingface_hub', 'datasets') if name in sys.modules]"
    code = f"import sys, training.benchmarks.__main__; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_task_of_the_harness_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.benchmarks.tasks.is_installed", lambda: False)
    checkpoint = {"path": str(tmp_path / "nowhere"), "sha256": "0" * 64}
    code, events = run(tmp_path, tasks=[{"name": "mmlu"}], checkpoint=checkpoint)
    assert code == 2
    assert events[-1]["message"].endswith("got none here; pip install -c constraints.txt -e '.[training,benchmarks]'")


@needs_harness
@pytest.mark.parametrize("kind", ["words", "bytes", "mistral"])
def test_the_harness_and_the_scorer_of_questions_agree(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    from training.benchmarks.harness import language_model

    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "model"
    sha256 = word_model(folder) if kind == "words" else bytes_model(folder, "gpt2" if kind == "bytes" else kind)
    model, tokenizer = load_checkpoint(BenchmarkedCheckpoint(path=folder, sha256=sha256, device="cpu"))
    likelihoods = LogLikelihoods(model, tokenizer, 8, lambda _done, _of: None)
    own = score_choices("everyday-reasoning", SHIPPED, None, likelihoods)
    found = simple_evaluate(
        model=language_model(model, tokenizer, 8),
        tasks=["everyday-reasoning"],
        task_manager=TaskManager(include_path=str(SHIPPED.parent), include_defaults=False),
    )
    theirs = found["results"]["everyday-reasoning"]
    for metric, score in own.scores.items():
        assert score.value == pytest.approx(theirs[f"{metric},none"], abs=1e-9)
        assert score.stderr == pytest.approx(theirs[f"{metric}_stderr,none"], abs=1e-9)


GENERATIVE = """
task: letters
dataset_path: json
dataset_kwargs: {data_files: {test: FILE}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}} A. {{choices[0]}} B. {{choices[1]}}"
doc_to_target: "{{['A', 'B'][answer]}}"
generation_kwargs: {until: ["\\n"], max_gen_toks: 4}
metric_list: [{metric: exact_match}]
"""


@needs_harness
def test_a_task_of_the_harness_is_scored_by_answers_that_were_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lm_eval.tasks import TaskManager

    from training.benchmarks import harness

    rows = [{"question": f"Which is {right}?", "choices": ["red", "blue"], "answer": right} for right in (0, 1)]
    file = questions(tmp_path, *rows)
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "letters.yaml").write_text(GENERATIVE.replace("FILE", str(file)))
    found = TaskManager(include_path=str(tmp_path / "tasks"), include_defaults=False)
    monkeypatch.setattr(harness, "_manager", lambda: found)
    config = {"answers": str(tmp_path / "answers.jsonl"), "requests": str(tmp_path / "asked.jsonl")}
    assert run(tmp_path, tasks=[{"name": "letters"}], **config)[0] == CHATS_FIRST
    asked = [json.loads(line) for line in (tmp_path / "asked.jsonl").read_text().splitlines()]
    assert [(each["text"], each["max_tokens"]) for each in asked] == [
        ("Which is 0? A. red B. blue", 4), ("Which is 1? A. red B. blue", 4),
    ]  # fmt: skip
    answers = [{"key": asked[0]["key"], "text": "A\nas it seems"}, {"key": asked[1]["key"], "text": "A"}]
    (tmp_path / "answers.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in answers))
    code, [scored, _] = run(tmp_path, tasks=[{"name": "letters"}], **config)
    assert (code, scored["metric"], scored["n"]) == (0, "exact_match", 2)
    assert scored["scores"]["exact_match"]["value"] == 0.5
    assert scored["source"].startswith("lm_eval ")


@needs_harness
def test_a_group_of_the_harness_has_one_score_over_all_of_its_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lm_eval.tasks import TaskManager

    from training.benchmarks import harness

    folder = tmp_path / "tasks"
    folder.mkdir()
    shipped = SHIPPED.with_suffix(".yaml").read_text().replace("data/benchmarks/", f"{SHIPPED.parent}/")
    for name in ("one", "two"):
        (folder / f"{name}.yaml").write_text(shipped.replace("task: everyday-reasoning", f"task: {name}"))
    group = "group: both\ntask: [one, two]\naggregate_metric_list: [{metric: acc, weight_by_size: true}]\n"
    (folder / "both.yaml").write_text(group)
    found = TaskManager(include_path=str(folder), include_defaults=False)
    monkeypatch.setattr(harness, "_manager", lambda: found)
    known = harness.find_task("both")
    assert known is not None
    assert (known.generates, known.missing) == (False, [])
    checkpoint = {"path": str(tmp_path / "model"), "sha256": word_model(tmp_path / "model"), "device": "cpu"}
    code, events = run(tmp_path, tasks=[{"name": "both"}], checkpoint=checkpoint, limit=10)
    own = run(tmp_path, tasks=[{"name": "own", "questions": str(SHIPPED)}], checkpoint=checkpoint, limit=10)[1][-2]
    scored = events[-2]
    assert (code, scored["task"], scored["n"], scored["metric"]) == (0, "both", 20, "acc")
    assert scored["scores"]["acc"]["value"] == pytest.approx(own["scores"]["acc"]["value"])
    assert scored["scores"]["acc"]["stderr"] > 0


@needs_harness
def test_a_score_that_is_no_number_is_kept_as_one_without_a_value() -> None:
    from training.benchmarks.harness import _task_scores

    own = {"alias": "x", "acc,none": math.nan, "acc_stderr,none": math.nan, "f1,none": 0.5, "f1_stderr,none": "N/A"}
    assert _task_scores(own) == {"acc": (None, None), "f1": (0.5, None)}


@needs_harness
def test_a_task_without_its_data_is_refused_before_a_model_is_loaded(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "training.benchmarks", "tasks", "arc_easy", "piqa"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    refused = json.loads(done.stdout)["refused"]
    assert "got none for arc_easy, piqa; run `python -m training.benchmarks fetch arc_easy piqa`" in refused
