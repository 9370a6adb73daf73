"""A hub of its own for tests: what huggingface_hub asks of one, over HTTP, with files kept in memory.

Repositories have branches of commits; large files come by LFS and are compared with their hash. A token is asked for
where one is set, and `refuse` has the next requests answered with a status.
"""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.stack import PATIENCE

TOKEN = "hf_a-token-of-the-tests"
_API = re.compile(r"/api/(models|datasets)/([^/]+/[^/]+)(?:/(revision|tree|preupload|commit|branch)/([^/]+))?(?:/.*)?")
_FILE = re.compile(r"/(?:(datasets)/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
_LFS = re.compile(r"/(?:(datasets)/)?([^/]+/[^/]+)\.git/info/lfs/objects/batch")

Tree = dict[str, bytes]


class HubServer:
    """The hub at `url`. `repositories` are by kind and name; `commits` by their hash."""

    def __init__(self) -> None:
        self.repositories: dict[tuple[str, str], dict[str, str]] = {}
        self.private: dict[tuple[str, str], bool] = {}
        self.commits: dict[str, Tree] = {}
        self.stored: dict[str, bytes] = {}  # by hash, of LFS
        self.uploads: list[str] = []  # hashes, each time that one was sent
        self.downloads: list[str] = []
        self.tokens: set[str] = set()
        self.refuse: tuple[str, int] | None = None  # a piece of a path, and the status for it
        self.cut: int | None = None  # bytes after which downloads are cut off
        self.hold: threading.Event | None = None  # downloads wait for it
        self.asked = threading.Event()  # whether one has waited
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": self}))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def tree(self, kind: str, repository: str, revision: str = "main") -> Tree:
        branches = self.repositories[kind, repository]
        return self.commits[branches.get(revision, revision)]

    def commit(self, kind: str, repository: str, revision: str, tree: Tree) -> str:
        parent = self.repositories[kind, repository].get(revision, "")
        listed = "".join(f"{name} {hashlib.sha256(tree[name]).hexdigest()}\n" for name in sorted(tree))
        oid = hashlib.sha1(f"{parent}{listed}".encode()).hexdigest()  # noqa: S324 - as git has them
        self.commits[oid] = tree
        self.repositories[kind, repository][revision] = oid
        return oid

    def add(self, kind: str, repository: str, tree: Tree) -> None:
        """A repository with these files, which nobody has pushed."""
        self.repositories[kind, repository], self.private[kind, repository] = {}, False
        self.commit(kind, repository, "main", tree)

    @contextmanager
    def running(self) -> Iterator["HubServer"]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    hub: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, status: int, content: Any = None, **headers: str) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", headers.pop("length", str(len(body))))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _fail(self, status: int, code: str = "") -> None:
        self._answer(status, {"error": code or str(status)}, **({"X_Error_Code": code} if code else {}))

    def _refused(self) -> bool:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.hub.tokens.add(token)
        if self.hub.refuse is not None and self.hub.refuse[0] in self.path:
            self._fail(self.hub.refuse[1])
            return True
        if token != TOKEN and not self.path.startswith("/upload/"):
            self._fail(401, "RepoNotFound")
            return True
        return False

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if self._refused():
            return
        path = unquote(urlsplit(self.path).path)
        if (found := _FILE.fullmatch(path)) is not None:
            self._file(found[1] or "models", found[2], found[3], found[4])
        elif (found := _API.fullmatch(path)) is not None:
            self._api(found[1], found[2], found[3], found[4] or "main")
        else:
            self._fail(404)

    def _tree(self, kind: str, repository: str, revision: str) -> tuple[str, Tree] | None:
        branches = self.hub.repositories.get((kind, repository))
        if branches is None:
            self._fail(404, "RepoNotFound")
            return None
        oid = branches.get(revision, revision)
        if oid not in self.hub.commits:
            self._fail(404, "RevisionNotFound")
            return None
        return oid, self.hub.commits[oid]

    def _file(self, kind: str, repository: str, revision: str, name: str) -> None:
        if (found := self._tree(kind, repository, revision)) is None:
            return
        oid, tree = found
        if name not in tree:
            self._answer(404, {}, X_Error_Code="EntryNotFound", X_Repo_Commit=oid)
            return
        content = tree[name]
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").partition("-")[0])
        headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X_Repo_Commit": oid}
        if name.endswith(".safetensors"):  # where Xet's copy would be, which no test has
            headers |= {"X_Xet_Hash": "0" * 64, "X_Xet_Refresh_Route": f"{self.hub.url}/no-xet"}
        if self.command == "HEAD":
            self._answer(200, b"", length=str(len(content)), **headers)
            return
        if self.hub.hold is not None:
            self.hub.asked.set()
            self.hub.hold.wait(PATIENCE)
        self.hub.downloads.append(name)
        piece = content[start:]
        if self.hub.cut is not None and len(piece) > self.hub.cut:
            self.send_response(200 if not start else 206)
            self.send_header("Content-Length", str(len(piece)))
            self.end_headers()
            self.wfile.write(piece[: self.hub.cut])
            self.close_connection = True
            return
        self._answer(206 if start else 200, piece, **headers)

    def _api(self, kind: str, repository: str, what: str | None, revision: str) -> None:
        if (found := self._tree(kind, repository, revision)) is None:
            return
        oid, tree = found
        if what == "tree":
            self._answer(200, [_entry(name, content) for name, content in sorted(tree.items())])
        else:
            siblings = [{"rfilename": name, "size": len(content)} for name, content in sorted(tree.items())]
            private = self.hub.private[kind, repository]
            self._answer(200, {"id": repository, "sha": oid, "siblings": siblings, "private": private})

    def do_PUT(self) -> None:
        body = self._body()
        if self._refused():
            return
        oid = self.path.rpartition("/")[2]
        if hashlib.sha256(body).hexdigest() != oid:
            self._fail(400)
            return
        self.hub.stored[oid] = body
        self.hub.uploads.append(oid)
        self._answer(200)

    def do_POST(self) -> None:
        body = self._body()
        if self._refused():
            return
        path = unquote(urlsplit(self.path).path)
        if path == "/api/repos/create":
            self._create(json.loads(body))
        elif path == "/api/validate-yaml":
            self._answer(200, {"errors": [], "warnings": []})
        elif (found := _LFS.fullmatch(path)) is not None:
            self._batch(json.loads(body))
        elif (found := _API.fullmatch(path)) is not None:
            self._change(found[1], found[2], found[3], found[4], body)
        else:
            self._fail(404)

    def _create(self, said: dict[str, Any]) -> None:
        kind = "datasets" if said.get("type") == "dataset" else "models"
        key = kind, f"{said['organization']}/{said['name']}"
        if key in self.hub.repositories:
            self._answer(409, {"error": "it exists", "url": f"{self.hub.url}/{key[1]}"})
            return
        self.hub.repositories[key], self.hub.private[key] = {}, said.get("visibility") == "private"
        self.hub.commit(*key, "main", {".gitattributes": b"*.safetensors filter=lfs\n"})
        self._answer(200, {"url": f"{self.hub.url}/{key[1]}", "id": key[1]})

    def _batch(self, said: dict[str, Any]) -> None:
        objects = []
        for each in said["objects"]:
            actions = {"upload": {"href": f"{self.hub.url}/upload/{each['oid']}"}}
            objects.append({**each, **({} if each["oid"] in self.hub.stored else {"actions": actions})})
        self._answer(200, {"transfer": "basic", "objects": objects})

    def _change(self, kind: str, repository: str, what: str, revision: str, body: bytes) -> None:
        if what == "branch":
            branches = self.hub.repositories[kind, repository]
            if revision in branches:
                self._fail(409)
                return
            branches[revision] = branches["main"]
            self._answer(200, {})
        elif what == "preupload":
            files = [
                {"path": each["path"], "shouldIgnore": False,
                 "uploadMode": "lfs" if each["path"].endswith(".safetensors") else "regular"}
                for each in json.loads(body)["files"]
            ]  # fmt: skip
            self._answer(200, {"files": files})
        else:
            tree = dict(self.hub.tree(kind, repository, revision))
            for line in map(json.loads, body.splitlines()):
                value = line["value"]
                if line["key"] == "file":
                    tree[value["path"]] = base64.b64decode(value["content"])
                elif line["key"] == "lfsFile":
                    tree[value["path"]] = self.hub.stored[value["oid"]]
                elif line["key"] == "deletedFile":
                    del tree[value["path"]]
            oid = self.hub.commit(kind, repository, revision, tree)
            self._answer(200, {"commitUrl": f"{self.hub.url}/{repository}/commit/{oid}", "commitOid": oid,
                               "pullRequestUrl": None})  # fmt: skip


def _entry(name: str, content: bytes) -> dict[str, Any]:
    oid = hashlib.sha1(content).hexdigest()  # noqa: S324 - as git has them
    entry: dict[str, Any] = {"type": "file", "path": name, "size": len(content), "oid": oid}
    if name.endswith(".safetensors"):
        sha256 = hashlib.sha256(content).hexdigest()
        entry["lfs"] = {"oid": sha256, "size": len(content), "pointerSize": 130}
    return entry
