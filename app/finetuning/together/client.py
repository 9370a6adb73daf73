"""The API calls for a training at Together, following its reference. They are untested at the vendor.

Rows go to the documented address for files of any client, `/files/upload`: in one request, to the host that was allowed
and agreed to. The vendor's SDK instead has its server redirect uploads to a storage host.
"""

from collections.abc import Collection, Iterator
from typing import TypeVar

from app.finetuning.together.answers import STEP, TogetherEvent, TogetherFile, TogetherJob, step_events
from app.finetuning.vendors.answers import VendorAnswer, VendorEvent, VendorJob
from app.finetuning.vendors.client import PURPOSE, VendorAway, VendorClient, VendorRefused
from app.games.base import JSON

A = TypeVar("A", bound=VendorAnswer)


class TogetherClient(VendorClient):
    """See VendorClient."""

    pages = False
    upload_path = "/files/upload"
    jobs_path = "/fine-tunes"
    file_kind = TogetherFile
    job_kind = TogetherJob

    def _about(self, name: str) -> JSON:
        return {"purpose": PURPOSE, "file_name": name, "file_type": "jsonl"}

    def create(self, body: JSON) -> VendorJob:
        """As for all vendors, but only once the file is processed: before that, the vendor treats it as empty."""
        file = self._file(body["training_file"])
        if isinstance(file, TogetherFile) and file.processed is False:
            raise VendorAway(self._line(f"expected {file.id} to be processed, got one that is not yet"))
        return super().create(body)

    def events(self, job_id: str, seen: Collection[str]) -> list[VendorEvent]:
        """As for all vendors. Steps and their loss are listed apart from the other events, and not by every server."""
        told = list(self._list_pages(TogetherEvent, self._of(job_id, "/events")))
        steps = list(self._fetch_step_events(job_id, seen, max((each.total_steps or 0 for each in told), default=0)))
        told.sort(key=lambda each: each.created_at or 0.0)
        return [*{each.id: each for each in (*told, *steps) if each.id not in seen}.values()]

    def _fetch_step_events(self, job_id: str, seen: Collection[str], total: int) -> Iterator[VendorEvent]:
        if not total:
            return
        numbers = [each.removeprefix(STEP) for each in seen if each.startswith(STEP)]
        asked = {"params": {"global_step_from": 1 + max(map(int, numbers), default=-1)}}
        try:
            found = self._content_of("get", self._of(job_id, "/metrics"), options=asked)
        except VendorRefused:
            return
        yield from step_events(found.get("metrics") if isinstance(found, dict) else None, total)

    def _list_pages(self, kind: type[A], path: str, **query: str) -> Iterator[A]:
        """The listed items, the latest first, whatever order they come in."""
        found = list(super()._list_pages(kind, path, **query))
        yield from sorted(found, key=lambda each: getattr(each, "created_at", None) or 0.0, reverse=True)
