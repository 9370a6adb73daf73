"""Servers of models as they behave today: what each refuses, ignores and answers, by what it was sent."""

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.api_answers import completion, delta, error, stream
from tests.stub_openai import Reply, Request, Speaker, negotiator

Server = Callable[[Request], Reply]
THOUGHT = "Let me think about what they want. " * 40
_drawn = itertools.count()


def answer_to(request: Request, *, structured: bool = True) -> str:
    """A move, a sum, as an object where that is asked for, or a sentence about the sea."""
    question = request.body["messages"][-1]["content"]
    if "17 times 24" in question:
        return '{"result": 5}' if structured and "response_format" in request.body else "5"
    return f"The sea is {next(_drawn)}." if "the sea" in question else negotiator(request.body["messages"])


def counted(prompt: int, written: int, reasoned: int | None = None, cached: int | None = None) -> dict[str, Any]:
    """Usage as servers count it; `reasoned` is part of the completion."""
    found: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": written + (reasoned or 0)}
    if reasoned is not None:
        found["completion_tokens_details"] = {"reasoning_tokens": reasoned}
    if cached is not None:
        found["prompt_tokens_details"] = {"cached_tokens": cached}
    return found


def refused(name: str, param: bool = True) -> Reply:
    """OpenAI's words for a field that a model does not take."""
    said = f"Unsupported parameter: '{name}' is not supported with this model."
    return error(400, said, type="invalid_request_error", param=name if param else None)


def hidden_reasoner(request: Request) -> Reply:
    """As OpenAI's reasoning models: another limit, no sampling, hidden reasoning of 900 tokens inside the limit."""
    body = request.body
    for name in ("max_tokens", "temperature", "top_p", "logprobs", "chat_template_kwargs", "thinking"):
        if name in body:
            return refused(name)
    if body.get("reasoning_effort") == "none":
        said = "Unsupported value: 'reasoning_effort' does not support 'none' with this model."
        return error(400, said, param="reasoning_effort")
    limit = body["max_completion_tokens"]
    if limit < 1000:
        return completion({"content": ""}, "length", usage=counted(90, 0, limit, 0))
    usage = counted(90, 5, 900, 0)
    return completion({"content": answer_to(request)}, usage=usage, model="o-2026", system_fingerprint="fp-1")


def vllm(request: Request) -> Reply:
    """Reasons in a field of its own, unless the chat template is told not to; sends log-probabilities."""
    thinks = request.body.get("chat_template_kwargs", {}).get("enable_thinking", True)
    message = {"content": answer_to(request), **({"reasoning": THOUGHT} if thinks else {})}
    found = json.loads(completion(message, usage=counted(90, 20)).body or b"")
    if request.body.get("logprobs"):
        found["choices"][0]["logprobs"] = {"content": [{"token": "5", "logprob": -0.1, "top_logprobs": []}]}
    return Reply(body=json.dumps(found).encode())


def llama_cpp(request: Request) -> Reply:
    """Takes everything, and keeps to no schema; a temperature of 0 always draws the same."""
    cold = request.body.get("temperature") == 0
    text = "The sea is wide." if cold and "the sea" in str(request.body) else answer_to(request, structured=False)
    return completion({"content": text}, usage=counted(90, 5), timings={"prompt_ms": 3.0})


def ollama(request: Request) -> Reply:
    """Ignores the temperature and says nothing; reasons when it is told to, by an effort."""
    effort = request.body.get("reasoning_effort", "none")
    thought = {} if effort == "none" else {"reasoning": THOUGHT}
    return completion({"content": answer_to(request), **thought}, usage=counted(90, 5), system_fingerprint="fp_ollama")


def openrouter(request: Request) -> Reply:
    """Names the provider and the cost; some models cannot do without reasoning."""
    if request.body.get("reasoning", {}).get("enabled") is False:
        return error(400, "Reasoning is mandatory for this endpoint and cannot be disabled.", code=400)
    details = [{"type": "reasoning.text", "text": THOUGHT}]
    usage = {**counted(90, 20, 350), "cost": 0.0004}
    message = {"content": answer_to(request), "reasoning": THOUGHT, "reasoning_details": details}
    return completion(message, usage=usage, provider="Acme", model="acme/large")


def deepseek(request: Request) -> Reply:
    """Thinks by default, in reasoning_content; counts its cache in a field of its own."""
    off = request.body.get("thinking", {}).get("type") == "disabled"
    message = {"content": answer_to(request), **({} if off else {"reasoning_content": THOUGHT})}
    return completion(message, usage={**counted(90, 20), "prompt_cache_hit_tokens": 64})


def anthropic(request: Request) -> Reply:
    """The compatible endpoint of a model that deprecates temperature, and ignores seed and log-probabilities."""
    for name in ("temperature", "top_p"):
        if name in request.body:
            return error(400, f"`{name}` is deprecated for this model.", type="invalid_request_error", param=None)
    return completion({"content": answer_to(request, structured=False)}, usage=counted(90, 5))


def capped(request: Request) -> Reply:
    """Takes temperatures up to 1 alone, and draws the same at 0."""
    temperature = request.body.get("temperature", 1)
    if temperature > 1:
        return error(400, "temperature: range: 0..1", type="invalid_request_error")
    return llama_cpp(request)


def streaming(request: Request) -> Reply:
    """Sends events that nobody asked for, without usage."""
    text = answer_to(request)
    return stream(delta(content=text[:3]), delta(content=text[3:]), delta("stop"))


def transformers_serve(request: Request) -> Reply:
    """Answers 422 to a field that it does not know."""
    for name in ("logprobs", "response_format", "chat_template_kwargs"):
        if name in request.body:
            detail = [{"loc": ["body", name], "msg": "Extra inputs are not permitted"}]
            return Reply(status=422, body=json.dumps({"detail": detail}).encode())
    return completion({"content": answer_to(request)}, usage=counted(90, 5))


def three_megabytes(request: Request) -> Reply:
    """Answers at any length."""
    return completion({"content": f"[message] {'word ' * 600_000}"}, usage=counted(90, 600_000))


def changing(names: Iterator[str]) -> Server:
    """Says another name for itself, call by call."""
    return lambda request: completion({"content": answer_to(request)}, usage=counted(90, 5), model=next(names))


def picky(share: int, speaker: Speaker) -> Server:
    """Refuses one prompt in so many, and says nothing that helps."""

    def answer(request: Request) -> Reply:
        drawn = hashlib.sha256(repr(request.body["messages"]).encode()).digest()[0]
        if drawn % share == 0 and len(request.body["messages"]) > 1:
            return error(400, "Invalid input.", type="BadRequestError")
        return completion({"content": speaker(request.body["messages"])}, usage=counted(90, 5))

    return answer
