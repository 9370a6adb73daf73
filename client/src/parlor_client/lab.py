"""A Parlor for use by programs: jobs, matches, exports, models, datasets, studies."""

import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar, Unpack
from urllib.parse import quote

from parlor_client._kinds import JobKinds
from parlor_client._types import DatasetRow, Match, MatchFilter, ModelRow, PersonRow, StudyRow
from parlor_client.connection import Connection
from parlor_client.downloads import downloaded
from parlor_client.errors import Refused
from parlor_client.jobs import OtherJobs
from parlor_client.tables import Table, exported, pages

_PATIENCE = 120.0  # seconds: a rate-limited token may go on after 60
Export = Literal["matches", "moves", "events", "generations", "codebook"]
Listed = TypeVar("Listed", bound=Mapping[str, Any])


class Lab(JobKinds):
    """A Parlor at an address, with a token that determines what is allowed there.

    url, token: by default PARLOR_URL and PARLOR_TOKEN. patience: seconds for which a request is repeated while Parlor
    is busy or away. Raises NotReachable for an invalid address, Refused without a token. The first request asks for the
    server's version: raises ServerTooOld.
    """

    def __init__(self, url: str | None = None, token: str | None = None, *, patience: float = _PATIENCE) -> None:
        url = os.environ.get("PARLOR_URL", "") if url is None else url
        token = os.environ.get("PARLOR_TOKEN", "") if token is None else token
        super().__init__(Connection(url, token, patience))
        self.models = Registry[ModelRow](self._connection, "models", "model_id")
        self.datasets = Registry[DatasetRow](self._connection, "datasets", "dataset_id")
        self.studies = Studies(self._connection, "studies", "study_id")

    def __repr__(self) -> str:
        return f"<Lab at {self._connection.url}>"

    def __enter__(self) -> "Lab":
        return self

    def __exit__(self, *_error: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    @property
    def version(self) -> str:
        """The version of the server. Raises NotReachable, ServerTooOld."""
        return self._connection.description().version

    def jobs(self, kind: str) -> OtherJobs:
        """The jobs of a kind that this Parlor has, by its plural, including kinds that the client does not know.

        Raises KeyError for any other.
        """
        known = self._connection.description().job_columns
        if kind not in known:
            raise KeyError(f"expected one of {', '.join(known)}, got {kind}")
        return OtherJobs(self._connection, kind)

    def matches(self, **chosen: Unpack[MatchFilter]) -> "Matches":
        """The matches that a filter selects, in order of arrival."""
        return Matches(self._connection, chosen)

    def match(self, match_id: str) -> dict[str, Any]:
        """One match with the events of its log. Raises Refused, NotReachable."""
        found: dict[str, Any] = self._connection.get(f"/matches/{quote(match_id, safe='')}")
        return found

    def export(
        self,
        name: Export,
        path: Path | str,
        *,
        guard: bool = False,
        bom: bool = False,
        **chosen: Unpack[MatchFilter],
    ) -> Path:
        """Write what was played as CSV, byte for byte what `flask export` writes; returns the path.

        guard: keep spreadsheets from running text and rounding seeds. bom: begin with a byte order mark, for Excel. The
        file appears only once complete, and replaces any existing one. Raises Refused, NotReachable, OSError.
        """
        flags = {"guard": "1" if guard else None, "bom": "1" if bom else None}
        return downloaded(self._connection, f"/exports/{name}.csv", {**flags, **chosen}, Path(path))


class Matches(Table[Match]):
    """The matches that a filter selects, in order of arrival, and what happened in them."""

    def __init__(self, connection: Connection, chosen: MatchFilter) -> None:
        self._connection, self._chosen = connection, chosen
        super().__init__(partial(pages, connection, "/matches", chosen))

    def moves(self) -> Table[dict[str, Any]]:
        """Their accepted moves, with the columns of moves.csv."""
        return self._exported("moves")

    def events(self) -> Table[dict[str, Any]]:
        """Their logs, with the columns of events.csv."""
        return self._exported("events")

    def generations(self) -> Table[dict[str, Any]]:
        """The calls of models in them, with the columns of generations.csv."""
        return self._exported("generations")

    def _exported(self, name: str) -> Table[dict[str, Any]]:
        return Table(partial(exported, self._connection, name, self._chosen))


class Registry(Table[Listed], Generic[Listed]):
    """Models, datasets or studies: `lab.models["mine"]` and `lab.models[3]` each give one with everything known about
    it.
    """

    def __init__(self, connection: Connection, name: str, id_column: str) -> None:
        self._connection, self._name, self._id_column = connection, name, id_column
        super().__init__(self.list)

    def __getitem__(self, which: int | str) -> dict[str, Any]:
        """One by number or name; if several have the name, the latest.

        Raises Refused with the code `not_found` if there is none.
        """
        number = which if isinstance(which, int) else self._number_of(which)
        found: dict[str, Any] = self._connection.get(f"/{self._name}/{number:d}")
        return found

    def list(self, *, name: str | None = None, sort: str | None = None) -> Iterator[Listed]:
        """All of them, or those with a given name. sort: a column of the list, prefixed with - for descending order."""
        return pages(self._connection, f"/{self._name}", {"name": name, "sort": sort})

    def _number_of(self, name: str) -> int:
        numbers = [row[self._id_column] for row in self.list(name=name)]
        if not numbers:
            message = f"{self._name}: expected the name of one that exists, got {name}"
            raise Refused(404, {"code": "not_found", "message": message, "field": self._name, "got": name})
        return int(max(numbers))


class Studies(Registry[StudyRow]):
    """Studies, the people of their waves, and what those people did."""

    def people(self, wave: int) -> Table[PersonRow]:
        """The people of a wave, by its number; their ids need a token with the scope `people`."""
        return Table(partial(pages, self._connection, f"/waves/{wave:d}/people", {}))

    def ids(self, wave: int) -> Table[dict[str, Any]]:
        """The recruiter's ids of a wave's people and visits: `external_id` and `submission_id`, such as the
        PROLIFIC_PID and the SESSION_ID of a link, by `participant`.

        Requires a token with the scope `people`; the wave's log records who fetched them.
        """
        return Table(lambda: iter(self._connection.post(f"/waves/{wave:d}/ids")["items"]))

    def export(
        self,
        which: int | str,
        path: Path | str,
        *,
        wave: str | None = None,
        public: bool = False,
        guard: bool = False,
        bom: bool = False,
    ) -> Path:
        """Write what people did, byte for byte what `flask study export-data` writes; returns the path.

        Requires a token with the scope `people`. wave: only the wave of this name. public: without what people wrote in
        their own words. guard, bom: as in `lab.export`. The file appears only once complete, and replaces any existing
        one. Raises Refused, NotReachable, OSError.
        """
        number = which if isinstance(which, int) else self._number_of(which)
        flags = {"public": public, "guard": guard, "bom": bom}
        params = {"wave": wave, **{name: "1" if flag else None for name, flag in flags.items()}}
        return downloaded(self._connection, f"/studies/{number:d}/data.zip", params, Path(path))
