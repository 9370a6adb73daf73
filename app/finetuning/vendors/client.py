"""The API calls for a training at a vendor, under the same rules as players of API models.

The key comes from the environment and never appears in a message; the host must be one that API_HOSTS allows;
link-local and cloud metadata addresses are never connected to; no redirect is followed; the size of an answer is
limited; and only what the call needs is sent. No call is retried here: whoever checks a job checks again later.
"""

import re
import ssl
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote

import httpx2
from openai import APIConnectionError, APIStatusError, OpenAI, OpenAIError

from app.core.errors import AppError
from app.finetuning.job import OVER
from app.finetuning.vendors.answers import (
    TOKEN,
    VendorAnswer,
    VendorEvent,
    VendorFile,
    VendorJob,
    read_answer,
    read_json,
)
from app.games.base import JSON
from app.players.api.addresses import check_host, host_of
from app.players.api.client import CONNECT_SECONDS, MOST_ANSWER, ordered_pause
from app.players.api.keys import read_key
from app.players.api.options import ApiOptions
from app.players.api.redaction import without_key
from app.players.api.server_errors import DENIED_CODES
from training.addresses import ForbiddenAddress, checked_addresses, proxy_of

PURPOSE = "fine-tune"
SECONDS = 60.0  # per call
_PAGE = 100  # jobs, files or events in an answer
_MOST_LISTED = 10_000  # of them that are searched
_LONGEST_LINE = 400  # characters
_TRY_AGAIN = {408, 409, 425, 429}  # and all from 500 on
_ERROR_NUMBER = re.compile(r"^\[Errno -?\d+\] ")  # before the system's message
_NOTHING_TO_CANCEL = (400, 409)  # or it is already being cancelled
_SENT = (
    "host", "authorization", "accept", "accept-encoding", "connection", "content-type", "content-length",
    "transfer-encoding", "user-agent",
)  # fmt: skip

A = TypeVar("A", bound=VendorAnswer)


class VendorRefused(AppError):
    """The vendor refuses for good, so a retry is useless. `status` is that of its answer."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.answer_status = status


class VendorAway(AppError):
    """No answer came, or one that asks to retry later: whether the call was carried out is unknown.

    `wait`: the seconds that the vendor asks to wait, if it does; `answer_status`: that of its answer, if there was one.
    """

    def __init__(self, text: str, wait: float | None = None, status: int | None = None) -> None:
        super().__init__(text)
        self.wait = wait
        self.answer_status = status


class VendorClient:
    """A vendor's files and fine-tuning jobs, reached as the base model's registry row says.

    A vendor's subclass sets the paths and the answer classes. Every call raises VendorRefused or VendorAway with one
    line without the key.
    """

    pages: ClassVar[bool] = True  # whether lists come page by page
    upload_path: ClassVar[str]
    jobs_path: ClassVar[str]
    file_kind: ClassVar[type[VendorFile]] = VendorFile
    job_kind: ClassVar[type[VendorJob]] = VendorJob
    headers: ClassVar[tuple[str, ...]] = ()  # additional headers sent

    def __init__(self, options: ApiOptions, hosts: Collection[str]) -> None:
        """Raises Invalid for a host that may not be called, and KeyRefused where there is no key."""
        check_host(options.base_url, tuple(hosts))
        self._key = read_key(options)
        self._where = host_of(options.base_url)
        organisation = self._organisation(options)
        self.account = f"the key in {options.key_env}"  # identifies a job's owner to the vendor
        if organisation:
            self.account += f" and the organisation {organisation}"
        timeout = httpx2.Timeout(SECONDS, connect=CONNECT_SECONDS)
        transport = _GuardedTransport(proxy_of(options.base_url), self._key, (*_SENT, *self.headers))
        self._http = httpx2.Client(transport=transport, timeout=timeout, follow_redirects=False)
        self._sdk = OpenAI(
            api_key=self._key,
            base_url=options.base_url,
            organization=organisation,
            timeout=timeout,
            max_retries=0,
            http_client=self._http,
        )

    @staticmethod
    def _organisation(options: ApiOptions) -> str | None:  # noqa: ARG004 - for vendors that have some
        return None

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    # ---- Files ---------------------------------------------------------------------

    def upload(self, path: Path, name: str) -> str:
        """Upload a file of rows under a name; the file's id at the vendor."""
        with path.open("rb") as file:
            sent = {"body": self._about(name), "files": {"file": (name, file)}}
            form = {"headers": {"Content-Type": "multipart/form-data"}}
            return self._request_answer(self.file_kind, "post", self.upload_path, **sent, options=form).id

    def _about(self, name: str) -> JSON:  # noqa: ARG002 - for vendors that want to know it
        """The form fields sent with an uploaded file of that name."""
        return {"purpose": PURPOSE}

    def find_files(self, name: str) -> list[str]:
        """The ids of the uploaded files of that name: several if an upload that had arrived was repeated."""
        listed = self._list_pages(self.file_kind, "/files", purpose=PURPOSE)
        return [each.id for each in listed if each.filename == name]

    def has_file(self, file_id: str) -> bool:
        """Whether the vendor has the file, neither expired nor found faulty."""
        try:
            found = self._file(file_id)
        except VendorRefused:
            return False
        return found.status != "error" and (found.expires_at is None or found.expires_at > time.time())

    def _file(self, file_id: str) -> VendorFile:
        return self._request_answer(self.file_kind, "get", f"/files/{_quoted_path_part(file_id)}")

    def delete_file(self, file_id: str) -> None:
        """Delete an uploaded file."""
        self._content_of("delete", f"/files/{_quoted_path_part(file_id)}")

    # ---- Jobs ----------------------------------------------------------------------

    def create(self, body: JSON) -> VendorJob:
        """Create a job. It is sent once: after VendorAway, `find_jobs` tells whether the job exists."""
        return self._request_answer(self.job_kind, "post", self.jobs_path, body=body)

    def find_jobs(self, token: str, file_id: str | None, since: float) -> list[VendorJob]:
        """The jobs that were created with that token, the oldest first; `since`: the earliest possible creation.

        Jobs for which the vendor returns no token are identified by their file.
        """
        found = []
        for job in self._list_pages(self.job_kind, self.jobs_path):
            if job.created_at is not None and job.created_at < since:
                break  # the latest come first
            marked = (job.metadata or {}).get(TOKEN)
            if marked == token or (marked is None and file_id is not None and job.training_file == file_id):
                found.append(job)
        return found[::-1]

    def retrieve(self, job_id: str) -> VendorJob:
        """The current state of a job."""
        return self._ask_about(job_id, "get")

    def cancel(self, job_id: str) -> VendorJob:
        """Ask the vendor to cancel a job; the job afterwards, which may have ended in another way.

        A job that is over is no error, whatever the vendor has answered.
        """
        try:
            return self._ask_about(job_id, "post", "/cancel")
        except (VendorRefused, VendorAway) as failed:
            job = self.retrieve(job_id)
            if job.status in OVER or failed.answer_status in _NOTHING_TO_CANCEL:
                return job
            raise

    def events(self, job_id: str, seen: Collection[str]) -> list[VendorEvent]:
        """The events of a job that are not in `seen`, the oldest first."""
        found = []
        for event in self._list_pages(VendorEvent, self._of(job_id, "/events")):
            if event.id in seen:
                break  # the latest come first
            found.append(event)
        return found[::-1]

    # ---- What all calls share --------------------------------------------------------

    def _list_pages(self, kind: type[A], path: str, **query: str) -> Iterator[A]:
        """The listed items that have an id, page by page."""
        place: dict[str, str] = {}
        for _ in range(_MOST_LISTED // _PAGE):
            asked = {"params": {**query, "limit": _PAGE, **place}} if self.pages else {}
            page = self._content_of("get", path, options=asked)
            items = page.get("data") if isinstance(page, dict) else None
            if not isinstance(items, list):
                raise VendorAway(self._line("expected a list, got something else"))
            found = []
            for item in items:
                with suppress(ValueError):
                    found.append(read_answer(kind, item))
            yield from found
            if page.get("has_more") is not True or not found or place.get("after") == found[-1].id:
                return
            place = {"after": found[-1].id}

    def _request_answer(self, kind: type[A], verb: str, path: str, **sent: Any) -> A:
        content = self._content_of(verb, path, **sent)
        try:
            return read_answer(kind, content)
        except ValueError as error:
            raise VendorAway(self._line(str(error))) from None

    def _of(self, job_id: str, about: str = "") -> str:
        """The path of a job, or of something under it."""
        return f"{self.jobs_path}/{_quoted_path_part(job_id)}{about}"

    def _ask_about(self, job_id: str, verb: str, about: str = "") -> VendorJob:
        job = self._request_answer(self.job_kind, verb, self._of(job_id, about))
        if job.id != job_id:
            raise VendorAway(self._line(f"expected the job {job_id}, got {job.id}"))
        return job

    def _content_of(self, verb: str, path: str, **sent: Any) -> Any:
        """The JSON that a call returns: the SDK's own classes accept values of the wrong type, and break later."""
        try:
            response: httpx2.Response = getattr(self._sdk, verb)(path, cast_to=httpx2.Response, **sent)
            return read_json(response.content)
        except APIStatusError as error:
            raise self._error_of_status(error) from None
        except APIConnectionError as error:
            cause = error.__cause__
            if isinstance(cause, _Forbidden):
                raise VendorRefused(self._line(str(cause)), 0) from None
            raise VendorAway(self._line(_broken_connection(cause or error))) from None
        except (OpenAIError, ValueError) as error:  # ValueError: invalid JSON
            said = "something that is not JSON" if isinstance(error, ValueError) else type(error).__name__
            raise VendorAway(self._line(f"expected an answer, got {said}")) from None

    def _error_of_status(self, error: APIStatusError) -> AppError:
        status, headers = error.status_code, error.response.headers
        if 300 <= status < 400:
            return VendorRefused(self._line(f"expected an answer, got a redirect (HTTP {status}), none is followed"), 0)
        body = error.body if isinstance(error.body, dict) else {}
        said = body.get("message") or error.response.text
        line = self._line(f"expected an answer, got HTTP {status}: {said}")
        denied = isinstance(error.code, str) and error.code in DENIED_CODES
        again = (status in _TRY_AGAIN or status >= 500) and not denied
        return VendorAway(line, ordered_pause(headers, time.time()), status) if again else VendorRefused(line, status)

    def _line(self, text: str) -> str:
        """One line of printable characters, short and without the key."""
        return clean_line(f"{self._where}: {text}", self._key)

    def clean(self, text: str) -> str:
        """A text from the vendor, in one line without the key."""
        return clean_line(text, self._key)


def _quoted_path_part(name: str) -> str:
    """A vendor's name for something, quoted as a part of a path."""
    return quote(name, safe="")


def _broken_connection(error: BaseException) -> str:
    """What was expected of a connection, and what came, in words: the library's messages name its own classes."""
    if isinstance(error, httpx2.ConnectTimeout):
        return f"expected a connection within {CONNECT_SECONDS:g} s, got none"
    if isinstance(error, httpx2.TimeoutException):
        return f"expected an answer within {SECONDS:g} s, got none"
    said = _ERROR_NUMBER.sub("", str(error)) or "a connection that was lost"
    return f"expected {'a connection' if isinstance(error, httpx2.ConnectError) else 'an answer'}, got {said}"


def clean_line(text: str, key: str) -> str:
    """A text as one short line of printable characters, without the key."""
    line = "".join(character if character.isprintable() else " " for character in text)
    line = without_key(" ".join(line.split()), key)
    return line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 1] + "…"


@cache
def _host_certificates() -> ssl.SSLContext:
    """Read once per process: each check of a job makes a client, and this is its slowest part."""
    return httpx2.create_ssl_context(trust_env=False)


class _Forbidden(httpx2.ConnectError):
    """A connection to an address that cannot host a model was about to be made."""


class _GuardedTransport(httpx2.BaseTransport):
    """Sends only the needed headers, only to allowed addresses, and limits the size of answers."""

    def __init__(self, proxy: str | None, key: str, sent: Collection[str]) -> None:
        self._key = key
        self._sent_headers = sent
        self._proxied = proxy is not None  # the operator's proxy, which resolves names itself
        self._inner = httpx2.HTTPTransport(verify=_host_certificates(), proxy=proxy, trust_env=False)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises what httpx2 raises, and _Forbidden."""
        headers = {name: value for name, value in request.headers.items() if name in self._sent_headers}
        headers["authorization"] = f"Bearer {self._key}"  # whatever the environment would have sent
        headers["accept-encoding"] = "identity"  # so the counted bytes are those read
        # A separate request: the SDK reads from the original's headers how to answer.
        request = httpx2.Request(
            request.method, request.url, headers=headers, stream=request.stream, extensions=request.extensions
        )
        response = self._inner.handle_request(request) if self._proxied else self._send_to_checked_address(request)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            response.close()
            raise httpx2.ReadError("one that is packed, which was not asked for")
        stream = response.stream
        if not isinstance(stream, httpx2.SyncByteStream):
            raise httpx2.ReadError("a stream of something else than bytes")
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_LimitedStream(stream),
            extensions=response.extensions,
        )

    def _send_to_checked_address(self, request: httpx2.Request) -> httpx2.Response:
        """Send to the host's first checked address that accepts; certificates are verified against the host."""
        url, host = request.url, request.url.host
        failed: httpx2.ConnectError | None = None
        for address in _addresses(host, url.port or (443 if url.scheme == "https" else 80)):
            request.url = url.copy_with(host=address)
            request.extensions = {**request.extensions, "sni_hostname": host}
            try:
                return self._inner.handle_request(request)
            except httpx2.ConnectError as error:
                failed = error
        raise failed or httpx2.ConnectError(f"expected an address of {host}, got none")

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()


class _LimitedStream(httpx2.SyncByteStream):
    """An answer's bytes, up to MOST_ANSWER."""

    def __init__(self, inner: httpx2.SyncByteStream) -> None:
        self._inner = inner

    def __iter__(self) -> Iterator[bytes]:
        length = 0
        for piece in self._inner:
            length += len(piece)
            if length > MOST_ANSWER:
                raise httpx2.ReadError(f"expected an answer of at most {MOST_ANSWER // 1_000_000} MB, got a longer one")
            yield piece

    def close(self) -> None:
        """Close the connection."""
        self._inner.close()


def _addresses(host: str, port: int) -> list[str]:
    """The addresses of a host, all checked. Raises ConnectError and _Forbidden."""
    try:
        return checked_addresses(host, port)
    except ForbiddenAddress as error:
        raise _Forbidden(str(error)) from None
    except OSError as error:
        raise httpx2.ConnectError(str(error)) from None
