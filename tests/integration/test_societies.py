"""Societies as jobs: what is made of them, what stops them, and that interruptions change nothing."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.errors import Invalid
from app.core.extensions import reading, writing
from app.jobs import states
from app.jobs.leases import MOST_DEATHS
from app.model_calls import job_worker, job_writer
from app.model_calls.job_calls import MOST_EMPTY
from app.models import GenerationRow, LanguageModel, Society, SocietyInteraction
from app.players.scripted.chat.prompts import ANSWER, RATE_TALK, RATE_VALUES, REVISE, read_prompt
from app.registry.changes import is_in_use
from app.society import lifecycle, listing, store, world
from app.society.config import SocietyConfig
from app.society.job import SOCIETY
from app.society.material import PriorMemories, QuestionList
from app.society.prompts import TEMPLATE
from app.society.spec import SocietySpec
from tests.jobs import is_internal_error
from tests.societies import (
    PRIORS,
    QUESTIONS,
    add_chat_models,
    create,
    facts,
    make_society,
    model_of,
    opinion,
    row_of,
    run,
    spec_of,
)
from tests.stub_openai import Messages, Reply, StubServer

CALLS = 1 + 2 + 1 + 4  # of an interaction with two critics and one observer


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        server.script("voice", opinion)
        server.script("other", opinion)
        server.script("paid", opinion)
        server.script("slow", Reply(opinion, delay=0.03))
        server.script("mute", "I cannot rate this.")
        yield server


@pytest.fixture
def settings(app: Flask, engine: Engine, stub: StubServer) -> Settings:
    add_chat_models(engine, stub.url, "voice", "other", "mute", in_flight=8)
    add_chat_models(engine, stub.url, "slow", in_flight=2)
    found: Settings = app.config["SETTINGS"]
    return found


def embeddings(engine: Engine, number: int) -> list[GenerationRow]:
    """The calls by which the questions of a society were embedded."""
    with reading(engine) as session:
        found = select(GenerationRow).where(GenerationRow.society_id == number).order_by(GenerationRow.id)
        return [*session.scalars(found)]


def spoken_tokens(engine: Engine, number: int) -> int:
    """The tokens of the prompts of all calls in the interactions of a society."""
    with reading(engine) as session:
        mine = select(SocietyInteraction.id).where(SocietyInteraction.society_id == number)
        total = select(func.sum(GenerationRow.prompt_tokens)).where(GenerationRow.interaction_id.in_(mine))
        return session.scalar(total) or 0


def test_every_agent_drafts_is_criticised_revises_and_is_observed_once_an_iteration(
    engine: Engine, settings: Settings
) -> None:
    number = make_society(engine, "voice", "other", observers=["other"])
    run(engine, settings, number)
    row, told = row_of(engine, number), facts(engine, number)
    assert (row.status, row.error, row.iteration, row.interactions) == (states.DONE, None, 2, 8)
    assert row.calls == sum(len(each["calls"]) for each in told.values()) == 8 * CALLS
    config = SocietyConfig.model_validate(row.config)
    with reading(engine) as session:
        interactions = list(store.read_interactions(session, number))
    assert [(each.iteration, each.agent) for each in interactions] == sorted(told)
    for each in interactions:
        assert each.question == QUESTIONS.questions[(each.iteration * 4 + each.agent) % 6]
        assert [said.critic for said in each.feedback] == list(world.critics_of(config, each.iteration, each.agent))
        calls = {call: text for call, _, text in told[each.iteration, each.agent]["calls"]}
        assert (each.draft, each.revision) == (calls["draft"], calls["revision"])
        assert [said.text for said in each.feedback] == [calls[f"critique {said.critic}"] for said in each.feedback]
        assert list(each.before.alignment_texts) == [calls["alignment before 0"]]
        assert list(each.after.engagement_texts) == [calls["engagement after 0"]]
        rated = [each.before.alignment, each.after.alignment, each.before.engagement, each.after.engagement]
        assert all(rating is None or 1 <= rating <= 7 for rating in rated)


@pytest.mark.parametrize(("template", "phrase"), [(None, "Rate only its alignment"), ("full-1", "Rate it from 1")])
def test_a_society_goes_on_with_the_template_that_it_was_begun_with(
    engine: Engine, settings: Settings, template: str | None, phrase: str
) -> None:
    number = make_society(engine, "voice", "other", observers=["other"])
    if template is not None:
        with writing(engine) as session:
            SOCIETY.get(session, number).template = template
    run(engine, settings, number)
    assert row_of(engine, number).template == (template or TEMPLATE)
    with reading(engine) as session:
        mine = select(SocietyInteraction.id).where(SocietyInteraction.society_id == number)
        asked = select(GenerationRow.prompt).where(
            GenerationRow.interaction_id.in_(mine), GenerationRow.call.like("alignment%")
        )
        prompts = [prompt[-1]["content"] for prompt in session.scalars(asked)]
    assert prompts
    assert all(phrase in prompt for prompt in prompts)


def test_a_question_that_comes_again_is_recalled_with_its_first_revision(engine: Engine, settings: Settings) -> None:
    number = make_society(engine, "voice", iterations=4, first_memories=0, critics=3)
    run(engine, settings, number)
    told = facts(engine, number)
    assert all(told[0, agent]["recall"] is None for agent in range(4))
    # Six questions, four agents: agent 0 is asked the first one again in iteration 3, which it was asked in 0.
    again = told[3, 0]
    assert again["question"] == told[0, 0]["question"] == again["recall"]["question"]
    assert again["recall"]["answer"] == told[0, 0]["revision"]
    with reading(engine) as session:
        recalled = sum(each["recall"] is not None for each in told.values())
        assert listing.recalls_of(session, number) == (recalled, 16)
    assert 0 < recalled < 16


def test_a_society_that_was_stopped_anywhere_comes_to_the_same_as_one_that_was_not(
    engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_worker, "GLANCE", 0.01)
    undisturbed, stopped = (make_society(engine, "voice", "slow", iterations=3) for _ in range(2))
    run(engine, settings, undisturbed)
    total = row_of(engine, undisturbed).calls
    for share in (0.1, 0.4, 0.7):
        run(engine, settings, stopped, lambda share=share: row_of(engine, stopped).calls >= share * total)  # type: ignore[misc]
        row = row_of(engine, stopped)
        assert (row.status, row.lease_owner) == (states.RUNNING, None)  # free for whoever comes next
    run(engine, settings, stopped)
    assert facts(engine, stopped) == facts(engine, undisturbed)
    for figure in ("interactions", "ratings", "unread_ratings", "calls", "prompt_tokens", "completion_tokens"):
        assert getattr(row_of(engine, stopped), figure) == getattr(row_of(engine, undisturbed), figure), figure
    assert row_of(engine, stopped).status == states.DONE


def test_a_cancelled_society_keeps_what_it_has_and_can_be_resumed(
    engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_worker, "GLANCE", 0.01)
    number = make_society(engine, "slow", iterations=3)

    def cancel() -> bool:
        if row_of(engine, number).calls < 20 or row_of(engine, number).status != states.RUNNING:
            return False
        with writing(engine) as session:
            SOCIETY.cancel(session, number)
        return False

    run(engine, settings, number, cancel)
    row = row_of(engine, number)
    assert row.status == states.CANCELLED
    assert 20 <= row.calls < 3 * 4 * CALLS
    with writing(engine) as session:
        SOCIETY.resume(session, number, queued=False)
    run(engine, settings, number)
    assert (row_of(engine, number).status, row_of(engine, number).interactions) == (states.DONE, 12)


def test_an_observer_that_never_rates_ends_the_society_with_a_line_that_names_it(
    engine: Engine, settings: Settings
) -> None:
    number = make_society(engine, "voice", observers=["mute"], size=4, iterations=1)
    run(engine, settings, number)
    row = row_of(engine, number)
    assert row.status == states.FAILED
    # Answers that were under way when it was noticed count, too.
    said = re.escape("'I cannot rate this.'; start over with another observer")
    line = rf"observer mute: expected a rating from 1 to 7, got none in 5\d answers in a row, the last of them {said}"
    assert re.fullmatch(line, row.error)


def test_an_answer_that_a_model_refuses_fails_its_interaction_alone(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    stub.script("prim", Reply("The prompt is not allowed.", status=400), opinion)
    add_chat_models(engine, stub.url, "prim", in_flight=1)
    number = make_society(engine, "prim", observers=["voice"], iterations=1)
    run(engine, settings, number)
    row, told = row_of(engine, number), facts(engine, number)
    assert (row.status, row.interactions, row.failed) == (states.DONE, 4, 1)
    assert [each["status"] for each in told.values()].count("failed") == 1
    assert "The prompt is not allowed." in next(each["error"] for each in told.values() if each["error"])
    with reading(engine) as session:
        assert len(list(store.read_interactions(session, number))) == 3


def blank_at(step: str, question: str, times: int) -> Callable[[Messages], str]:
    """A model whose first answers at a step are blank, where it is about the question."""
    left = [times]

    def answer(messages: Messages) -> str:
        content = messages[-1]["content"]
        if left[0] and read_prompt(content).task == step and question in content:
            left[0] -= 1
            return " \n"
        return opinion(messages)

    return answer


@pytest.mark.parametrize("step", [ANSWER, REVISE, RATE_VALUES, RATE_TALK])
def test_an_empty_answer_is_asked_for_again_and_enters_nothing(
    engine: Engine, settings: Settings, stub: StubServer, step: str
) -> None:
    stub.script("hesitant", blank_at(step, "?", MOST_EMPTY - 1))
    add_chat_models(engine, stub.url, "hesitant", in_flight=1)
    number = make_society(engine, "hesitant", iterations=1)
    run(engine, settings, number)
    row, told = row_of(engine, number), facts(engine, number)
    assert (row.status, row.failed, row.failed_calls) == (states.DONE, 0, MOST_EMPTY - 1)
    assert row.calls == 4 * CALLS + MOST_EMPTY - 1
    assert all(text.strip() for each in told.values() for *_, text in each["calls"])


@pytest.mark.parametrize("step", [ANSWER, REVISE])
def test_empty_answers_alone_fail_their_interaction_and_are_rated_by_nobody(
    engine: Engine, settings: Settings, stub: StubServer, step: str
) -> None:
    stub.script("blank", blank_at(step, QUESTIONS.questions[0], 1000))
    add_chat_models(engine, stub.url, "blank", in_flight=1)
    number = make_society(engine, "blank", observers=["voice"], iterations=1)
    run(engine, settings, number)
    row, told = row_of(engine, number), facts(engine, number)
    assert (row.status, row.failed) == (states.DONE, 1)
    assert told[0, 0]["error"] == "expected an answer, got an empty one 3 times from blank"
    asked = [chat for call, chat, _ in told[0, 0]["calls"] if "before" in call or "after" in call]
    assert len(asked) == (0 if step == ANSWER else 2)  # of a draft that is there


def test_a_model_that_needs_mending_fails_the_society_which_can_then_be_resumed(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    stub.script("locked", Reply("No such key.", status=401), opinion)
    add_chat_models(engine, stub.url, "locked", in_flight=1)
    number = make_society(engine, "locked", observers=["voice"], iterations=1)
    run(engine, settings, number)
    row = row_of(engine, number)
    assert (row.status, "No such key." in (row.error or "")) == (states.FAILED, True)
    with writing(engine) as session:
        SOCIETY.resume(session, number, queued=False)
    run(engine, settings, number)
    assert row_of(engine, number).status == states.DONE


def test_whoever_lost_the_lease_writes_nothing_more(
    engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_worker, "GLANCE", 0.01)
    number = make_society(engine, "slow", iterations=3)

    def take_away() -> bool:
        row = row_of(engine, number)
        if row.calls >= 10 and row.lease_owner != "another":
            with writing(engine) as session:
                SOCIETY.get(session, number).lease_owner = "another"
        return False

    run(engine, settings, number, take_away)
    row, told = row_of(engine, number), facts(engine, number)
    assert (row.lease_owner, row.status, row.error) == ("another", states.RUNNING, None)
    assert row.calls == sum(len(each["calls"]) for each in told.values()) < 12 * CALLS


def test_a_society_whose_workers_die_at_once_is_given_up_until_somebody_resumes_it(
    engine: Engine, settings: Settings
) -> None:
    number = make_society(engine, "voice", iterations=1)
    with writing(engine) as session:
        row = SOCIETY.get(session, number)
        row.status, row.lease_owner, row.lease_count = states.RUNNING, "dead", MOST_DEATHS - 1
    run(engine, settings, number)
    row = row_of(engine, number)
    assert (row.status, row.error, row.calls) == (
        states.FAILED,
        "10 workers died while running it, and no call was answered in between; `flask society resume 1` tries again",
        0,
    )
    with writing(engine) as session:
        SOCIETY.resume(session, number, queued=False)
    run(engine, settings, number)
    assert row_of(engine, number).status == states.DONE


def test_what_the_database_did_not_take_is_written_once_it_does(
    engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, undisturbed = make_society(engine, "voice"), make_society(engine, "voice")
    run(engine, settings, undisturbed)
    write = job_writer.write_steps
    failures = iter([False, True])

    def fail_once(session: Session, table: type[Any], steps: Mapping[int, Mapping[str, Any]]) -> None:
        write(session, table, steps)
        fails = next(failures, False) if steps else False
        if fails:
            raise RuntimeError("the database fell over")

    monkeypatch.setattr(job_writer, "write_steps", fail_once)
    run(engine, settings, number)
    assert row_of(engine, number).status == states.FAILED
    assert is_internal_error(row_of(engine, number).error)
    with writing(engine) as session:
        SOCIETY.resume(session, number, queued=False)
    run(engine, settings, number)
    assert facts(engine, number) == facts(engine, undisturbed)
    for figure in ("interactions", "ratings", "calls", "prompt_tokens"):
        assert getattr(row_of(engine, number), figure) == getattr(row_of(engine, undisturbed), figure), figure


def test_an_embedder_without_answer_fails_the_society_before_any_model_is_asked(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    spec = spec_of("voice").model_copy(update={"embedder": f"api:none@{stub.url}"})
    with writing(engine) as session:
        number = create(session, spec).id
    run(engine, settings, number)
    row = row_of(engine, number)
    assert (row.status, row.interactions, row.lease_owner) == (states.FAILED, 0, None)
    assert (row.calls, row.failed_calls) == (1, 1)
    assert "The model does not exist." in (row.error or "")
    assert facts(engine, number) == {}
    assert [call.error for call in embeddings(engine, number)] == [row.error]


def test_what_is_embedded_is_written_down_with_its_tokens_and_its_price(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    add_chat_models(engine, stub.url, "paid", price_in=1, price_out=2)
    add_chat_models(engine, stub.url, "stub-embeddings", price_in=30)
    named = ("model:stub-embeddings", f"api:stub-embeddings@{stub.url}", "tfidf")
    numbers = []
    for embedder in named:
        spec = spec_of("paid", iterations=3).model_copy(update={"embedder": embedder})
        with writing(engine) as session:
            numbers.append(create(session, spec).id)
        run(engine, settings, numbers[-1])
    by_name, by_address, without = (row_of(engine, number) for number in numbers)
    assert embeddings(engine, without.id) == []
    for row in (by_name, by_address):
        assert (row.status, row.error) == (states.DONE, None)
        calls = embeddings(engine, row.id)
        texts = [each["content"] for call in calls for each in call.prompt]
        assert sorted(texts) == sorted({*texts})  # each question once: first memories, then those that are asked
        assert {*QUESTIONS.questions} <= {*texts}
        assert {call.language_model_id for call in calls} == {model_of(engine, "stub-embeddings").id}
        tokens = sum(call.prompt_tokens or 0 for call in calls)
        spoken = spoken_tokens(engine, row.id)
        assert tokens > 0
        assert row.prompt_tokens == spoken + tokens
        assert row.calls == without.calls + len(calls)
        assert row.cost == pytest.approx((spoken + 2 * row.completion_tokens + 30 * tokens) / 1e6)
        with reading(engine) as session:
            assert is_in_use(session, model_of(engine, "stub-embeddings"))
            assert listing.figures_of(session, [row])[row.id]["cost"] == row.cost
    with writing(engine) as session:
        session.get_one(LanguageModel, model_of(engine, "stub-embeddings").id).options = {
            "model": "stub-embeddings", "base_url": stub.url, "key_env": "",
        }  # fmt: skip
    with reading(engine) as session:
        kept = listing.figures_of(session, [row_of(engine, by_name.id)])[by_name.id]
        assert kept["cost"] == by_name.cost  # what was paid does not change with the prices


def test_without_recall_nothing_is_embedded(engine: Engine, settings: Settings, stub: StubServer) -> None:
    spec = spec_of("voice", recall=False).model_copy(update={"embedder": f"api:none@{stub.url}"})
    with writing(engine) as session:
        number = create(session, spec).id
    run(engine, settings, number)
    assert (row_of(engine, number).status, row_of(engine, number).interactions) == (states.DONE, 8)


def test_an_estimate_counts_what_is_embedded_as_it_will_be(
    engine: Engine, settings: Settings, stub: StubServer
) -> None:
    add_chat_models(engine, stub.url, "paid", price_in=1, price_out=2)
    add_chat_models(engine, stub.url, "stub-embeddings", price_in=30)
    spec = spec_of("paid", iterations=3)
    with reading(engine) as session:
        without, found, unknown = (
            lifecycle.estimated(session, spec.model_copy(update={"embedder": name}), QUESTIONS, PRIORS)
            for name in ("tfidf", "model:stub-embeddings", "api:another")
        )
    number = make_society(engine, "paid", iterations=3)
    with writing(engine) as session:
        SOCIETY.get(session, number).embedder = "model:stub-embeddings"
    run(engine, settings, number)
    calls = embeddings(engine, number)
    tokens = sum(len(each["content"]) for call in calls for each in call.prompt) // 4
    assert found.calls - without.calls == len(calls)
    assert found.prompt_tokens - without.prompt_tokens == pytest.approx(tokens, abs=1)
    assert without.cost is not None
    assert found.cost == pytest.approx(without.cost + 30 * tokens / 1e6, rel=1e-3)
    assert (without.embedding_cost, unknown.cost, unknown.embedding_cost) == (0, None, None)


def test_a_system_message_goes_to_the_agents_that_were_named_and_to_no_observer(
    engine: Engine, settings: Settings
) -> None:
    spec = spec_of("voice", "other", iterations=1).model_copy(update={"systems": ("voice",)})
    with writing(engine) as session:
        number = create(session, spec).id
    run(engine, settings, number)
    with reading(engine) as session:
        models = [each.model for each in store.agents_of(session, number)]
    assert set(models) == {"voice", "other"}
    for (_, agent), told in facts(engine, number).items():
        for call, prompt, _ in told["calls"]:
            kind, *of = call.split()
            speaks = {"draft": agent, "revision": agent, "critique": int(of[0]) if kind == "critique" else -1}.get(kind)
            assert ("'system'" in prompt) == (speaks is not None and models[speaks] == "voice"), call


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"agents": {}}, "agents: expected 1 to 100 models, got 0"),
        ({"observers": []}, "observers: expected 1 to 100 models, got 0"),
        ({"agents": {"voice": "none"}}, "agents: expected a number above 0 to 1e+06, got 'none'"),
        ({"agents": {"voice": 0}}, "agents: expected a number above 0 to 1e+06, got 0"),
        ({"observers": ["voice", "voice"]}, "observers: expected each model once, got 'voice'"),
        (
            {"observers": ["scripted"]},
            (
                "observers: expected a model that answers chats, got 'scripted', whose uses are games; `flask model"
                " list` shows what each model is for"
            ),
        ),
        (
            {"questions": QuestionList("q.txt", [])},
            "questions: expected 1 to 200000 questions in q.txt, got 0; write one on each line",
        ),
        (
            {"questions": QuestionList("q.txt", ["Why?", "  "])},
            "question 2 of q.txt: expected 1 to 20000 characters, got 0",
        ),
        (
            {"priors": PriorMemories("p.json", {"good": [("Why?", "So.")] * 3})},
            "priors: expected 3 or more memories labelled bad in p.json, got 0; add some, or set first_memories lower",
        ),
        ({"config": {"size": 1}}, "config.size: expected a whole number from 2 to 40, got 1"),
        ({"systems": ["other"]}, "systems: expected models of agents, got 'other'"),
        ({"name": "x" * 81}, f"name: expected at most 80 characters, got '{'x' * 58}…"),
    ],
)
def test_what_cannot_be_run_is_refused_with_one_line_and_leaves_nothing(
    engine: Engine, settings: Settings, changes: dict[str, Any], line: str
) -> None:
    assert settings
    usual = {"questions": QUESTIONS, "priors": PRIORS}
    material = {name: changes.get(name, usual[name]) for name in usual}
    asked = {name: value for name, value in changes.items() if name not in usual}
    wanted = {**spec_of("voice").model_dump(exclude_none=True), **asked}
    with pytest.raises(Invalid) as refused, writing(engine) as session:
        lifecycle.create(session, SocietySpec.read(wanted), **material, queued=False)
    assert refused.value.message == line
    with reading(engine) as session:
        assert session.scalar(select(func.count()).select_from(Society)) == 0
