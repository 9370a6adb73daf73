"""Requests that are too long, too slow or none at all: they are refused early, and nobody else waits for them."""

import contextlib
import http.cookiejar
import json
import re
import shutil
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from app.core.extensions import reading
from app.models import Dataset
from app.web.body_limits import SMALL
from tests.chaos.hostile import KINDS, MB, Attempt, attack
from tests.chaos.killer import SERVING, pid_of
from tests.stack import PATIENCE, TURNS_ALONE, Stack, new_home, wait_until
from tests.tables import database
from tests.volume import small_volume

IN_BUFFERS = 16 * MB  # bytes that lie in the machine's buffers at most while nobody reads them
REFUSED = {400, 408, 413, 431}
CHAT = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "word " * 200_000}]}
IMPORT = "/admin/datasets/import"


class Answer(NamedTuple):
    """What came back over a connection until it was closed, or until there was a whole answer."""

    status: int
    head: str
    body: bytes


def connect(parlor: Stack) -> socket.socket:
    place = urlsplit(parlor.url)
    return socket.create_connection((place.hostname, place.port), timeout=PATIENCE)


def ask(parlor: Stack, request: bytes) -> Answer:
    """Send a request as it stands and read the answer to the connection's end."""
    with connect(parlor) as client:
        with contextlib.suppress(OSError):  # the server has had enough
            client.sendall(request)
        return read_to_end(client)


def read_to_end(client: socket.socket) -> Answer:
    came = b""
    with contextlib.suppress(OSError):
        while piece := client.recv(65_536):
            came += piece
    head, _, body = came.partition(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1]) if head.startswith(b"HTTP/1.1 ") else 0
    return Answer(status, head.decode("latin-1"), body)


def head(line: str, *fields: str, close: bool = True) -> bytes:
    lines = [f"{line} HTTP/1.1", "Host: localhost", *(["Connection: close"] if close else []), *fields, "", ""]
    return "\r\n".join(lines).encode("latin-1")


def served(parlor: Stack) -> int:
    """The process that serves pages."""
    pid = pid_of(parlor, SERVING)
    assert pid is not None
    return pid


@pytest.fixture(scope="module")
def experimenter(parlor: Stack) -> "Browser":
    return Browser(parlor)


class Browser:
    """A browser in which the experimenter is signed in who was greeted by `make run`."""

    def __init__(self, parlor: Stack) -> None:
        self._parlor = parlor
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(cookies)
        link = re.search(r"http\S+/enter/\S+", parlor.output())
        assert link is not None
        token = self.token(link[0])
        self._opener.open(link[0], urlencode({"csrf_token": token}).encode(), PATIENCE).close()
        self.cookie = "; ".join(f"{each.name}={each.value}" for each in cookies.cookiejar)

    def token(self, address: str) -> str:
        with self._opener.open(address, timeout=PATIENCE) as page:
            found = re.search(r'name="csrf_token"[^>]* value="([^"]+)"', page.read().decode())
        assert found is not None
        return found[1]

    def form(self, rows: bytes) -> tuple[bytes, bytes]:
        """The body of a form that imports rows, and the fields of its head but for its length."""
        parts = {"csrf_token": self.token(self._parlor.url + IMPORT), "format": "openai", "name": "mine"}
        lines = "".join(
            f'--edge\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in parts.items()
        )
        lines += '--edge\r\nContent-Disposition: form-data; name="file"; filename="mine.jsonl"\r\n\r\n'
        fields = f"Cookie: {self.cookie}\r\nContent-Type: multipart/form-data; boundary=edge\r\n"
        return lines.encode() + rows + b"\r\n--edge--\r\n", fields.encode()


def datasets(parlor: Stack) -> int:
    with database(parlor) as engine, reading(engine) as session:
        return session.scalar(select(func.count(Dataset.id))) or 0


def post(path: str, fields: bytes, more: str) -> bytes:
    first = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}"
    return first.encode() + fields + b"\r\n"


# ---- Nobody else waits ------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_pages_are_answered_while_somebody_sends(parlor: Stack, kind: str) -> None:
    serving, ended = served(parlor), threading.Event()
    attempts: list[Attempt] = []

    def send() -> None:
        while not ended.is_set():
            attempts.append(attack(parlor.url, KINDS[kind](), time.monotonic() + 1))

    senders = [threading.Thread(target=send) for _ in range(2)]
    for sender in senders:
        sender.start()
    for _ in range(10):
        assert "<h1" in parlor.get("/", timeout=20)  # less than it takes to drain what would be sent in 30 s
    ended.set()
    for sender in senders:
        sender.join(PATIENCE)
    assert served(parlor) == serving
    assert attempts
    assert max(each.sent for each in attempts) < IN_BUFFERS
    assert {each.status for each in attempts} <= REFUSED | {0, 200}


def test_who_sends_nothing_or_next_to_nothing_is_hung_up_on(parlor: Stack) -> None:
    with connect(parlor) as silent, connect(parlor) as slow_head, connect(parlor) as slow_body:
        slow_head.sendall(b"GET / HTTP/1.1\r\nHost: ")
        slow_body.sendall(head("POST /nowhere", "Content-Length: 50000") + b"x")
        answers = [read_to_end(each) for each in (silent, slow_head, slow_body)]
    assert [each.status for each in answers] == [0, 408, 408]
    assert "did not come in time" in answers[2].body.decode()


# ---- What is refused, and how -----------------------------------------------------


def test_a_body_is_refused_by_its_length_before_it_comes(parlor: Stack) -> None:
    for path in ("/", "/nowhere", "/api/matches", "/static/css/base.css", "/sign-in", IMPORT, "/socket.io/?EIO=4"):
        for method in ("POST", "PUT", "GET", "HEAD", "OPTIONS", "DELETE"):
            answer = ask(parlor, head(f"{method} {path}", f"Content-Length: {SMALL + 1}", close=False))
            assert (answer.status, "Connection: close" in answer.head) == (413, True), (method, path)


def test_the_refusal_is_a_page_or_json_in_the_visitors_language(parlor: Stack) -> None:
    length = f"Content-Length: {60 * MB}"
    page = page_of(parlor, head("POST /start/taboo", length, "Accept-Language: de"))
    assert '<html lang="de"' in page
    assert "höchstens 0.1 MB" in page
    for path in ("/api/matches", "/socket.io/?EIO=4&transport=polling&sid=x"):
        answer = json.loads(page_of(parlor, head(f"POST {path}", length)))
        assert answer["error"]["code"] == "too_large"
    study = page_of(parlor, head("POST /s/me/nobody", "Content-Length: 1000001"))
    assert "at most 1 MB" in study


def page_of(parlor: Stack, request: bytes) -> str:
    """The refusal as a page or JSON; who has sent many such requests is answered in one line for a while."""
    found: list[Answer] = []

    def is_page() -> bool:
        found.append(ask(parlor, request))
        return "text/plain" not in found[-1].head

    wait_until(is_page, "a refusal that is not in one line")
    return found[-1].body.decode()


def test_a_body_is_asked_for_only_where_it_will_be_taken(parlor: Stack) -> None:
    asked = "Expect: 100-continue"
    with connect(parlor) as client:
        client.sendall(head("POST /api/matches", asked, "Content-Length: 2"))
        assert client.recv(25, socket.MSG_WAITALL) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"{}")
        assert read_to_end(client).status == 400
    assert ask(parlor, head("POST /api/matches", asked, f"Content-Length: {SMALL + 1}")).status == 413


def test_chunks_are_cut_at_the_limit_and_read_below_it(parlor: Stack) -> None:
    def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> Answer:
        body = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in chunks) + end
        return ask(parlor, head("POST /api/matches", "Transfer-Encoding: chunked") + body)

    assert json.loads(chunked(b'{"game": ', b'"chess"}').body)["error"]["code"] == "invalid"
    assert chunked(*[b"x" * 1000] * (SMALL // 1000 + 1)).status == 413
    assert chunked(*[b"x"] * 5000).status == 413  # six times as much on the line
    assert chunked(*[b"x"] * 100).status == 413  # also where all of it is there at once
    assert json.loads(chunked(*[b" "] * 50, b'{"game": "chess"}').body)["error"]["code"] == "invalid"
    assert chunked(b"{}", end=b"zz\r\n").status == 400
    assert chunked(b"{}", end=b"0\r\n" + b"X-Trailer: x\r\n" * 5000 + b"\r\n").status == 413


def test_requests_that_were_sent_before_their_time_are_not_answered(parlor: Stack) -> None:
    answer = ask(parlor, head("GET /healthz", close=False) * 200)
    assert answer.status == 200
    assert answer.body.count(b"HTTP/1.1 200") < 100


def test_requests_one_after_the_other_share_a_connection(parlor: Stack) -> None:
    with connect(parlor) as client:
        for _ in range(3):
            client.sendall(head("POST /api/matches", "Content-Length: 2", close=False) + b"{}")
            came = b""
            while b'"code":"invalid"' not in came:
                came += client.recv(65_536)
            assert came.startswith(b"HTTP/1.1 400")
            assert b"Connection: keep-alive" in came


class Sent(NamedTuple):
    """A request: its head, its body, and how long that is said to be."""

    method: str
    path: str
    framing: str
    said: int
    body: int
    field: int


SENT = st.builds(
    Sent,
    st.sampled_from(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"]),
    st.sampled_from(["/", "/nowhere", "/api/matches", "/static/js/dom.js", "/sign-in", "/admin/studies/new", IMPORT])
    | st.text("abc/%.?=&", max_size=300).map("/{}".format),
    st.sampled_from(["length", "chunked", "both", "none", "twice", "negative", "words", "chunked, gzip", "gzip"]),
    st.sampled_from([0, 1, SMALL - 1, SMALL, SMALL + 1, 10 * SMALL, 10**30]),
    st.sampled_from([0, 1, 1000, SMALL, SMALL + 1, 3 * SMALL]),
    st.sampled_from([0, 100, 8000, 9000, 40_000]),
)


def as_bytes(sent: Sent) -> bytes:
    fields = {
        "length": [f"Content-Length: {sent.said}"],
        "chunked": ["Transfer-Encoding: chunked"],
        "both": [f"Content-Length: {sent.said}", "Transfer-Encoding: chunked"],
        "none": [],
        "twice": [f"Content-Length: {sent.said}", "Content-Length: 3"],
        "negative": ["Content-Length: -1"],
        "words": ["Content-Length: \xb2"],
        "chunked, gzip": ["Transfer-Encoding: chunked, gzip"],
        "gzip": ["Transfer-Encoding: gzip"],
    }[sent.framing]
    body = b"x" * sent.body
    if sent.framing == "chunked":
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (sent.body, body) if body else b"0\r\n\r\n"
    return head(f"{sent.method} {sent.path}", *fields, f"X-Long: {'x' * sent.field}") + body


@given(SENT)
@settings(max_examples=60, deadline=None)
def test_whatever_is_sent_is_answered_or_hung_up_on_and_harms_nobody(parlor: Stack, sent: Sent) -> None:
    serving = served(parlor)
    with connect(parlor) as client:
        with contextlib.suppress(OSError):
            client.sendall(as_bytes(sent))
            client.shutdown(socket.SHUT_WR)
        answer = read_to_end(client)
    lost = sent.body > SMALL  # an answer may be lost where more was sent than is drained
    well_formed = sent.framing in ("length", "chunked", "none") and sent.field < 8190
    if sent.framing == "length" and sent.said > SMALL and well_formed and not lost:
        assert answer.status == 413
    elif sent.framing == "chunked" and sent.body > SMALL:
        assert answer.status in (413, 431, 0)
    elif well_formed and sent.body <= SMALL and (sent.framing != "length" or sent.said <= sent.body):
        assert answer.status not in (0, 413, 408, 500, 502, 503)
    assert answer.status != 500
    assert parlor.get("/healthz", timeout=20).strip() == "ok"
    assert served(parlor) == serving


# ---- Large files of experimenters -------------------------------------------------


def test_a_large_file_is_taken_from_an_experimenter_with_a_length_and_in_chunks(
    parlor: Stack, experimenter: Browser
) -> None:
    before = datasets(parlor)
    body, fields = experimenter.form(b"\n".join([json.dumps(CHAT).encode()] * 4))
    assert len(body) > 4 * MB
    answer = ask(parlor, post(IMPORT, fields, f"Content-Length: {len(body)}\r\n") + body)
    assert (answer.status, "/admin/datasets/" in answer.head) == (303, True), answer.body[-2000:]
    body, fields = experimenter.form(b"\n".join([json.dumps(CHAT).encode()] * 5))
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts(body)) + b"0\r\n\r\n"
    assert ask(parlor, post(IMPORT, fields, "Transfer-Encoding: chunked\r\n") + chunks).status == 303
    assert datasets(parlor) == before + 2


def parts(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), 50_000):
        yield body[start : start + 50_000]


def test_nobody_else_may_send_as_much(parlor: Stack, experimenter: Browser) -> None:
    length = f"Content-Length: {4 * MB}\r\n"
    assert ask(parlor, post(IMPORT, b"Cookie: session=invented\r\n", length)).status == 413
    assert ask(parlor, post(IMPORT, b"", length)).status == 413
    elsewhere = ask(parlor, post("/admin/benchmarks/new", f"Cookie: {experimenter.cookie}\r\n".encode(), length))
    assert elsewhere.status == 413
    too_much = f"Content-Length: {200 * MB}\r\n"
    page = page_of(parlor, post(IMPORT, f"Cookie: {experimenter.cookie}\r\n".encode(), too_much))
    assert "File: expected at most 100 MB" in page


def test_an_upload_that_breaks_off_leaves_nothing(parlor: Stack, experimenter: Browser) -> None:
    before, files = datasets(parlor), sorted((parlor.home / "datasets").glob("*"))
    body, fields = experimenter.form(b"\n".join([json.dumps(CHAT).encode()] * 7))
    for cut in (SMALL // 2, len(body) // 2, len(body) - 1):
        with connect(parlor) as client:
            client.sendall(post(IMPORT, fields, f"Content-Length: {len(body)}\r\n") + body[:cut])
            client.shutdown(socket.SHUT_WR)
            assert read_to_end(client).status == 400
    assert parlor.get("/healthz").strip() == "ok"
    wait_until(lambda: open_files(parlor) == 0, "no file of an upload left open")
    assert datasets(parlor) == before
    assert sorted((parlor.home / "datasets").glob("*")) == files


def open_files(parlor: Stack) -> int:
    """How many files without a name the serving process has open in its home."""
    found = 0
    for each in Path(f"/proc/{served(parlor)}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            target = str(each.readlink())
            found += target.startswith(str(parlor.home)) and target.endswith("(deleted)")
    return found


def test_an_upload_for_which_there_is_no_room_is_refused_and_leaves_nothing() -> None:
    home = new_home()
    with small_volume(home, 12):
        parlor = Stack(home, {**TURNS_ALONE, "LOW_DISK_MB": "1"})
        try:
            parlor.wait_until_ready()
            body, fields = Browser(parlor).form(b"\n".join([json.dumps(CHAT).encode()] * 12))
            answer = ask(parlor, post(IMPORT, fields, f"Content-Length: {len(body)}\r\n") + body)
            assert answer.status == 503
            assert "no room on the server" in answer.body.decode()
            wait_until(lambda: open_files(parlor) == 0, "no file of an upload left open")
            assert parlor.get("/healthz").strip() == "ok"
            assert datasets(parlor) == 0
        finally:
            parlor.close()
    shutil.rmtree(home, ignore_errors=True)
