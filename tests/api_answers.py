"""Answers as chat servers send them, by server and kind, each with what Parlor is to make of it."""

import json
from dataclasses import dataclass
from typing import Any

from tests.stub_openai import Reply

MOVE = "[message] The hats are yours."
THOUGHT = "They like hats. I keep that to myself."


@dataclass(frozen=True)
class Sample:
    """One answer. `retried` is whether it is asked for again; `said` are words of the failure."""

    name: str
    reply: Reply
    outcome: str = "move"
    text: str | None = MOVE
    reasoning: str | None = None
    fault: str | None = None
    retried: bool = False
    said: str = ""

    @property
    def server(self) -> str:
        """Who answers so; `any` for what many do."""
        return self.name.rpartition(": ")[0] or "any"

    @property
    def kind(self) -> str:
        """What is odd about it."""
        return self.name.rpartition(": ")[2]


def completion(message: dict[str, Any], finish_reason: str | None = "stop", **fields: Any) -> Reply:
    """A 200 with one choice."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    body = {"id": "c-1", "object": "chat.completion", "model": "m", "choices": [choice], **fields}
    return Reply(body=json.dumps(body).encode())


def error(status: int, message: str, **fields: Any) -> Reply:
    """An error in OpenAI's form."""
    return Reply(status=status, body=json.dumps({"error": {"message": message, **fields}}).encode())


def stream(*events: dict[str, Any], ended: bool = True, comment: str = "") -> Reply:
    """An event stream that nobody asked for."""
    lines = [*([comment] if comment else []), *(f"data: {json.dumps(event)}" for event in events)]
    return Reply(body="\n\n".join([*lines, *(["data: [DONE]"] if ended else [])]).encode())


def delta(finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    """An event of a stream."""
    return {"object": "chat.completion.chunk", "choices": [{"delta": fields, "finish_reason": finish_reason}]}


def usage(completion_tokens: int, reasoning_tokens: int) -> dict[str, Any]:
    """Tokens, of which so many are reasoning."""
    details = {"reasoning_tokens": reasoning_tokens}
    return {"prompt_tokens": 90, "completion_tokens": completion_tokens, "completion_tokens_details": details}


def _thought(name: str, reply: Reply, text: str = MOVE, reasoning: str | None = THOUGHT) -> Sample:
    return Sample(name, reply, text=text, reasoning=reasoning)


def _no_room(name: str, reply: Reply, reasoning: str | None = THOUGHT, said: str = "raise the limit") -> Sample:
    return Sample(name, reply, "no_room", None, reasoning, "settings", said=said)


def _failed(name: str, outcome: str, fault: str, reply: Reply, *, retried: bool = False, said: str = "") -> Sample:
    return Sample(name, reply, outcome, None, None, fault, retried, said)


_PARTS = [{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}, {"type": "text", "text": MOVE}]
_DETAILS = [
    {"type": "reasoning.text", "text": THOUGHT},
    {"type": "reasoning.encrypted", "data": "AAAA"},
]
_ANALYSIS, _FINAL = "<|channel|>analysis<|message|>", "<|channel|>final<|message|>"
_CHANNELS = f"{_ANALYSIS}{THOUGHT}<|end|><|start|>assistant{_FINAL}{MOVE}"
_TOOL = [{"id": "t", "type": "function", "function": {"name": "propose", "arguments": "{}"}}]
_UNSUPPORTED = "Unsupported parameter: '%s' is not supported with this model."

SAMPLES = (
    Sample("OpenAI: a plain answer", completion({"content": MOVE, "refusal": None})),
    Sample("OpenAI: hidden reasoning and a move", completion({"content": MOVE}, usage=usage(450, 400))),
    _no_room("OpenAI: hidden reasoning", completion({"content": ""}, "length", usage=usage(200, 200)), None),
    _no_room("OpenAI: hidden reasoning and a stop", completion({"content": None}, usage=usage(64, 64)), None),
    _failed("OpenAI: refusal", "declined", "model", completion({"content": None, "refusal": "I will not."}),
            said="the model declined: I will not."),
    _failed("OpenAI: filtered", "filtered", "vendor", completion({"content": "The h"}, "content_filter")),
    _failed("OpenAI: a tool call", "declined", "model", completion({"tool_calls": _TOOL}, "tool_calls"),
            said="propose"),
    _failed("OpenAI: an old function call", "declined", "model",
            completion({"content": None, "function_call": {"name": "deal"}}, "function_call"), said="deal"),
    _failed("OpenAI: unknown parameter of extra", "misconfigured", "settings",
            error(400, "Unrecognized request argument supplied: top_k", param=None)),
    _failed("OpenAI: limit out of range", "misconfigured", "settings",
            error(400, "max_tokens is too large: 99999. At most 4096 are supported.", param="max_tokens"),
            said="option max_tokens"),
    _failed("OpenAI: no quota", "denied", "settings", error(429, "Check your plan.", code="insufficient_quota")),
    _failed("OpenAI: prompt refused", "filtered", "vendor", error(400, "Invalid prompt.", code="invalid_prompt")),
    _failed("OpenAI: too long", "too_long", "settings", error(400, "Too much.", code="context_length_exceeded")),
    _failed("Azure: prompt filtered", "filtered", "vendor", error(400, "Filtered.", code="content_filter")),
    _failed("Azure: filter named inside", "filtered", "vendor",
            error(400, "No.", code=None, innererror={"code": "ResponsibleAIPolicyViolation"})),
    _failed("Azure: deployment missing", "denied", "settings", error(404, "No such deployment.")),
    _thought("vLLM: reasoning", completion({"content": MOVE, "reasoning": THOUGHT})),
    _thought("vLLM: reasoning_content", completion({"content": MOVE, "reasoning_content": THOUGHT})),
    _thought("vLLM: both names of one text",
             completion({"content": MOVE, "reasoning": THOUGHT, "reasoning_content": THOUGHT})),
    _thought("vLLM: think block", completion({"content": f"<think>\n{THOUGHT}\n</think>\n\n{MOVE}"})),
    _thought("vLLM: lone closing mark", completion({"content": f"{THOUGHT}\n</think>\n\n{MOVE}"})),
    _no_room("vLLM: open block cut off", completion({"content": f"<think>\n{THOUGHT}"}, "length")),
    _no_room("vLLM: gpt-oss, null with stop", completion({"content": None, "reasoning": THOUGHT})),
    _failed("vLLM: too long, code a number", "too_long", "settings",
            error(400, "This model's maximum context length is 4096 tokens.", code=400, type="BadRequestError")),
    _thought("SGLang: a field", completion({"content": MOVE, "reasoning_content": THOUGHT, "tool_calls": None})),
    _no_room("SGLang: limit eaten", completion({"content": None, "reasoning_content": THOUGHT}, "length")),
    _thought("Ollama: reasoning", completion({"content": MOVE, "reasoning": THOUGHT}, system_fingerprint="fp_ollama")),
    _failed("Ollama: loading", "busy", "vendor", error(503, "loading model"), retried=True),
    _thought("LM Studio: lone closing mark twice", completion({"content": f"A</think>\n{THOUGHT}</think>{MOVE}"}),
             reasoning=f"A\n{THOUGHT}"),
    _thought("llama.cpp: reasoning_content", completion({"content": MOVE, "reasoning_content": THOUGHT}, timings={})),
    _thought("llama.cpp: channels", completion({"content": _CHANNELS})),
    _thought("llama.cpp: channels to the last mark", completion({"content": f"{_CHANNELS}<|return|>"})),
    _thought("llama.cpp: channels, the first head in the prompt",
             completion({"content": _CHANNELS.removeprefix(_ANALYSIS)})),
    _thought("llama.cpp: channels without analysis", completion({"content": f"{_FINAL}{MOVE}"}), reasoning=None),
    _no_room("llama.cpp: channels cut off", completion({"content": f"{_ANALYSIS}{THOUGHT}"}, "length")),
    _no_room("llama.cpp: channels cut off in a head",
             completion({"content": _CHANNELS.partition("final")[0]}, "length")),
    _failed("llama.cpp: too long", "too_long", "settings",
            error(400, "Too large.", type="exceed_context_size_error", code=400, n_prompt_tokens=9, n_ctx=8),
            said="n_prompt_tokens 9, n_ctx 8"),
    _failed("`transformers serve`: unknown field", "misconfigured", "settings",
            Reply(status=422, body=b'{"detail": [{"loc": ["body", "top_k"], "msg": "Extra inputs"}]}')),
    _thought("`transformers serve`: channels without marks",
             completion({"content": f"analysis{THOUGHT}assistantfinal{MOVE}"})),
    _thought("vLLM: channels, and comments",
             completion({"content": _CHANNELS.replace("<|start|>assistant", "<|start|>assistant<|channel|>commentary"
                                                      "<|message|>I deal.<|end|><|start|>assistant")}),
             reasoning=f"{THOUGHT}\nI deal."),
    _thought("vLLM: channels with a schema", completion({"content": _CHANNELS.replace(
        "final<|message|>", "final <|constrain|>json<|message|>")})),
    _thought("`transformers serve`: thinking marks", completion({"content": f"<thinking>{THOUGHT}</thinking>{MOVE}"})),
    _thought("OpenRouter: details alone", completion({"content": MOVE, "reasoning_details": _DETAILS})),
    _failed("OpenRouter: no credits in a 200", "denied", "settings",
            Reply(body=b'{"error": {"code": 402, "message": "Insufficient credits."}, "user_id": "u"}')),
    _failed("OpenRouter: no provider in a 200", "busy", "vendor",
            Reply(body=b'{"error": {"code": 502, "message": "Provider returned error"}}'), retried=True),
    _failed("OpenRouter: error in the choice", "busy", "vendor",
            Reply(body=b'{"choices": [{"message": {"content": "The"}, "finish_reason": "error"}]}'), retried=True),
    _failed("OpenRouter: no choices", "no_answer", "vendor", Reply(body=b'{"id": "g", "choices": []}'), retried=True),
    _failed("OpenRouter: moderation", "filtered", "vendor", error(403, "Your input was flagged", code=403)),
    _failed("OpenRouter: reasoning is mandatory", "misconfigured", "settings",
            error(400, "Reasoning is mandatory for this endpoint and cannot be disabled.", code=400)),
    _thought("Mistral: parts", completion({"content": _PARTS})),
    _no_room("Mistral: thinking alone", completion({"content": _PARTS[:1]}, "length")),
    Sample("Mistral: a part that is not known", completion({"content": [{"type": "reference"}, _PARTS[1]]})),
    _thought("Mistral: its own marks", completion({"content": f"[THINK]{THOUGHT}[/THINK]{MOVE}"})),
    _thought("DeepSeek: thinking by default", completion({"content": MOVE, "reasoning_content": THOUGHT})),
    _failed("DeepSeek: no balance", "denied", "settings", error(402, "Insufficient Balance")),
    Sample("Anthropic: compatible", completion({"content": MOVE})),
    _failed("Anthropic: temperature out of range", "misconfigured", "settings",
            error(400, "temperature: range: 0..1", type="invalid_request_error"), said="option temperature"),
    _failed("Anthropic: overloaded in a 200", "busy", "vendor",
            Reply(body=b'{"error": {"type": "overloaded_error", "message": "Overloaded"}}'), retried=True),
    _failed("Gemini: prompt too long", "too_long", "settings",
            error(400, "The input token count (9) exceeds the maximum number of tokens allowed (8).", code=400)),
    _no_room("Gemini: thinking ate the limit", completion({}, "length"), None),
    _thought("Groq: raw", completion({"content": f"<think>{THOUGHT}</think>{MOVE}"})),
    Sample("Groq: hidden", completion({"content": MOVE}, x_groq={"id": "r"})),
    _thought("Together: reasoning", completion({"content": MOVE, "reasoning": THOUGHT, "tool_calls": []})),
    _thought("a proxy: a stream", stream(delta(reasoning_content=THOUGHT[:9]), delta(reasoning_content=THOUGHT[9:]),
             delta(content=MOVE[:9]), delta(content=MOVE[9:]), delta("stop"))),
    Sample("a proxy: a stream with comments", stream(delta(content=MOVE), delta("stop"), comment=": PROCESSING")),
    _failed("a proxy: a stream that broke off", "no_answer", "vendor", stream(delta(content="The"), ended=False),
            retried=True),
    _failed("a proxy: an error in a stream", "denied", "settings", stream({"error": {"code": 401, "message": "No."}})),
    _failed("a proxy: an error without a number", "denied", "settings", Reply(body=b'{"error": "Out of credits"}')),
    Sample("a proxy: no finish reason", completion({"content": MOVE}, None)),
    _failed("a proxy: no message", "no_answer", "vendor", Reply(body=b'{"choices": [{}]}')),
    Sample("a proxy: a part whose type is an object",
           completion({"content": [{"type": {"name": "text"}, "text": MOVE}]})),
    Sample("a model that had room and said nothing", completion({"content": ""}), text=""),
    Sample("text before a block", completion({"content": f"Well.\n<think>{THOUGHT}</think>{MOVE}"}),
           text=f"Well.\n{MOVE}", reasoning=THOUGHT),
)  # fmt: skip
