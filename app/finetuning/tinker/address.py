"""The address of Tinker's API, derived from that of its models.

Source: tinker-docs.thinkingmachines.ai, “OpenAI-Compatible API”: models are sampled under `/oai/api/v1` of the address
of the API itself.
"""

from app.models import LanguageModel
from app.players.api.options import read_options

ADDRESS = "https://tinker.thinkingmachines.dev/services/tinker-prod/oai/api/v1"  # of models at the vendor
KEY_VARIABLE = "TINKER_API_KEY"
_MODELS = "/oai/api/v1"
_API = "api"  # the kind of models that are there


def service_of(model: LanguageModel) -> str | None:
    """The address of the Tinker API that hosts a model; None for a model hosted elsewhere."""
    if model.kind != _API:
        return None
    address = read_options(model.options).base_url
    return address.removesuffix(_MODELS) if address.endswith(_MODELS) else None
