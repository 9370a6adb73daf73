"""A local server with Tinker's API, by the types of its SDK, which really trains: each model is the same tiny one.

    with StubTinker(folder) as tinker:     # the folder of a checkpoint, which is the open model "tiny/open"
        tinker.service, tinker.url         # the address of the API, and of its OpenAI-compatible endpoint
        tinker.carried_out                 # names of requests, in order, each when it was carried out
        tinker.on("optim_step", 3, "after", kill)

All weights are trained, not adapters: losses, gradients and the optimizer are the same to whoever calls.
"""

import copy
import itertools
import json
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import numpy
import torch
import zstandard
from tinker.proto import tinker_public_pb2 as proto
from torch.nn import functional

from tests.stub_openai import Reply, Request, Speaker, _completion, _error, _json, _Server, negotiator
from training.checkpoints import load

KEY = "tml-secret-0123456789-abcdefghij"  # which no message, log or page may ever show
OPEN_MODEL = "tiny/open"
_MODELS = "/oai/api/v1"


class _Refused(Exception):
    def __init__(self, status: int, text: str, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers


class _Run:
    """A training run: a model and its optimizer."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters())

    def state(self) -> dict[str, Any]:
        return copy.deepcopy({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()})


class StubTinker:
    """The server, on a free port of 127.0.0.1. `speaker` is how a checkpoint for sampling answers."""

    def __init__(self, folder: Path, speaker: Speaker = negotiator) -> None:
        self.folder = folder
        self.speaker = speaker
        self.paths: list[str] = []  # of all requests
        self.carried_out: list[str] = []
        self.inputs: list[list[int]] = []  # the tokens of all data
        self.metadata: list[Any] = []  # of training runs
        self.adam: list[dict[str, Any]] = []  # of optimizer steps
        self.asked: list[Request] = []  # for chats
        self.saved: dict[str, Any] = {}  # by path
        self.runs: dict[str, _Run] = {}
        self.refusals: dict[str, _Refused] = {}
        self._model, self.tokenizer = load(folder)
        self._hooks: dict[tuple[str, int, str], Callable[[], object]] = {}
        self._seen: Counter[str] = Counter()
        self._results: dict[str, tuple[str, bytes]] = {}
        self._numbers: defaultdict[str, itertools.count[int]] = defaultdict(itertools.count)
        self._lock = threading.RLock()
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"stub": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def service(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/services/tinker"

    @property
    def url(self) -> str:
        return self.service + _MODELS

    def __enter__(self) -> "StubTinker":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def on(self, name: str, number: int, when: str, do: Callable[[], object]) -> None:
        """What to do at the request of that name and number (from 1 on), before or after it is carried out."""
        self._hooks[name, number, when] = do

    def refuse(self, name: str, status: int, text: str, **headers: str) -> None:
        """Answer all requests of that name with an error."""
        self.refusals[name] = _Refused(status, text, headers)

    def paid(self) -> int:
        """How many forward and backward passes were carried out."""
        return self.carried_out.count("forward_backward")

    # ---- Requests --------------------------------------------------------------------

    def handle(self, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> tuple[str, bytes]:
        """The type and the bytes of an answer. Raises _Refused."""
        self.paths.append(path)
        if headers.get("x-api-key") != KEY:
            raise _Refused(401, f"Invalid API key {headers.get('x-api-key')}")
        if found := re.fullmatch(r"/api/v1/training_runs/([^/]+)/checkpoints(?:/(.+))?", path):
            return self._checkpoints(method, *found.groups())
        if re.fullmatch(r"/api/v1/sessions/[^/]+/finish", path):
            return _as_json({})
        name = path.removeprefix("/api/v1/").replace("/", "_")
        if name == "retrieve_future":
            return self._results[json.loads(raw)["request_id"]]
        if name in self.refusals:
            raise self.refusals[name]
        if name == "forward_backward":
            if headers.get("content-encoding") == "zstd":
                raw = zstandard.ZstdDecompressor().decompress(raw)
            message = proto.ForwardBackwardRequest()
            message.ParseFromString(raw)
            name = "forward" if message.forward_only else name
            return self._in_future(name, lambda: self._forward_backward(message))
        body = json.loads(raw) if raw else {}
        direct = getattr(self, f"_answer_{name}", None)
        if direct is not None:
            return _as_json(direct(body))
        work = getattr(self, f"_do_{name}", None)
        if work is None:
            raise _Refused(404, f"No such page: {path}")
        return self._in_future(name, lambda: _as_json(work(body)))

    def _in_future(self, name: str, work: Callable[[], tuple[str, bytes]]) -> tuple[str, bytes]:
        with self._lock:
            self._seen[name] += 1
            number = self._seen[name]
            self._hook(name, number, "before")
            request_id = f"request-{len(self._results)}"
            self._results[request_id] = work()
            self.carried_out.append(name)
            self._hook(name, number, "after")
        return _as_json({"request_id": request_id})

    def _hook(self, name: str, number: int, when: str) -> None:
        if (do := self._hooks.pop((name, number, when), None)) is not None:
            do()
            if when == "before":
                raise _Refused(503, "gone")

    def _answer_client_config(self, _body: Any) -> Any:
        return {}

    def _answer_client_dynamic_config(self, _body: Any) -> Any:
        return {}

    def _answer_create_session(self, _body: Any) -> Any:
        return {"session_id": f"session-{next(self._numbers['session'])}"}

    def _answer_session_heartbeat(self, _body: Any) -> Any:
        return {}

    def _answer_get_server_capabilities(self, _body: Any) -> Any:
        model = {"model_name": OPEN_MODEL, "max_context_length": 1024, "trainable": True}
        return {"supported_models": [model, {"model_name": "other/for-sampling", "trainable": False}]}

    def _answer_get_info(self, body: Any) -> Any:
        data = {"model_name": OPEN_MODEL, "tokenizer_id": str(self.folder)}
        return {"model_id": body["model_id"], "model_data": data, "is_lora": True, "lora_rank": 32}

    def _do_create_model(self, body: Any) -> Any:
        if body["base_model"] != OPEN_MODEL:
            raise _Refused(400, f"Unknown model {body['base_model']}")
        return {"model_id": self._new_run(body)}

    def _do_load_weights(self, body: Any) -> Any:
        saved = self.saved.get(body["path"])
        if saved is None:
            raise _Refused(404, f"No checkpoint {body['path']}")
        run = self.runs[self._new_run(body)]
        run.model.load_state_dict(saved["model"])
        if body["optimizer"]:
            run.optimizer.load_state_dict(copy.deepcopy(saved["optimizer"]))
        return {"type": "load_weights", "path": body["path"]}

    def _new_run(self, body: Any) -> str:
        name = f"{body['session_id']}:train:{body['model_seq_id']}"
        model = copy.deepcopy(self._model).eval()  # without dropout, as where a request may be split
        self.runs[name] = _Run(model)
        self.metadata.append(body.get("user_metadata"))
        return name

    def _forward_backward(self, message: Any) -> tuple[str, bytes]:
        if message.loss_fn != "cross_entropy":
            raise _Refused(400, f"Unknown loss {message.loss_fn}")
        run = self.runs[message.model_id]
        total, found = torch.zeros(()), []
        for each in message.data:
            ids = [numpy.frombuffer(chunk.encoded_text.tokens, numpy.int32) for chunk in each.model_input]
            inputs = torch.tensor(numpy.concatenate(ids).astype(numpy.int64))
            self.inputs.append(inputs.tolist())
            targets = torch.tensor(numpy.frombuffer(each.loss_fn_inputs["target_tokens"].dense, numpy.int64).copy())
            weights = torch.tensor(numpy.frombuffer(each.loss_fn_inputs["weights"].dense, numpy.float32).copy())
            assert inputs.shape == targets.shape == weights.shape
            log_probs = -functional.cross_entropy(run.model(inputs[None]).logits[0].float(), targets, reduction="none")
            total = total - (log_probs * weights).sum()
            found.append(log_probs.detach().numpy())
        if not message.forward_only:
            total.backward()
        answer = proto.ForwardBackwardOutput(loss_fn_output_type="ArrayRecord")
        answer.metrics["loss:sum"] = float(total.detach())
        record = answer.loss_fn_outputs.add(num_datums=len(found))
        offsets = numpy.cumsum([0, *(each.nbytes for each in found)]).astype(numpy.int64)
        tensor = record.fields["logprobs"]
        tensor.dtype = proto.DTYPE_FLOAT32
        tensor.data, tensor.offsets = b"".join(each.tobytes() for each in found), offsets.tobytes()
        return "application/x-protobuf", answer.SerializeToString()

    def _do_optim_step(self, body: Any) -> Any:
        run, adam = self.runs[body["model_id"]], body["adam_params"]
        self.adam.append(adam)
        for group in run.optimizer.param_groups:
            group |= {"lr": adam["learning_rate"], "betas": (adam["beta1"], adam["beta2"])}
            group |= {"eps": adam["eps"], "weight_decay": adam["weight_decay"]}
        if adam["grad_clip_norm"]:
            torch.nn.utils.clip_grad_norm_(run.model.parameters(), adam["grad_clip_norm"])
        run.optimizer.step()
        run.optimizer.zero_grad()
        return {}

    def _do_save_weights(self, body: Any) -> Any:
        path = f"tinker://{body['model_id']}/weights/{body['path']}"
        if path in self.saved and not body["overwrite"]:
            raise _Refused(409, f"{path} is there already")
        self.saved[path] = self.runs[body["model_id"]].state()
        return {"path": path}

    def _do_save_weights_for_sampler(self, body: Any) -> Any:
        path = f"tinker://{body['model_id']}/sampler_weights/{body['path']}"
        self.saved[path] = self.runs[body["model_id"]].state()
        return {"path": path}

    def _checkpoints(self, method: str, run: str, checkpoint: str | None) -> tuple[str, bytes]:
        if run not in self.runs:
            raise _Refused(404, f"No training run {run}")
        if method == "DELETE":
            del self.saved[f"tinker://{run}/{checkpoint}"]
            return _as_json({})
        now, listed = datetime.now(UTC).isoformat(), []
        for path in self.saved:
            if path.startswith(f"tinker://{run}/"):
                kind = "sampler" if "/sampler_weights/" in path else "training"
                name = path.removeprefix(f"tinker://{run}/")
                listed.append({"checkpoint_id": name, "checkpoint_type": kind, "time": now, "tinker_path": path})
        return _as_json({"checkpoints": listed})

    def complete(self, request: Request) -> Reply:
        """The answer to a chat: of the open model, and of checkpoints that were saved for sampling."""
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return Reply("Incorrect API key.", status=401)
        self.asked.append(request)
        model = request.body["model"]
        if model != OPEN_MODEL and not ("/sampler_weights/" in model and model in self.saved):
            return Reply("The model does not exist.", status=404)
        return Reply(self.speaker(request.body["messages"]))


def _as_json(body: Any) -> tuple[str, bytes]:
    return "application/json", _json(body)


class _Handler(BaseHTTPRequestHandler):
    stub: StubTinker
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def _answer(self, method: str) -> None:
        length = int(self.headers.get("Content-Length", 0))
        raw = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        path = urlsplit(self.path).path.removeprefix("/services/tinker")  # a proxy is asked for whole addresses
        if path == f"{_MODELS}/chat/completions":
            request = Request(0.0, path, headers, json.loads(raw))
            reply = self.stub.complete(request)
            body = _completion(request, reply) if reply.status == 200 else _error(str(reply.content))
            self._send(reply.status, "application/json", _json(body))
            return
        try:
            self._send(200, *self.stub.handle(method, path, headers, raw))
        except _Refused as refused:
            body = _json({"detail": str(refused)})
            self._send(refused.status, "application/json", body, refused.headers)

    def _send(self, status: int, kind: str, body: bytes, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
