"""The choices in the fields of a form that asks for a job, in the language of the page."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from flask_babel import gettext
from markupsafe import Markup
from sqlalchemy.orm import Session

from app.campaigns.spec import METHODS
from app.core.validation import Schema, words_of
from app.datasets import store
from app.datasets.importers.training_rows import FORMATS
from app.finetuning.backends import all_backends, backend_of
from app.finetuning.config import LOCAL
from app.games import GAMES
from app.matches.filter import CONSENTS, SOURCES
from app.matches.overview import reasons
from app.models import Dataset, LanguageModel
from app.players.prompts import styles
from app.registry import PERSON, list_models
from app.registry.named import USES
from app.web.translations import game_titles
from training.methods import all_methods
from training.methods.base import COMPARISONS, CONVERSATIONS

Choices = Sequence[tuple[str, ...]]  # each a value, its name and, for registry entries, a hint


def model_choices(schema: Schema, value: Any, models: Sequence[LanguageModel]) -> Choices:
    """The models that a field may name, whether it takes one or several."""
    found = [(row.name, row.name) for row in models if "use" not in schema or USES[schema["use"]](row)]
    if not isinstance(value, str):
        return found
    lost = [(value, value or gettext("choose one"))] if value not in dict(found) else []
    return [("", _unset(schema)), *(lost if value else ()), *found] if "unset" in schema else [*lost, *found]


def base_choices(schema: Schema, value: str, models: Sequence[LanguageModel]) -> Choices:
    """The models that can be trained, each with its location unless it is here."""
    titles = {name: each.title for name, each in all_backends().items()}
    found = [("", _unset(schema))]
    for row in models:
        backend = backend_of(row)
        if backend is None or schema.get("backend", backend) != backend:
            continue
        where = "" if backend == LOCAL else gettext(titles[backend])
        found.append((row.name, gettext("%(name)s (%(where)s)", name=row.name, where=where) if where else row.name))
    return [*found, *([] if value in dict(found) else [(value, value)])]


def dataset_choices(session: Session, schema: Schema, value: str) -> tuple[Choices, Any]:
    """The datasets of the field's kind; if requested, also grouped by the methods that learn from them."""
    rows = [row for row in store.list_datasets(session) if row.kind == schema.get("kind", row.kind)]
    named = [(str(row.id), f"{row.name}, {gettext('version %(version)s', version=row.version)}") for row in rows]
    lost = [(value, value)] if value and value not in dict(named) else []
    first = ("", _unset(schema) or gettext("choose one"))
    return [first, *lost, *named], _by_method(rows, named, lost) if schema.get("by") == "method" and rows else None


def _by_method(rows: Sequence[Dataset], named: Choices, lost: Choices) -> list[tuple[str, Choices]]:
    groups: list[tuple[str, Choices]] = [(gettext("not in the list"), lost)] if lost else []
    for kind, called in ((CONVERSATIONS, gettext("Conversations")), (COMPARISONS, gettext("Comparisons"))):
        if own := [each for row, each in zip(rows, named, strict=True) if row.kind == kind]:
            methods = ", ".join(each.name for each in all_methods().values() if each.rows.kind == kind)
            groups.append((gettext("%(kind)s, for %(methods)s", kind=called, methods=methods), own))
    return groups


def word_choices(schema: Schema, words: Sequence[str]) -> Choices:
    """The words that a field may hold, with their labels."""
    return [(word, word_label(schema, word)) for word in words]


def preset_choices(schema: Schema) -> Choices:
    """The presets of a part, and the choice of none."""
    return [("", _unset(schema)), *word_choices(schema, [*schema["labels"]])]


def _unset(schema: Schema) -> str:
    """The meaning of an empty field."""
    said = schema.get("unset")
    return str(gettext(said)) if said else ""


def word_label(schema: Schema, word: str) -> str:
    """The label of a word that a field may hold."""
    label = schema.get("labels", {}).get(word)
    return gettext(label) if label else word


def _training_methods() -> tuple[Choices, Any]:
    """The methods of training, and their presets by name."""
    texts = [(each.name, each.title, each.summary) for each in all_methods().values()]
    found = [
        (name, gettext("%(title)s (%(name)s)", title=gettext(title), name=name), gettext(summary))
        for name, title, summary in texts
    ]
    return found, {each.name: each.presets for each in all_methods().values() if each.presets}


def _campaign_methods() -> tuple[Choices, Any]:
    return [each for each in _training_methods()[0] if each[0] in METHODS], None


def _backends() -> tuple[Choices, Any]:
    texts = {name: (each.title, each.summary) for name, each in all_backends().items()}
    return [(name, gettext(title), gettext(summary)) for name, (title, summary) in texts.items()], None


def _row_formats() -> tuple[Choices, Any]:
    """The row formats, each with an example and its purpose."""
    kinds = {
        COMPARISONS: gettext("Comparisons, for stable-alignment and dpo."),
        CONVERSATIONS: gettext("Conversations, for the other methods."),
    }
    example = Markup('{} <code class="breaks" lang="en">{}</code>')
    hints = {each.name: example.format(kinds.get(each.kind or "", ""), each.example) for each in FORMATS.values()}
    titles = {each.name: f"{each.title.render(gettext)} ({each.name})" for each in FORMATS.values()}
    return [(name, title, hints[name]) for name, title in titles.items()], None


_REGISTRIES: Mapping[str, Callable[[], tuple[Choices, Any]]] = {
    "methods": _training_methods,
    "campaign-methods": _campaign_methods,
    "backends": _backends,
    "row formats": _row_formats,
}


def _as_they_are(names: Iterable[str]) -> Choices:
    return [(name, gettext(name)) for name in names]


_KNOWN: Mapping[str, Callable[[Session], Choices]] = {
    "games": lambda _session: [*game_titles().items()],
    "models": lambda session: [(row.name, row.name) for row in list_models(session)],
    "players": lambda session: [(PERSON, gettext(PERSON)), *_KNOWN["models"](session)],
    "reasons": lambda session: _as_they_are(reasons(session)),
    "roles": lambda _session: _as_they_are(dict.fromkeys(role for game in GAMES.values() for role in game.roles)),
    "sources": lambda _session: _as_they_are(SOURCES),
    "consents": lambda _session: _as_they_are(CONSENTS),
    "styles": lambda _session: [(name, name) for name in styles(GAMES)],
}


def choices_of(
    session: Session, widget: str, schema: Schema, value: Any, models: Sequence[LanguageModel]
) -> tuple[Choices, Any]:
    """The choices of a field, empty if anything may be entered; and what else its fragment shows, if anything."""
    match widget:
        case "model" | "models" | "shares":
            return model_choices(schema, value, models), None
        case "base":
            return base_choices(schema, value, models), None
        case "dataset":
            return dataset_choices(session, schema, value)
        case "registry":
            return _REGISTRIES[schema["registry"]]()
        case "choice" | "radio":
            found = word_choices(schema, words_of(schema))
            return [("", unset), *found] if (unset := word_label(schema, "") or _unset(schema)) else found, None
        case "known":
            known = _KNOWN[schema["of"]](session)
            lost = [(value, value)] if value and value not in (each[0] for each in known) else []
            return [("", _unset(schema)), *known, *lost], None
        case "several":
            return _KNOWN[schema["of"]](session), None
        case "preset":
            return preset_choices(schema), None
    return (), None
