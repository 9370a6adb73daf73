"""Prolific and Connect for tests, over HTTP: what they send people with, take back, and hand out.

Written after what docs/studies.md names. Who is at the browser of a site, `at` says, as a vendor knows it from its own
sign-in. What people and researchers do there otherwise are methods.

    with StubRecruiters() as recruiters:
        recruiters.prolific.study("66f0c1", "https://parlor.example/s/two-models/main?PROLIFIC_PID={{%PROLIFIC_PID%}}")
"""

import csv
import html
import io
import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from tests.study_pages import prolific_id

PROLIFIC_COLUMNS = (
    "Submission id", "Participant id", "Status", "Custom study tncs accepted at", "Started at", "Completed at",
    "Reviewed at", "Archived at", "Time taken", "Completion code", "Total approvals",
)  # fmt: skip
_AMOUNT = re.compile(r"\d+(\.\d{1,2})?")
_KEYS = "/.well-known/study/jwks.json"
_MOST_BONUSES = 200  # people in one bulk payment at Prolific


class VendorAnswer(NamedTuple):
    """What a page of a vendor's site comes with."""

    status: int
    text: str
    kind: str = "text/html"


class SigningKey:
    """A key by which links are signed; `name` is its id in the key set."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.private = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def public(self) -> dict[str, str]:
        """The key as a key set has it."""
        written = RSAAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        return {**written, "kid": self.name, "alg": "RS256", "use": "sig"}


class Visit:
    """A person's visit as the vendor has it."""

    def __init__(self, number: str, person: str, status: str) -> None:
        self.number, self.person, self.status = number, person, status
        self.code = ""
        self.fields: Mapping[str, str] = {}


class VendorSite:
    """What both have in common: visits by their ids, what was paid, and who is at the browser."""

    def __init__(self) -> None:
        self.at = ""
        self.visits: dict[str, Visit] = {}
        self.paid: list[tuple[str, Decimal]] = []

    def visit_of(self, person: str) -> Visit:
        """The last visit of a person."""
        return next(each for each in reversed(self.visits.values()) if each.person == person)

    def _begin(self, number: str, person: str, status: str) -> Visit:
        self.visits[number] = Visit(number, person, status)
        return self.visits[number]

    def _table(self, columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> str:
        out = io.StringIO()
        writer = csv.DictWriter(out, columns, restval="", quoting=csv.QUOTE_MINIMAL, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return out.getvalue()


class Prolific(VendorSite):
    """A study at Prolific; `codes` are those that it was set up with.

    `keys` are those by which it signs links once `sign_links` was called, the last one at present. `asked` counts how
    often somebody fetched them from `keys_at`; with `keys_away` they cannot be had.
    """

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[SigningKey] = []
        self.asked, self.keys_away, self.keys_at = 0, False, ""

    def sign_links(self, key: SigningKey) -> None:
        """Sign links by this key from now on; the ones before stay in the key set."""
        self.keys.append(key)

    def token(self, person: str, visit: str, study: str | None = None, **claims: object) -> str:
        """What it signs of a visit; `claims` are others than it writes by itself, None for one left out."""
        now = int(time.time())
        ids = {
            "PROLIFIC_PID": prolific_id(person), "SESSION_ID": visit,
            "STUDY_ID": self.number if study is None else study, "workspace_id": "66f0c1aa66f0c1aa66f0c1aa",
        }  # fmt: skip
        whole: dict[str, object] = {"iat": now, "exp": now + 3600, "prolific": ids, **claims}
        written = {name: value for name, value in whole.items() if value is not None}
        return jwt.encode(written, self.keys[-1].private, "RS256", {"kid": self.keys[-1].name})

    def study(self, number: str, link: str, codes: Sequence[str] = ()) -> None:
        """Set the study up with the researcher's link and its completion codes."""
        self.number, self.link, self.codes = number, link, tuple(codes)

    def page(self, method: str, path: str, form: Mapping[str, str]) -> VendorAnswer | None:
        """The page of the study, and where people come back to."""
        if method == "GET" and path == f"/studies/{self.number}":
            return VendorAnswer(200, f'<a href="{html.escape(self.place(self.at))}">Open study link</a>')
        if method == "GET" and path == "/submissions/complete":
            return self._complete(form.get("cc", ""))
        if method == "GET" and path == _KEYS.replace("jwks", "moved"):
            return VendorAnswer(302, self.keys_at)
        if method == "GET" and path == _KEYS:
            self.asked += 1
            listed = json.dumps({"keys": [each.public() for each in self.keys]})
            return VendorAnswer(503, "Away.") if self.keys_away else VendorAnswer(200, listed, "application/json")
        return None

    def place(self, person: str) -> str:
        """The link of a person who has a place, with the placeholders filled in; a visit under way stays the same."""
        own = [each for each in self.visits.values() if each.person == person and each.status == "ACTIVE"]
        number = f"{len(self.visits) + 1:x}".rjust(24, "a")
        visit = own[-1] if own else self._begin(number, person, "ACTIVE")
        filled = {"PROLIFIC_PID": prolific_id(person), "STUDY_ID": self.number, "SESSION_ID": visit.number}
        link = self.link
        for name, value in filled.items():
            link = link.replace(f"{{{{%{name}%}}}}", value)
        if self.keys:
            link += "&" + urlencode({"prolific_token": self.token(person, visit.number)})
        return link

    def set_status(self, person: str, status: str) -> None:
        """What the person or the researcher does with a submission: RETURNED, TIMED-OUT, APPROVED …"""
        self.visit_of(person).status = status

    def export(self) -> str:
        """The table that a researcher downloads."""
        rows = [
            {
                "Submission id": each.number, "Participant id": prolific_id(each.person), "Status": each.status,
                "Custom study tncs accepted at": "Not Applicable", "Started at": "2026-11-01T12:00:00.000000Z",
                "Completion code": each.code, "Total approvals": "12",
            }
            for each in self.visits.values()
        ]  # fmt: skip
        return self._table(PROLIFIC_COLUMNS, rows)

    def pay_bonuses(self, lines: str) -> None:
        """Pay a bulk payment: `id,amount` a line, for people of this study. The same file once more pays once more."""
        rows = [line.split(",") for line in lines.splitlines()]
        people = {prolific_id(each.person): each.person for each in self.visits.values()}
        assert 0 < len(rows) <= _MOST_BONUSES, f"{len(rows)} people in a bulk payment"
        assert len({person for person, _ in rows}) == len(rows), "somebody twice in a bulk payment"
        for person, amount in rows:
            assert person in people, f"{person} has no submission"
            assert _AMOUNT.fullmatch(amount), amount
            assert Decimal(amount) > 0, amount
            self.paid.append((people[person], Decimal(amount)))

    def _complete(self, code: str) -> VendorAnswer:
        visit = self.visit_of(self.at)
        if visit.status != "ACTIVE":
            return VendorAnswer(200, "You have already submitted this study.")
        if code not in self.codes:
            return VendorAnswer(200, "That code is not one of this study.")
        visit.status, visit.code = "AWAITING REVIEW", code
        return VendorAnswer(200, f"Thank you, {self.at}: {code}")


class Connect(VendorSite):
    """A project at Connect, whose redirect says no more than that somebody completed it."""

    def project(self, number: str, link: str) -> None:
        """Set the project up with the researcher's link."""
        self.number, self.link = number, link

    def page(self, method: str, path: str, form: Mapping[str, str]) -> VendorAnswer | None:
        """Where people come back to who completed it."""
        if method != "GET" or path != f"/participant/project/{self.number}/complete" or form:
            return None
        self.visit_of(self.at).status = "submitted"
        return VendorAnswer(200, f"Thank you, {self.at}.")

    def enter(self, person: str) -> str:
        """The link of a person, with placeholders filled in."""
        visit = self._begin(f"C{len(self.visits) + 1}", person, "active")
        filled = {"participantId": person, "assignmentId": visit.number, "projectId": self.number}
        link = self.link
        for name, value in filled.items():
            link = link.replace(f"{{{{{name}}}}}", value)
        return link

    def table(self) -> str:
        """The visits in Parlor's own columns, as a researcher writes them from Connect's list."""
        rows = [
            {"submission": each.number, "status": each.status, "participant": each.person}
            for each in self.visits.values()
        ]
        return self._table(("submission", "status", "participant"), rows)


class StubRecruiters:
    """Both sites, each at an address of its own while the block lasts. `url` says where."""

    def __init__(self) -> None:
        self.prolific, self.connect = Prolific(), Connect()
        self._servers: dict[VendorSite, ThreadingHTTPServer] = {}

    def __enter__(self) -> Self:
        for site in (self.prolific, self.connect):
            self._servers[site] = server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site.page))
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.prolific.keys_at = self.url(self.prolific, _KEYS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers.values():
            server.shutdown()
            server.server_close()

    def url(self, site: VendorSite, address: str = "") -> str:
        """The address of a vendor's page at its stub."""
        port = self._servers[site].server_address[1]
        parts = urlsplit(address)
        return f"http://127.0.0.1:{port}{parts.path}{'?' if parts.query else ''}{parts.query}"


Page = Callable[[str, str, Mapping[str, str]], VendorAnswer | None]


def _handler(page: Page) -> type[BaseHTTPRequestHandler]:
    class VendorHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET", urlsplit(self.path).query)

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            self._answer("POST", self.rfile.read(length).decode())

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

        def _answer(self, method: str, query: str) -> None:
            form = {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}
            found = page(method, urlsplit(self.path).path, form) or VendorAnswer(404, "There is no such page.")
            is_page = found.kind == "text/html"
            content = (f"<!doctype html><title>Vendor</title><p>{found.text}</p>" if is_page else found.text).encode()
            self.send_response(found.status)
            if found.status == 302:
                self.send_header("Location", found.text)
            self.send_header("Content-Type", f"{found.kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return VendorHandler
