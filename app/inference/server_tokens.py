"""The tokens that vLLM reports for an answer, in the same form as a local model's. Imports no torch."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from training.rendering import ids_hash

# Request fields that make vLLM report them. Its log-probabilities are those of the model itself, before sampling.
REQUEST_FIELDS: Mapping[str, Any] = {"logprobs": True, "return_token_ids": True}
_LARGEST = 2**31


class ServerTokens(NamedTuple):
    """An answer's tokens, their log-probabilities, and the hash of the prompt's tokens, as in `Completion`."""

    ids: list[int]
    log_probs: list[float]
    prompt_sha256: str


def read_tokens(body: Mapping[str, Any]) -> ServerTokens | None:
    """The tokens of a chat completion's first choice; None if they are incomplete or invalid.

    Source: vLLM, docs/serving/openai_compatible_server.md, `return_token_ids`.
    """
    try:
        choice = body["choices"][0]
        ids, prompt = choice["token_ids"], body["prompt_token_ids"]
        log_probs = [each["logprob"] for each in choice["logprobs"]["content"]]
    except (KeyError, IndexError, TypeError):
        return None
    sound = _are_ids(ids) and _are_ids(prompt) and len(log_probs) == len(ids)
    if not sound or not all(isinstance(each, int | float) and each <= 0 for each in log_probs):
        return None
    return ServerTokens(ids, [float(each) for each in log_probs], ids_hash(prompt))


def _are_ids(raw: object) -> bool:
    if not isinstance(raw, Sequence) or isinstance(raw, str) or not raw:
        return False
    return all(type(each) is int and 0 <= each < _LARGEST for each in raw)
