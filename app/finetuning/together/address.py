"""Which models are at Together, by the address of their API."""

from app.models import LanguageModel
from app.players.api.addresses import host_of, is_within
from app.players.api.options import read_options

HOSTS = ("api.together.xyz", "api.together.ai")
_API = "api"  # the kind of models that are there


def is_there(model: LanguageModel) -> bool:
    """Whether a model is at Together."""
    if model.kind != _API:
        return False
    host = host_of(read_options(model.options).base_url)
    return any(is_within(host, each) for each in HOSTS)
