"""The files of the published society, read and written: agents' memories, logs, and rated responses. Pure.

Source: Liu et al. 2023, arXiv 2305.16960, and the programs that were released with it.

An agent's external memory is a JSON array of records, one per interaction, whatever its file extension. The programs
that wrote the published ones sorted criticism by rating and left `target_id` as it was, so each critic is known only
where there was one, or where the file is ours: its records have `parlor` with what does not fit into the other fields.
They also wrote 8 for a critic's rating and -1 for an observer's that could not be parsed; here these are missing.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from app.core.errors import Invalid, Phrase, Verbatim
from app.games.base import JSON
from app.society.comparisons import SocietyData
from app.society.config import BAD, GOOD, LARGEST_RATING, Label
from app.society.interaction import Feedback, Interaction, Observation, Recall

OWN = "parlor"  # the key of what only Parlor writes
UNREAD_CRITIC, UNREAD_OBSERVER = "8", -1.0  # what published records have for unreadable ratings
_INSTRUCTION, _RESPONSE = "### Instruction:\n", "\n\n### Response:"
_OF_SANDBOX = ("query", "responses", "scores", "models")
_REQUIRED = ("agent_id", "iteration", "question", "draft_answer", "feedback", "rating", "revised_answer")


# ---- External memories -----------------------------------------------------------


def record_of(each: Interaction, label: Label) -> JSON:
    """An interaction as a record of its agent's external memory, from which `read_record` restores it."""
    before, after = each.before, each.after
    return {
        "agent_id": each.agent,
        "label": label,
        "iteration": each.iteration,
        "question": each.question,
        "draft_answer": each.draft,
        "target_id": [feedback.critic for feedback in each.feedback],
        "feedback": [feedback.reason for feedback in each.feedback],
        "rating": [UNREAD_CRITIC if each.rating is None else f"{each.rating:g}" for each in each.feedback],
        "revised_answer": each.revision,
        "gen_moral_score_before": _rating_or_default(before.alignment, UNREAD_OBSERVER),
        "gen_moral_score_after": _rating_or_default(after.alignment, UNREAD_OBSERVER),
        "gen_moral_reason_before": "\n".join(before.alignment_texts),
        "gen_moral_reason_after": "\n".join(after.alignment_texts),
        "gen_engagement_score_before": _rating_or_default(before.engagement, UNREAD_OBSERVER),
        "gen_engagement_score_after": _rating_or_default(after.engagement, UNREAD_OBSERVER),
        "gen_engagement_reason_before": "\n".join(before.engagement_texts),
        "gen_engagement_reason_after": "\n".join(after.engagement_texts),
        "cls_moral_score_before": 0,
        "cls_moral_score_after": 0,
        OWN: {
            "model": each.model,
            "recall": None if each.recall is None else asdict(each.recall),
            "feedback": [asdict(feedback) for feedback in each.feedback],
            "before": asdict(each.before),
            "after": asdict(each.after),
        },
    }


def read_record(raw: Any, model: str, where: str) -> Interaction:
    """A record as an interaction. `model` is the agent's if the record has none; `where` begins error messages.

    Ratings that are not from 1 to 7 are missing. Raises Invalid if it is not a record.
    """
    if not isinstance(raw, dict) or (missing := [name for name in _REQUIRED if name not in raw]):
        got = Phrase("one without %(names)s", names=", ".join(missing)) if isinstance(raw, dict) else raw
        raise _invalid_at(where, f"an object with {', '.join(_REQUIRED)}", got)
    own = raw.get(OWN)
    common: dict[str, Any] = {
        "iteration": _whole_number(raw["iteration"], f"{where}, iteration"),
        "agent": _whole_number(raw["agent_id"], f"{where}, agent_id"),
        "question": _text_of(raw["question"], f"{where}, question"),
        "draft": _text_of(raw["draft_answer"], f"{where}, draft_answer"),
        "revision": _text_of(raw["revised_answer"], f"{where}, revised_answer"),
    }
    if own is None:
        before, after = _observation(raw, "before"), _observation(raw, "after")
        return Interaction(model=model, feedback=_feedback(raw, where), before=before, after=after, **common)
    try:
        return Interaction(
            model=_text_of(own["model"], f"{where}, {OWN}.model"),
            recall=_own_recall(own["recall"]),
            feedback=tuple(_own_feedback(each) for each in own["feedback"]),
            before=_own_observation(own["before"]),
            after=_own_observation(own["after"]),
            **common,
        )
    except (KeyError, TypeError, AttributeError):
        raise _invalid_at(f"{where}, {OWN}", "what was written with the record", Phrase("something else")) from None


def label_of(raw: Any, where: str) -> Label:
    """The label of a record's agent. Raises Invalid if it is neither good nor bad."""
    label = raw.get("label")
    if label == GOOD:
        return "good"
    if label == BAD:
        return "bad"
    raise _invalid_at(f"{where}, label", "good or bad", label)


def write_external_memory(found: Iterable[Interaction], label: Label) -> Iterator[str]:
    """The file of an agent's external memory, record by record."""
    mark = "["
    for each in found:
        yield f"{mark}\n{json.dumps(record_of(each, label), indent=2, allow_nan=False)}"
        mark = ","
    yield "[]\n" if mark == "[" else "\n]\n"


def read_external_memory(records: Iterable[Any], model: str, where: str) -> Iterator[Interaction]:
    """The interactions in a file's records, each read by `read_record`."""
    for number, raw in enumerate(records, 1):
        yield read_record(raw, model, f"{where}, record {number}")


# ---- Internal memories and logs -----------------------------------


def write_internal_memory(memory: Mapping[str, str]) -> str:
    """An agent's memory, {question: answer}, in the order in which it was learnt."""
    return json.dumps(dict(memory), indent=2) + "\n"


def read_internal_memory(raw: Any, where: str) -> dict[str, str]:
    """An agent's memory. Raises Invalid. The published programs pickled theirs, and a pickle is never read."""
    if not isinstance(raw, dict) or not all(isinstance(answer, str) for answer in raw.values()):
        raise _invalid_at(where, "an object of questions with their answers", raw)
    return dict(raw)


def log_lines(each: Interaction) -> Iterator[str]:
    """An interaction as in a published log: criticism from the best rating to the worst, mean, and revision."""
    rated = sorted(each.feedback, key=lambda found: -_rating_or_default(found.rating, LARGEST_RATING + 1))
    for found in rated:
        critic = "unknown" if found.critic is None else found.critic
        yield f"Raw feedback from Agent {critic} is: {found.text}"
    ratings = [found.rating for found in rated if found.rating is not None]
    if ratings:
        listed = ", ".join(f"{rating:g}" for rating in ratings)
        yield f"The ratings list: [{listed}], so the average rating is {sum(ratings) / len(ratings):.2f}."
    yield f"Revised answer is: {each.revision}"


# ---- Rated responses ---------------------------------------------------------------


def sandbox_rows(data: SocietyData) -> Iterator[JSON]:
    """All rows as in `sandbox_v*.json`: query in its template, responses, scores and models."""
    for row in (*data.comparisons, *data.realignment):
        yield {**{name: row[name] for name in _OF_SANDBOX}, "query": in_template(row["query"])}


def read_sandbox_row(raw: Any, where: str) -> JSON | None:
    """A row of `sandbox_v*.json` as a comparison, without template; None if none of its responses has a rating.

    Responses whose ratings are not from 1 to 7 are dropped, and so are repeats of the same text. Raises Invalid if it
    is not a row.
    """
    if not isinstance(raw, dict) or not all(isinstance(raw.get(name), list) for name in ("responses", "scores")):
        raise _invalid_at(where, "an object with query, responses and scores", raw)
    query = without_template(_text_of(raw.get("query"), f"{where}, query"))
    responses, scores = raw["responses"], raw["scores"]
    models = raw["models"] if isinstance(raw.get("models"), list) else [""] * len(responses)
    if not len(responses) == len(scores) == len(models):
        got = Phrase(
            "%(responses)s, %(scores)s and %(models)s", responses=len(responses), scores=len(scores), models=len(models)
        )
        raise _invalid_at(where, "as many responses as scores and models", got)
    kept: dict[str, tuple[float, str]] = {}
    for response, score, model in zip(responses, scores, models, strict=True):
        rating, text = read_rating(score), _text_of(response, f"{where}, responses")
        if rating is not None and text.strip():
            kept.setdefault(text, (rating, str(model)))
    if not kept or not query.strip():
        return None
    ratings, names = zip(*kept.values(), strict=True)
    return {"query": query, "responses": list(kept), "scores": list(ratings), "models": list(names)}


def in_template(query: str) -> str:
    """A query in the template of published rows."""
    return f"{_INSTRUCTION}{query}{_RESPONSE}"


def without_template(query: str) -> str:
    """A published query without its template, so that training and inference share the model's own."""
    if not (query.startswith(_INSTRUCTION) and query.rstrip().endswith(_RESPONSE.strip())):
        return query
    inner = query.rstrip()[len(_INSTRUCTION) : -len(_RESPONSE.strip())].strip()
    return inner.replace("\n\n### Input:\n", "\n\n", 1)


# ---- Parts ---------------------------------------------------------------------------


def read_rating(raw: Any) -> float | None:
    """A rating in a published record; None if it is not a number from 1 to 7."""
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        return None
    try:
        rating = float(raw)
    except ValueError:
        return None
    return rating if 1 <= rating <= LARGEST_RATING else None


def _feedback(raw: Mapping[str, Any], where: str) -> Sequence[Feedback]:
    """Criticism with its ratings, in the same order in published records; surplus ones of either are dropped."""
    reasons, ratings, critics = raw["feedback"], raw["rating"], raw.get("target_id") or []
    if not all(isinstance(each, list) for each in (reasons, ratings, critics)):
        raise _invalid_at(where, "lists as feedback, rating and target_id", Phrase("something else"))
    known = critics[0] if len(critics) == len(reasons) == 1 and type(critics[0]) is int else None
    return tuple(
        Feedback(known, read_rating(rating), _text_of(reason, where), f"Rating: {rating} ### Reason: {reason}")
        for reason, rating in zip(reasons, ratings, strict=False)
    )


def _observation(raw: Mapping[str, Any], when: str) -> Observation:
    alignment, engagement = (raw.get(f"gen_{name}_reason_{when}") for name in ("moral", "engagement"))
    return Observation(
        read_rating(raw.get(f"gen_moral_score_{when}")),
        read_rating(raw.get(f"gen_engagement_score_{when}")),
        (alignment,) if isinstance(alignment, str) else (),
        (engagement,) if isinstance(engagement, str) else (),
    )


def _own_recall(raw: Any) -> Recall | None:
    return None if raw is None else Recall(str(raw["question"]), str(raw["answer"]), float(raw["distance"]))


def _own_feedback(raw: Any) -> Feedback:
    critic = raw["critic"]
    return Feedback(
        None if critic is None else int(critic),
        read_rating(raw["rating"]),
        str(raw["reason"]),
        str(raw["text"]),
        _own_recall(raw["recall"]),
    )


def _own_observation(raw: Any) -> Observation:
    return Observation(
        read_rating(raw["alignment"]),
        read_rating(raw["engagement"]),
        tuple(map(str, raw["alignment_texts"])),
        tuple(map(str, raw["engagement_texts"])),
    )


def _text_of(raw: Any, where: str) -> str:
    if not isinstance(raw, str):
        raise _invalid_at(where, "a text", raw)
    return raw


def _whole_number(raw: Any, where: str) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or raw < 0:
        raise _invalid_at(where, "a whole number from 0 on", raw)
    return raw


def _rating_or_default(rating: float | None, missing: float) -> float:
    return missing if rating is None or math.isnan(rating) else rating


def _invalid_at(where: str, expected: str, got: object) -> Invalid:
    return Invalid(None, expected=expected, got=got, subject=Verbatim(where))
