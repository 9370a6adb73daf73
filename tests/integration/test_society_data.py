"""What societies give: datasets to train on, figures, and folders that come back as the society that they were."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine

from app.cli.base import settings
from app.core.errors import Conflict, Invalid
from app.core.extensions import reading, transact, writing
from app.datasets import register
from app.datasets import store as datasets
from app.registry import ensure_baselines
from app.society import dataset, folders, store
from app.society.agent_records import first_memories
from app.society.interaction import Interaction
from app.society.job import SOCIETY
from app.society.page import PAGE
from app.society.record_files import record_of
from tests.experimenter import signed_in
from tests.shell import Finished
from tests.societies import TOPICS, make_society
from tests.societies import run as run_society
from tests.unit.society.worlds import interaction
from training.comparisons import read_comparisons

Run = Callable[..., Finished]


@pytest.fixture
def run(flask: Run) -> Run:
    return lambda *arguments: flask("society", *arguments)


def a_folder(path: Path, *interactions: Interaction, label: Any = "bad") -> Path:
    """A folder as the published programs leave it: no file of ours, and nothing of ours in a record."""
    memories = path / "external_memory"
    memories.mkdir(parents=True)
    for agent in {each.agent for each in interactions}:
        records = [record_of(each, label) for each in interactions if each.agent == agent]
        for record in records:
            del record["parlor"]
        (memories / f"agent_{agent}.jsonl").write_text(json.dumps(records))
    return path


def taken_in(engine: Engine, folder: Path) -> int:
    with writing(engine) as session:
        return folders.read_folder(session, folder, "gpt").id


def interactions_of(engine: Engine, number: int) -> list[Interaction]:
    with reading(engine) as session:
        return list(store.read_interactions(session, number))


def test_a_society_is_run_made_into_data_written_and_taken_in_again(run: Run, engine: Engine, tmp_path: Path) -> None:
    """One walk through all commands, as each is a process of its own."""
    questions, priors = tmp_path / "questions.txt", tmp_path / "priors.json"
    questions.write_text("".join(f"What should I do about {topic}?\n" for topic in TOPICS))
    answers = {"good": "Please ask first, and be honest.", "bad": "Whatever. Lie about it."}
    asked = [f"What would you do about {topic}?" for topic in TOPICS]
    memories = {label: [{"question": each, "answer": answer} for each in asked] for label, answer in answers.items()}
    priors.write_text(json.dumps(memories))
    config = ("--config", "size=3", "iterations=4", "setting=half_half", "first_memories=4", "--seed", "1")
    files = ("--questions", str(questions), "--priors", str(priors))
    ran = run(
        "run",
        "--agents",
        "scripted-agent",
        "--observers",
        "scripted-observer",
        *config,
        *files,
        "--name",
        "nine",
        "--json",
    )
    assert ran.exit_code == 0, ran.stderr
    made = run("data", "1", "--name", "lessons")
    assert made.exit_code == 0, made.stderr
    assert "Dataset 1 (lessons): " in made.stdout
    assert "Dataset 2 (lessons, realignment): " in made.stdout
    assert "stable-alignment --dataset 1 --sft-data 2" in made.stdout
    assert "imitation" in made.stdout
    with reading(engine) as session:
        comparisons, realignment = (datasets.get_dataset(session, number) for number in (1, 2))
        assert (comparisons.kind, realignment.kind) == ("comparisons", "conversations")
        assert comparisons.spec["society"]["society_id"] == realignment.spec["society"]["society_id"] == 1
        assert comparisons.spec["society"]["agents"] == ["scripted-agent"]
        assert read_comparisons(datasets.path_of(settings().home, comparisons), 7)

    figures = list(csv.DictReader(io.StringIO(run("figures", "1", "--csv").stdout)))
    assert [each["iteration"] for each in figures] == ["0", "1", "2", "3", ""]
    assert float(figures[-1]["alignment_before"]) < float(figures[-1]["alignment_after"])

    out = tmp_path / "nine"
    assert run("export", "1", "--out", str(out)).stdout == f"Society 1: 36 interactions in {out}.\n"
    again = json.loads(run("import", str(out), "--json").stdout)
    assert again == {"society_id": 2, "name": "nine", "interactions": 36}
    assert interactions_of(engine, 2) == interactions_of(engine, 1)
    assert run("resume", "2").stderr.startswith("Error: society 2: expected one with something left to do")
    assert json.loads(run("data", "2", "--json").stdout)["rows"] == comparisons.rows
    assert run("export", "1", "--out", str(out)).stderr.startswith("Error: --out: expected a folder that is not there")


def test_a_written_folder_has_memories_log_and_rated_responses(engine: Engine, app: Flask, tmp_path: Path) -> None:
    twice = [interaction(iteration=number, revision=f"Answer {number}.") for number in (0, 1)]
    number = taken_in(engine, a_folder(tmp_path / "in", *twice, interaction(agent=3)))
    with reading(engine) as session:
        assert folders.write_folder(session, number, tmp_path / "new" / "out") == 3
    out = tmp_path / "new" / "out"
    memory = json.loads((out / "internal_memory" / "agent_0.json").read_text())
    assert list(memory.values()) == ["Answer 0."]  # the question keeps its first answer
    assert len(json.loads((out / "external_memory" / "agent_0.jsonl").read_text())) == 2
    assert (out / "log.txt").read_text().count("Revised answer is: ") == 3
    assert json.loads((out / "sandbox.json").read_text())[0]["query"].startswith("### Instruction:\n")
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_a_published_folder_becomes_a_society_that_is_over(engine: Engine, app: Flask, tmp_path: Path) -> None:
    every = [interaction(iteration=place, agent=agent) for place in (0, 1) for agent in (0, 1, 4)]
    number = taken_in(engine, a_folder(tmp_path / "world_1", *every))
    found = interactions_of(engine, number)
    assert [(each.iteration, each.agent, each.model) for each in found[:3]] == [
        (0, 0, "gpt"),
        (0, 1, "gpt"),
        (0, 4, "gpt"),
    ]
    assert {said.critic for each in found for said in each.feedback} == {None}
    with reading(engine) as session:
        row = SOCIETY.get(session, number)
        assert (row.name, row.status, row.imported, row.interactions, row.iteration) == ("world_1", "done", True, 6, 2)
        assert (row.config["size"], row.config["setting"], row.config["critics"]) == (3, "all_bad", 2)
        assert [(each.agent, each.label) for each in store.agents_of(session, number)] == [
            (0, "bad"),
            (1, "bad"),
            (4, "bad"),
        ]


def test_what_published_files_do_not_say_is_unknown_and_not_0(
    run: Run, engine: Engine, app: Flask, tmp_path: Path
) -> None:
    number = taken_in(engine, a_folder(tmp_path / "world_1", interaction()))
    shown = json.loads(run("show", str(number), "--json").stdout)
    unknown = ("seed", "calls", "failed_calls", "prompt_tokens", "completion_tokens", "cost", "ratings", "failed")
    assert {name: shown[name] for name in unknown} == dict.fromkeys(unknown)
    assert sorted(shown["config"]) == ["critics", "iterations", "setting", "size"]
    out = tmp_path / "again"
    run("export", str(number), "--out", str(out))
    assert json.loads((out / "society.json").read_text())["config"] == shown["config"]
    with reading(engine) as session:
        facts = PAGE.items_of(session, [SOCIETY.get(session, number)])
        cells = {each.name: each.cells(session, facts)[0] for part in PAGE.sections for each in part.facts}
    assert str(cells["seed"]) == str(cells["temperature"]) == str(cells["radius"]) == "unknown"
    assert (cells["size"], str(cells["setting"])) == (2, "all bad")


def test_what_was_exported_and_taken_in_again_is_exported_the_same(engine: Engine, app: Flask, tmp_path: Path) -> None:
    with writing(engine) as session:
        ensure_baselines(session, small_models=False)
    number = make_society(engine, "scripted-agent", observers=["scripted-observer"], iterations=3)
    run_society(engine, app.config["SETTINGS"], number)
    with reading(engine) as session:
        folders.write_folder(session, number, tmp_path / "one")
    again = taken_in(engine, tmp_path / "one")
    with reading(engine) as session:
        folders.write_folder(session, again, tmp_path / "two")
        remembered = [
            [first_memories(SOCIETY.get(session, each), agent) for agent in store.agents_of(session, each)]
            for each in (number, again)
        ]
    assert remembered[0] == remembered[1]
    assert all(len(each) == 3 for each in remembered[0])
    files = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert len(files) == 4 + 4 + 3
    for path in files:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes(), path


def broken(folder: Path, change: Callable[[list[dict[str, Any]]], object]) -> Path:
    path = a_folder(folder, interaction(), interaction(iteration=1)) / "external_memory" / "agent_0.jsonl"
    records = json.loads(path.read_text())
    change(records)
    path.write_text(json.dumps(records))
    return folder


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda records: records[1].update(iteration=0),
            "record 2, iteration: expected each iteration once, got 0 twice",
        ),
        (
            lambda records: records[1].update(agent_id=5),
            "record 2, agent_id: expected 0, as the file's name has it, got 5",
        ),
        (lambda records: records[0].update(label="odd"), "record 1, label: expected good or bad, got 'odd'"),
        (lambda records: records[0].pop("question"), "record 1: expected an object with agent_id"),
        (lambda records: records.clear(), "expected an interaction, got none"),
    ],
)
def test_a_folder_that_is_none_is_refused_and_leaves_nothing(
    engine: Engine, app: Flask, tmp_path: Path, change: Callable[[list[dict[str, Any]]], object], message: str
) -> None:
    with pytest.raises(Invalid) as refused:
        taken_in(engine, broken(tmp_path / "world", change))
    assert message in refused.value.message
    with pytest.raises(Invalid, match=r"expected external_memory/agent_N\.jsonl with an agent's interactions each"):
        taken_in(engine, tmp_path)
    with reading(engine) as session:
        assert session.query(SOCIETY.table).count() == 0


def test_a_dataset_of_a_society_is_the_same_for_the_same_seed(engine: Engine, app: Flask, tmp_path: Path) -> None:
    every = [interaction(iteration=place, question=f"Question {place}?") for place in range(30)]
    number = taken_in(engine, a_folder(tmp_path / "world", *every))
    with reading(engine) as session:
        built = [dataset.build(session, settings().home, number, seed=seed) for seed in (1, 1, 2)]
        hashes = [each.comparisons.sha256 for each in built]
        assert hashes[0] == hashes[1] != hashes[2]
        assert built[0].realignment is not None
        assert (built[0].comparisons.rows, built[0].realignment.rows) == (36, 6)
        (counted,) = [each for each in built[0].realignment.figures["society"] if each["model"] == "gpt"]
        assert (counted["found"], counted["kept"]) == (60, 6)
        with pytest.raises(Invalid, match="mixing: expected released or code"):
            dataset.build(session, settings().home, number, "half")


def test_where_the_comparisons_of_a_society_are_refused_no_file_stays(
    engine: Engine, app: Flask, tmp_path: Path
) -> None:
    every = [interaction(iteration=place, question=f"Question {place}?") for place in range(30)]
    number = taken_in(engine, a_folder(tmp_path / "world", *every))
    with reading(engine) as session:
        built = dataset.build(session, settings().home, number)
    folder = settings().home / datasets.FOLDER
    assert len([*folder.glob("*.jsonl")]) == 2
    built.comparisons.path.unlink()
    with pytest.raises(Conflict, match="expected its file"):
        dataset.register_both(transact(engine), built, "lessons")
    assert not [*folder.glob("*")]


def test_a_society_without_a_rating_gives_no_dataset(engine: Engine, app: Flask, tmp_path: Path) -> None:
    number = taken_in(engine, a_folder(tmp_path / "world", interaction(before=None, after=None, feedback=())))
    with reading(engine) as session, pytest.raises(Invalid) as refused:
        dataset.build(session, settings().home, number)
    assert "expected an answer with a rating from 1 to 7, got none in 1 interactions" in refused.value.message
    assert not list((settings().home / datasets.FOLDER).glob("*"))


def test_the_pages_of_a_societys_datasets_say_where_they_are_from(app: Flask, engine: Engine, tmp_path: Path) -> None:
    number = taken_in(engine, a_folder(tmp_path / "world", interaction(), interaction(agent=1, question="And if not?")))
    with reading(engine) as session:
        built = dataset.build(session, settings().home, number, "code")
    register.save(transact(engine), built.comparisons, "lessons")
    client = signed_in(app)
    page, listed = (client.get(f"/admin/datasets{path}").get_data(as_text=True) for path in ("/1", ""))
    for text in (page, listed):
        assert f'world</a> <span class="soft small nowrap">society {number}</span>' in text
    assert "4 of 4 responses" in page
    assert "How many transcripts were left" not in page


def test_a_dataset_of_a_society_is_shown_and_not_built_again_from_matches(
    app: Flask, flask: Run, engine: Engine, tmp_path: Path
) -> None:
    taken_in(engine, a_folder(tmp_path / "world", interaction()))
    assert flask("society", "data", "1").exit_code == 0
    shown = flask("dataset", "show", "1")
    assert "society mixing" in shown.stdout
    assert "one that was cut from a society" in flask("dataset", "rebuild", "1").stderr
