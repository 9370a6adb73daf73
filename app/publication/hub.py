"""The hub, by huggingface_hub: send files as one commit, and fetch them. Only workers and commands load it.

Files go over HTTP, which every hub has. With Xet, its own storage beside the hub, the library would send them there
wherever `hf_xet` is installed, contact servers that HF_ENDPOINT does not name, and retry for minutes if there are none.

The token is passed to each call, and is in no message: messages are made here, from the answer's status. What was sent
before a push was killed is not sent again; what was fetched before a pull was killed is not fetched again.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from huggingface_hub import (
    CommitOperationAdd,
    CommitOperationDelete,
    HfApi,
    constants,
    hf_hub_download,
    snapshot_download,
)
from huggingface_hub.errors import (
    EntryNotFoundError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RevisionNotFoundError,
)
from huggingface_hub.utils.tqdm import disable_progress_bars

from app.core.disk import is_full
from app.core.errors import AppError, Conflict, Invalid, NotAllowed, NotFound, Phrase, Verbatim
from app.publication.bundle import MANIFEST, MODEL, Bundle
from app.publication.places import MAIN, PublicationPlace

_MESSAGE = "Published with Parlor"
_NOT_OURS = (".gitattributes",)  # which the hub manages itself


class HubUnreachable(AppError):
    """No answer from the hub, or none that says what to do."""

    code = "unavailable"
    status = 503


class Hub:
    """A hub, for models or for datasets. An empty token is none."""

    def __init__(self, endpoint: str, token: str, kind: str) -> None:
        self._endpoint = endpoint.rstrip("/")
        self._token: str | bool = token or False
        self._kind = "model" if kind == MODEL else "dataset"
        self._api = HfApi(endpoint=self._endpoint, token=self._token)
        disable_progress_bars()
        constants.HF_HUB_DISABLE_XET = True

    def push(self, place: PublicationPlace, bundle: Bundle, *, private: bool) -> str:
        """Send all files as one commit, which deletes all other files of the revision; return the commit's hash.

        The repository is created if it does not exist, `private` or not; an existing one stays as it is. Raises
        AppError.
        """
        with self._refusals(place):
            self._api.create_repo(place.repository, repo_type=self._kind, private=private, exist_ok=True)
            if place.revision != MAIN:
                self._api.create_branch(place.repository, branch=place.revision, repo_type=self._kind, exist_ok=True)
            there = self._api.list_repo_files(place.repository, repo_type=self._kind, revision=place.revision)
            gone = [name for name in there if name not in bundle.files and name not in _NOT_OURS]
            operations: list[CommitOperationAdd | CommitOperationDelete] = [
                CommitOperationDelete(path_in_repo=name) for name in gone
            ]
            for name, content in bundle.files.items():
                operations.append(CommitOperationAdd(name, content if isinstance(content, bytes) else str(content)))
            made = self._api.create_commit(
                place.repository, operations, commit_message=_MESSAGE, repo_type=self._kind, revision=place.revision
            )
        return str(made.oid)

    def commit_of(self, place: PublicationPlace) -> tuple[str, Sequence[str], int]:
        """A revision's commit, its files, and their total size in bytes. Raises AppError."""
        with self._refusals(place):
            info: Any = self._api.repo_info(
                place.repository, repo_type=self._kind, revision=place.revision, files_metadata=True
            )
        files = [each.rfilename for each in info.siblings or ()]
        return str(info.sha), files, sum(each.size or 0 for each in info.siblings or ())

    def manifest(self, place: PublicationPlace, commit: str, folder: Path) -> bytes | None:
        """The manifest of a commit; None where it has none. Raises AppError."""
        with self._refusals(place):
            try:
                path = hf_hub_download(
                    place.repository, MANIFEST, repo_type=self._kind, revision=commit, local_dir=folder,
                    endpoint=self._endpoint, token=self._token,
                )  # fmt: skip
            except EntryNotFoundError as error:
                if isinstance(error, HfHubHTTPError):
                    return None
                raise
        return Path(path).read_bytes()

    def fetch(self, place: PublicationPlace, commit: str, folder: Path, names: Sequence[str]) -> None:
        """Fetch these files of a commit into a folder, except those that are already there. Raises AppError."""
        with self._refusals(place):
            snapshot_download(
                place.repository, repo_type=self._kind, revision=commit, local_dir=folder, allow_patterns=[*names],
                endpoint=self._endpoint, token=self._token,
            )  # fmt: skip

    @contextmanager
    def _refusals(self, place: PublicationPlace) -> Iterator[None]:
        """Turn the library's exceptions into one line."""
        try:
            yield
        except AppError:
            raise
        except HFValidationError as error:
            raise Invalid(
                "to", expected=Phrase("OWNER/NAME of a repository"), got=_first_line_of_error(error)
            ) from None
        except RevisionNotFoundError:
            expected = Phrase("a revision of %(repository)s", repository=Verbatim(place.repository))
            raise NotFound("revision", expected=expected, got=place.revision) from None
        except HfHubHTTPError as error:
            raise self._error_for_status(place, error) from None
        except ValueError as error:  # about the card, as the hub reads it
            raise Invalid(
                "card", expected=Phrase("a card that the hub can read"), got=_first_line_of_error(error)
            ) from None
        except OfflineModeIsEnabled:
            raise HubUnreachable(Phrase("the hub is not asked while HF_HUB_OFFLINE is set")) from None
        except OSError as error:
            raise self._disk(place, error) from None
        except RuntimeError as error:  # a failed upload, with the reason as its cause
            cause = error.__cause__ or error
            raise (
                self._error_for_status(place, cause) if isinstance(cause, HfHubHTTPError) else self._unreachable(cause)
            ) from None
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from None

    def _error_for_status(self, place: PublicationPlace, error: HfHubHTTPError) -> AppError:
        status, where = error.response.status_code, Verbatim(place.repository)
        has_token = bool(self._token)
        if status in (401, 403) or (status == 404 and not has_token):
            got = Phrase("one that is refused (%(status)s)", status=status) if has_token else Phrase("none")
            return NotAllowed(
                Phrase(
                    "HF_TOKEN: expected a token that may use %(repository)s at %(endpoint)s, got %(got)s; set one with"
                    " that right",
                    repository=where, endpoint=Verbatim(self._endpoint), got=got,
                )
            )  # fmt: skip
        if status == 404:
            expected = Phrase("a %(kind)s of the hub that the token may see", kind=self._kind)
            return NotFound("repository", expected=expected, got=where)
        if status in (409, 412):
            expected = Phrase("a revision that nobody else changes meanwhile")
            return Conflict("repository", expected=expected, got=where, remedy=Phrase("try again"))
        said = Phrase("status %(status)s", status=status)
        remedy = Phrase("try again later; what was sent or fetched stays")
        return HubUnreachable(
            Phrase("hub %(endpoint)s: expected an answer, got %(said)s; %(remedy)s",
                   endpoint=Verbatim(self._endpoint), said=said, remedy=remedy)
        )  # fmt: skip

    def _disk(self, place: PublicationPlace, error: OSError) -> AppError:
        cause: BaseException | None = error.__cause__ or error.__context__
        if is_full(error):
            return Conflict(
                None, expected=Phrase("room on the disk"), got=Phrase("none"), remedy=Phrase("make room and try again"),
                subject=Verbatim(place.repository),
            )  # fmt: skip
        if isinstance(cause, HfHubHTTPError):
            return self._error_for_status(place, cause)
        return self._unreachable(error)

    def _unreachable(self, error: BaseException) -> AppError:
        remedy = Phrase("try again later; what was sent or fetched stays")
        return HubUnreachable(
            Phrase("hub %(endpoint)s: expected an answer, got %(said)s; %(remedy)s",
                   endpoint=Verbatim(self._endpoint), said=Verbatim(type(error).__name__), remedy=remedy)
        )  # fmt: skip


def _first_line_of_error(error: BaseException) -> Verbatim:
    return Verbatim(str(error).split("\n", 1)[0][:200])
