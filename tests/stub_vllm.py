"""A stub of vLLM: its chats with their tokens, and adapters (LoRA) that are loaded and unloaded as it runs.

What it takes and refuses is as vLLM has it (vllm/entrypoints/openai/models/serving.py, docs/features/lora.md). It says
what `stub_openai.negotiator` says, in the tokens of the checkpoint that it is given, and computes nothing.

As a program it takes the arguments of `vllm serve`, so that it can stand in for it: python -m tests.stub_vllm serve …
"""

import argparse
import json
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from transformers import AutoTokenizer

from tests.api_answers import completion
from tests.stub_openai import Reply, Request, StubHandler, StubServer, negotiator


class VllmStub(StubServer):
    """It serves a checkpoint under a name, and adapters up to a rank; `updates`: whether these are taken as it runs."""

    def __init__(
        self, folder: Path, name: str, *, port: int = 0, most_rank: int | None = 16, updates: bool = True
    ) -> None:
        super().__init__(port)
        self.name, self.most_rank, self.updates = name, most_rank, updates
        self.adapters: dict[str, str] = {}  # by name, the folder from which each was loaded
        self.calls: list[tuple[str, str, int]] = []  # to load or unload: which, the adapter's name, the answer's status
        self.failing: tuple[int, str] | None = None  # status and message with which loading and unloading fail
        self._tokenizer = AutoTokenizer.from_pretrained(folder)

    @property
    def handler(self) -> type[StubHandler]:
        return _Handler

    @property
    def models(self) -> list[str]:
        return [self.name, *self.adapters]

    @property
    def loads(self) -> list[str]:
        """The names under which adapters were loaded, one after the other."""
        return [name for what, name, status in self.calls if what == "load" and status == 200]

    @property
    def unloads(self) -> list[str]:
        return [name for what, name, status in self.calls if what == "unload" and status == 200]

    def forget(self) -> None:
        """Lose all adapters, as after a restart."""
        self.adapters.clear()

    def answer(self, request: Request) -> Reply:
        """An answer with its tokens, all of which are as likely as the model's name has letters."""
        self.requests.append(request)
        model = request.body["model"]
        if model not in self.models:
            return _error(404, f"The model `{model}` does not exist.", "NotFoundError")
        messages = request.body["messages"]
        prompt = self._tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        ids = self._tokenizer(negotiator(messages), add_special_tokens=False)["input_ids"]
        found = json.loads(
            completion({"content": self._tokenizer.decode(ids)}, prompt_token_ids=prompt, model=model).body or b""
        )
        ids = [*ids, self._tokenizer.eos_token_id]
        said = [{"token": "", "logprob": log_prob_of(model), "top_logprobs": []} for _ in ids]
        if request.body.get("return_token_ids"):
            found["choices"][0] |= {"token_ids": ids, "logprobs": {"content": said}}
        found["usage"] = {"prompt_tokens": len(prompt), "completion_tokens": len(ids), "total_tokens": 0}
        return Reply(body=json.dumps(found).encode())

    def load(self, wanted: dict[str, Any]) -> Reply:
        """POST /v1/load_lora_adapter."""
        name, path = wanted.get("lora_name"), wanted.get("lora_path")
        if not name or not path:
            return _error(400, "Both 'lora_name' and 'lora_path' must be provided.", "InvalidUserInput")
        if name in self.adapters:
            how = "If you want to load the adapter in place, set 'load_inplace' to True."
            return _error(400, f"The lora adapter '{name}' has already been loaded. {how}", "InvalidUserInput")
        if self.failing is not None:
            return _error(*self.failing, "InternalServerError")
        if self.most_rank is None:
            return _error(500, "Call to add_lora method failed: LoRA is not enabled.", "InternalServerError")
        try:
            config = json.loads((Path(path) / "adapter_config.json").read_text())
        except OSError:
            return _error(404, f"Loading lora {name} failed: No adapter found for {path}", "NotFoundError")
        if config["r"] > self.most_rank:
            told = f"LoRA rank {config['r']} is greater than max_lora_rank {self.most_rank}."
            return _error(500, f"Call to add_lora method failed: {told}", "InternalServerError")
        self.adapters[name] = path
        return Reply(body=f"Success: LoRA adapter '{name}' added successfully.".encode())

    def unload(self, wanted: dict[str, Any]) -> Reply:
        """POST /v1/unload_lora_adapter."""
        name = str(wanted.get("lora_name"))
        if self.failing is not None:
            return _error(*self.failing, "InternalServerError")
        if self.adapters.pop(name, None) is None:
            return _error(404, f"The lora adapter '{name}' cannot be found.", "NotFoundError")
        return Reply(body=f"Success: LoRA adapter '{name}' removed successfully.".encode())


def log_prob_of(model: str) -> float:
    """The log-probability that a model of the stub has for each of its tokens."""
    return -len(model) / 64


class _Handler(StubHandler):
    def do_POST(self) -> None:  # noqa: N802 - the library's name
        stub = cast(VllmStub, self.stub)
        what = self.path.removeprefix("/v1/").removesuffix("_lora_adapter")
        if what not in ("load", "unload"):
            return super().do_POST()
        wanted = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        if not stub.updates:
            return self._send(404, b'{"detail":"Not Found"}')
        reply = stub.load(wanted) if what == "load" else stub.unload(wanted)
        stub.calls.append((what, str(wanted.get("lora_name")), reply.status))
        return self._send(reply.status, reply.body or b"")


def _error(status: int, message: str, kind: str) -> Reply:
    error = {"message": message, "type": kind, "param": None, "code": status}
    return Reply(status=status, body=json.dumps({"error": error}).encode())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="vllm", description="A stub of vLLM.")
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("model", type=Path)
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--dtype")
    parser.add_argument("--enable-lora", action="store_true")
    parser.add_argument("--max-lora-rank", type=int, choices=(8, 16, 32, 64, 128, 256, 320, 512), default=16)
    parser.add_argument("--max-loras", type=int, default=1)
    given = parser.parse_args(arguments)
    rank = given.max_lora_rank if given.enable_lora else None
    updates = os.environ.get("VLLM_ALLOW_RUNTIME_LORA_UPDATING", "").lower() in ("1", "true")
    with VllmStub(given.model, given.served_model_name, port=given.port, most_rank=rank, updates=updates):
        threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1:])
