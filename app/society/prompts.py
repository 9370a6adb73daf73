"""The prompts for the models of a society: drafts, critiques, revisions and ratings, each a separate chat.

The texts are in data/prompts/society/TEMPLATE.txt, in sections like those of games. A file never changes once a society
was run with it; other texts are another template. Societies and assessments name theirs, and keep it when there is a
newer one. No prompt names an agent or its label: agents differ only in what they remember, and a revision sees neither.
A prompt for a rating states its scale, its aspect and that it comes before the reason, matching the `RatingForm` with
which the answer is parsed.

Source: Liu et al. 2023, arXiv 2305.16960, whose questions these are, in words of this project.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from string import Template

from app.players.prompts import FOLDER, Message, read_sections
from app.society.interaction import Feedback, Recall
from app.society.ratings import RatingForm
from training.marks import OTHERS

TEMPLATE = "full-2"  # the newest


def chat_system(template: str = TEMPLATE) -> str:
    """A system message for agents whose model habitually warns and lectures. Observers get none."""
    return _sections(template)["system"]


def draft_messages(
    question: str, recall: Recall | None, system: str | None = None, template: str = TEMPLATE
) -> list[Message]:
    """The chat in which an agent answers a question, given a similar one that it remembers."""
    return _chat(_filled_section(template, "draft", recall, question=question), system)


def critique_messages(
    question: str, draft: str, recall: Recall | None, system: str | None = None, template: str = TEMPLATE
) -> list[Message]:
    """The chat in which an agent rates another's draft, given a similar question that it remembers."""
    return _chat(_filled_section(template, "critique", recall, question=question, draft=draft), system)


def revision_messages(
    question: str,
    draft: str,
    feedback: Sequence[Feedback],
    score_only: bool = False,
    system: str | None = None,
    template: str = TEMPLATE,
) -> list[Message]:
    """The chat in which an agent improves its draft.

    It has the mean of the ratings that could be parsed, if any, and, unless `score_only`, the reasons: those without a
    rating first, and that of the lowest rating last, where models heed it most.
    """
    parts = [_filled_section(template, "revision", question=question, draft=draft)]
    rated = [each.rating for each in feedback if each.rating is not None]
    if rated:
        parts.append(_filled_section(template, "revision ratings", mean=f"{sum(rated) / len(rated):.1f}"))
    ordered = sorted(feedback, key=lambda each: float("inf") if each.rating is None else each.rating, reverse=True)
    reasons = [each.reason for each in ordered if each.reason.strip()]
    if reasons and not score_only:
        parts.append(
            _filled_section(
                template, "revision reasons", reasons="\n".join(f"- {' '.join(reason.split())}" for reason in reasons)
            )
        )
    parts.append(_filled_section(template, "revision task"))
    return _chat("\n\n".join(parts), system)


def alignment_messages(
    question: str, answer: str, system: str | None = None, template: str = TEMPLATE
) -> list[Message]:
    """The chat in which an observer rates how well an answer fits shared values."""
    return _chat(_filled_section(template, "alignment", question=question, answer=answer), system)


def engagement_messages(
    question: str, answer: str, system: str | None = None, template: str = TEMPLATE
) -> list[Message]:
    """The chat in which an observer rates how much an answer encourages further conversation."""
    return _chat(_filled_section(template, "engagement", question=question, answer=answer), system)


def structured_rating(chat: Sequence[Message], form: RatingForm) -> list[Message]:
    """The chat for a rating, changed to ask for JSON instead of the lines that its template names."""
    *before, last = chat
    asked = (
        "Do not reply in lines, but with one JSON object that has two fields: rating, a whole number from"
        f" {form.low} to {form.high}, and reason, a text."
    )
    return [*before, {**last, "content": f"{last['content']}\n\n{asked}"}]


def _chat(content: str, system: str | None) -> list[Message]:
    opening = [{"role": "system", "content": system}] if system else []
    return [*opening, {"role": "user", "content": content}]


def _filled_section(template: str, section: str, recall: Recall | None = None, **values: str) -> str:
    if recall is not None:
        section = f"{section} with recall"
        values |= {"recalled_question": recall.question, "recalled_answer": recall.answer}
    said = {name: OTHERS.broken(value) for name, value in values.items()}
    return Template(_sections(template)[section]).substitute(said)


@lru_cache
def _sections(template: str) -> Mapping[str, str]:
    return read_sections(FOLDER / "society" / f"{template}.txt")
