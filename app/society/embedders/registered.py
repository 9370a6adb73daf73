"""Which registered model an embedder is, if any: its row says where the model is, and what its tokens cost."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.config import load_settings
from app.core.errors import Invalid, Phrase
from app.jobs.call_costs import FREE, Prices
from app.models import LanguageModel
from app.players.api.addresses import check_host, check_key_variable
from app.players.api.options import ApiOptions, read_options
from app.registry import CHAT_USE, check_not_archived
from app.society.embedders import REGISTERED
from app.society.embedders.api_names import named_options

API = "api"


def options_of(session: Session, name: str) -> ApiOptions | None:
    """The options of the registered model that an embedder names; None for an embedder that names none.

    Raises Conflict for an archived model, and Invalid for one that is unknown or not behind an API.
    """
    kind, _, rest = name.partition(":")
    if kind != REGISTERED:
        return None
    row = model_of(session, name)
    if row is None or row.kind != API or CHAT_USE not in row.uses:
        raise Invalid(
            "embedder",
            expected=Phrase("a model behind an API whose uses include chat"),
            got=rest,
            remedy=Phrase("`flask model list` shows what each model is for"),
        )
    check_not_archived(row)
    options, settings = read_options(row.options), load_settings()
    check_host(options.base_url, settings.api_hosts)
    check_key_variable(options.key_env, settings.key_variables)
    return options


def model_of(session: Session, name: str) -> LanguageModel | None:
    """The registered model that an embedder is: the one it names, or the first with its model name and address."""
    kind, _, rest = name.partition(":")
    if kind == REGISTERED:
        return session.scalar(select(LanguageModel).where(LanguageModel.name == rest))
    if kind != API:
        return None
    try:
        wanted = named_options(rest)
    except Invalid:  # an imported society may have any embedder
        return None
    rows = session.scalars(select(LanguageModel).where(LanguageModel.kind == API).order_by(LanguageModel.id))
    return next((row for row in rows if _is_called_so(row, wanted)), None)


def is_called(name: str) -> bool:
    """Whether an embedder is a model behind an API, so that each of its calls is a request."""
    return name.partition(":")[0] in (REGISTERED, API)


def prices_of(session: Session, name: str) -> Prices | None:
    """The token prices of an embedder. One that runs here is free; None: unknown. It has no completion tokens."""
    if not is_called(name):
        return FREE
    row = model_of(session, name)
    price = None if row is None else row.options.get("price_in")
    return None if price is None else Prices(float(price), 0.0)


def _is_called_so(row: LanguageModel, wanted: ApiOptions) -> bool:
    options = read_options(row.options)
    return (options.model, options.base_url) == (wanted.model, wanted.base_url)
