"""The embedders that recognise similar questions, each loaded where it is used; the web process has none."""

import importlib
from collections.abc import Sequence

from app.core.errors import Invalid, Phrase
from app.players.api.options import ApiOptions
from app.society.embedders.api_names import api_options
from app.society.embedders.base import Embedder

TFIDF, REGISTERED = "tfidf", "model"
_FORMS = "tfidf, model:NAME, api:MODEL, api:MODEL@ADDRESS, api:MODEL@ADDRESS#KEY_VARIABLE or sentences:MODEL"
_KINDS = (REGISTERED, "api", "sentences")
LONGEST_NAME = 120  # characters
BATCH = 64  # texts in a request to a model; even the widest vectors then stay far below the longest answer


def check_embedder(name: str) -> None:
    """Raises Invalid for a name of no embedder, or for a model that may not be called. Loads and calls nothing."""
    kind, colon, rest = name.partition(":")
    known = name == TFIDF or (kind in _KINDS and colon and rest.strip() == rest != "")
    if not known or len(name) > LONGEST_NAME or not name.isprintable():
        raise Invalid("embedder", expected=Phrase("one of %(forms)s", forms=_FORMS), got=name)
    if kind == "api":
        api_options(rest)


def find_embedder(name: str, corpus: Sequence[str], registered: ApiOptions | None = None) -> Embedder:
    """The embedder with a name, for a corpus of all texts that will be embedded; no model is called yet.

    `registered` are the options of a registered model, if the name refers to one (`registered.options_of`). Raises
    Invalid as `check_embedder` does, and for a missing library.
    """
    check_embedder(name)
    kind, _, rest = name.partition(":")
    if kind == TFIDF:
        made: Embedder = importlib.import_module("app.society.embedders.tfidf").TfidfEmbedder(corpus)
    elif kind == "sentences":
        made = importlib.import_module("app.society.embedders.sentences").make(name, rest)
    else:
        options = registered or api_options(rest)
        made = importlib.import_module("app.society.embedders.api").ApiEmbedder(name, options)
    return made
