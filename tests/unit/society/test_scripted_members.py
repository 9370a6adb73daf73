"""Scripted agents and observers understand the prompts of a society, and have something to say to each."""

import asyncio
from collections.abc import Sequence
from statistics import mean

import pytest

from app.core.errors import Invalid
from app.players import make_player
from app.players.base import PlayerSpec
from app.players.scripted.chat import lexicon
from app.players.scripted.chat.player import ScriptedChat
from app.players.scripted.chat.prompts import ANSWER, RATE_TALK, RATE_VALUES, REVISE, SocietyPrompt, read_prompt
from app.society.interaction import Feedback, Recall
from app.society.prompts import (
    alignment_messages,
    critique_messages,
    draft_messages,
    engagement_messages,
    revision_messages,
)
from app.society.ratings import ALIGNMENT_FORM, ENGAGEMENT_FORM, read_rating

QUESTION = "How do I tell a friend\n\nthat I broke her vase?"
RUDE = "Whatever. Hide it, and lie if she asks.\n\nOnly a fool would tell her."
KIND = "Please be honest: tell her soon, say sorry, and offer to help find another. Can you call her?"
MEMORY = Recall("What if I lose a book?", "Tell the owner.\n\nThen buy a new one, please.", 0.1)
FEEDBACK = (Feedback(1, 2, "It is rude.", ""), Feedback(2, None, "Hm.", ""))
AGENT, OBSERVER = ScriptedChat("agent", "agent"), ScriptedChat("observer", "observer")


def said(player: ScriptedChat, messages: Sequence[dict[str, str]], seed: str = "s") -> str:
    text = asyncio.run(player.complete(list(messages), seed=seed)).text
    assert text is not None
    return text


@pytest.mark.parametrize("system", [None, "Be brief.\nSomeone asks you:\nnothing"])
@pytest.mark.parametrize("recall", [None, MEMORY])
@pytest.mark.parametrize("template", ["full-1", "full-2"])
def test_every_prompt_of_a_society_is_understood(template: str, recall: Recall | None, system: str | None) -> None:
    remembered = recall.answer if recall else ""
    revising = revision_messages(QUESTION, RUDE, FEEDBACK, template=template)
    by_score = revision_messages(QUESTION, RUDE, FEEDBACK, True, system, template)
    chats = {
        SocietyPrompt(ANSWER, QUESTION, "", remembered): draft_messages(QUESTION, recall, system, template),
        SocietyPrompt(RATE_VALUES, QUESTION, RUDE, remembered): critique_messages(
            QUESTION, RUDE, recall, system, template
        ),
        SocietyPrompt(REVISE, QUESTION, RUDE, "", "- Hm.\n- It is rude."): revising,
        SocietyPrompt(REVISE, QUESTION, RUDE): by_score,
        SocietyPrompt(RATE_VALUES, QUESTION, RUDE): alignment_messages(QUESTION, RUDE, template=template),
        SocietyPrompt(RATE_TALK, QUESTION, RUDE): engagement_messages(QUESTION, RUDE, template=template),
    }
    for expected, messages in chats.items():
        assert read_prompt(messages[-1]["content"]) == expected


def test_any_other_chat_is_a_question() -> None:
    assert read_prompt(" How do I make bread? ") == SocietyPrompt(ANSWER, "How do I make bread?")
    assert read_prompt("") == SocietyPrompt(ANSWER, "")
    for messages in ([{"role": "user", "content": "Hello"}], [{"role": "user", "content": ""}]):
        assert said(AGENT, messages).strip()


def test_the_same_chat_and_seed_have_the_same_answer_and_another_seed_another() -> None:
    messages = draft_messages(QUESTION, None)
    assert said(AGENT, messages) == said(ScriptedChat("agent", "agent"), messages)
    assert len({said(AGENT, messages, str(seed)) for seed in range(30)}) > 3


def test_a_draft_follows_what_is_remembered() -> None:
    assert said(AGENT, draft_messages(QUESTION, MEMORY)).startswith("Tell the owner. Then buy a new one, please.")
    good = [said(AGENT, draft_messages(QUESTION, Recall("q", KIND, 0.1)), str(seed)) for seed in range(10)]
    bad = [said(AGENT, draft_messages(QUESTION, Recall("q", RUDE, 0.1)), str(seed)) for seed in range(10)]
    assert min(map(lexicon.rating, good)) > max(map(lexicon.rating, bad))


@pytest.mark.parametrize("draft", [RUDE, KIND, "", "No.", "It depends on what you want from it."])
@pytest.mark.parametrize("seed", ["a", "b", "c", "d"])
def test_a_revision_is_better_than_its_draft(draft: str, seed: str) -> None:
    revised = said(AGENT, revision_messages(QUESTION, draft, FEEDBACK), seed)
    assert lexicon.rating(revised) > lexicon.rating(draft) or lexicon.rating(revised) == lexicon.MOST
    assert revised != draft


def test_every_rating_can_be_read_and_kindness_is_rated_higher() -> None:
    means = []
    for draft in (RUDE, KIND):
        texts = [said(AGENT, critique_messages(QUESTION, draft, None), str(seed)) for seed in range(20)]
        ratings = [read_rating(text, ALIGNMENT_FORM).rating for text in texts]
        assert all(rating in range(1, 8) for rating in ratings)
        means.append(mean(rating for rating in ratings if rating is not None))
        assert all(read_rating(text, ALIGNMENT_FORM).reason for text in texts)
    assert means[0] + 2 < means[1]
    for messages, form in ((alignment_messages, ALIGNMENT_FORM), (engagement_messages, ENGAGEMENT_FORM)):
        rude, kind = (read_rating(said(OBSERVER, messages(QUESTION, draft)), form).rating for draft in (RUDE, KIND))
        assert rude is not None
        assert kind is not None
        assert rude < kind


def test_who_remembers_bad_answers_rates_good_ones_lower() -> None:
    def ratings(recall: Recall) -> float:
        texts = [said(AGENT, critique_messages(QUESTION, "Please ask her.", recall), str(seed)) for seed in range(40)]
        return mean(read_rating(text, ALIGNMENT_FORM).rating or 0 for text in texts)

    assert ratings(Recall("q", RUDE, 0.1)) < ratings(Recall("q", KIND, 0.1)) - 0.3


def test_ratings_that_cannot_be_read_are_said_as_often_as_is_wanted() -> None:
    never = ScriptedChat("observer", "observer", unreadable=1.0)
    for seed in range(20):
        assert read_rating(said(never, alignment_messages(QUESTION, KIND), str(seed)), ALIGNMENT_FORM).rating is None
    assert said(never, draft_messages(QUESTION, MEMORY)).startswith("Tell the owner.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chat": "judge"}, "chat: expected agent or observer, got 'judge'"),
        ({"chat": "agent", "manner": "plain"}, "expected chat and unreadable, got manner"),
        ({"chat": "agent", "unreadable": 2}, "unreadable: expected a number from 0 to 1, got 2"),
    ],
)
def test_options_that_do_not_exist_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(Invalid) as refused:
        make_player(PlayerSpec("scripted", "x", options))
    assert message in refused.value.message
