"""Look up the models that the fields of a job's spec name in the registry."""

from collections.abc import Callable, Collection, Mapping, Sequence

from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase, refusals_of, shown
from app.jobs.spec import SpecPart, fields_of
from app.models import LanguageModel
from app.players import make_player
from app.players.base import PlayerSpec
from app.registry import CHAT_USE, check_not_archived, get_model, player_spec

CHAT, SCORED, TRAINED = "chat", "scored", "trained"
WEIGHTS = "weights"  # models whose checkpoint is here
LEARNER, PLAYER = "learner", "player"  # roles of models that play the form's game
# By what a field may want of a model: whether a form offers a model for it.
USES: Mapping[str, Callable[[LanguageModel], bool]] = {
    CHAT: lambda row: CHAT_USE in row.uses,
    SCORED: lambda row: row.kind != "scripted",
    TRAINED: lambda row: row.kind == "local" and CHAT_USE in row.uses,
    LEARNER: lambda row: row.kind == "local",
    WEIGHTS: lambda row: row.kind == "local",
    PLAYER: lambda _row: True,
}


def named_models(
    session: Session, spec: SpecPart, *, fields: Collection[str] | None = None, goes_on: bool = False
) -> dict[str, list[LanguageModel]]:
    """The models that each field of a spec names, in order; `fields` restricts them to these fields.

    With `goes_on`, for parts of something already begun, archived models are accepted. Raises NotFound for an unknown
    model, Conflict for an archived one, and Invalid for one that answers no chats where it has to; all name the field.
    """
    found = {}
    for field, schema in fields_of(type(spec)).items():
        if "use" in schema and (fields is None or field in fields) and (named := getattr(spec, field)):
            names: Sequence[str] = [named] if isinstance(named, str) else [*named]
            found[field] = [_find_named_model(session, field, name, schema["use"], goes_on) for name in names]
    return found


def _find_named_model(session: Session, field: str, name: str, use: str, goes_on: bool) -> LanguageModel:
    with refusals_of(field):
        row = get_model(session, name)
        if not goes_on:
            check_not_archived(row)
    if use == CHAT and not (CHAT_USE in row.uses and answers_chats(player_spec(row))):
        raise Invalid(
            field,
            expected=Phrase("a model that answers chats"),
            got=Phrase("%(name)s, whose uses are %(uses)s", name=shown(name), uses=", ".join(row.uses) or "none"),
            remedy=Phrase("`flask model list` shows what each model is for"),
        )
    return row


def answers_chats(spec: PlayerSpec) -> bool:
    """Whether a player answers chats. Scripted players of games do not; all others call a model."""
    return spec.kind != "scripted" or hasattr(make_player(spec), "complete")
