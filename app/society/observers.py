"""The rating of one answer by one observer, parsed strictly; as JSON if the observer's row requests that."""

from app.core.errors import shown
from app.model_calls.job_calls import AnswerRefused, Chat, ChatBlocked, ChatCalls, ChatModel
from app.players.base import ChatSampling
from app.society.prompts import structured_rating
from app.society.ratings import RatingForm, read_rating
from app.society.ratings.structured import rating_schema, read_structured_rating

MOST_UNREAD = 50  # an observer's consecutive ratings without a number, after which a job is given up
RATING_SAMPLING = ChatSampling(temperature=1.0, max_tokens=256)  # as published, unless a job says otherwise


async def rate(
    calls: ChatCalls, call: str, observer: ChatModel, chat: Chat, form: RatingForm
) -> tuple[float | None, str]:
    """An observer's rating in the form that the chat asks for, and its text.

    Raises ChatBlocked if none of its latest ratings could be parsed.
    """
    if observer.structured:
        text = await answer_or_nothing(calls, call, observer, structured_rating(chat, form), rating_schema(form))
        rating = read_structured_rating(text, form).rating
    else:
        text = await answer_or_nothing(calls, call, observer, chat)
        rating = read_rating(text, form).rating
    observer.unread = observer.unread + 1 if rating is None else 0
    if observer.unread >= MOST_UNREAD:
        raise ChatBlocked(
            f"observer {observer.name}: expected a rating from {form.low} to {form.high}, got none in {observer.unread}"
            f" answers in a row, the last of them {shown(text)}; start over with another observer"
        )
    return rating, text


async def answer_or_nothing(
    calls: ChatCalls, call: str, model: ChatModel, chat: Chat, schema: str | None = None
) -> str:
    """A model's answer; an empty text if it refuses. Raises ChatBlocked."""
    try:
        return await calls.ask(call, model, chat, schema)
    except AnswerRefused:
        return ""
