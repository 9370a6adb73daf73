"""The API calls for a training at OpenAI, or at another server with its files and fine-tuning API."""

import os

from app.finetuning.vendors.answers import VendorJob
from app.finetuning.vendors.client import VendorClient, VendorRefused
from app.games.base import JSON
from app.players.api.options import ApiOptions

_CLOSING, _NOT_PERMITTED = "api.openai.com", 403  # the host ending trainings, and its answer to late requests
_CLOSED = (
    "OpenAI has taken no new customers for trainings since 7 May 2026, and creates none from 6 January 2027 on:"
    " train an open model at Tinker (backend: tinker), or here"
)


class OpenAIClient(VendorClient):
    """See VendorClient."""

    upload_path = "/files"
    jobs_path = "/fine_tuning/jobs"
    headers = ("openai-organization", "openai-project")

    @staticmethod
    def _organisation(options: ApiOptions) -> str | None:
        return options.organisation or os.environ.get("OPENAI_ORG_ID")

    def create(self, body: JSON) -> VendorJob:
        """As for all vendors; if OpenAI refuses because it is closed to new customers, the error says so."""
        try:
            return super().create(body)
        except VendorRefused as refused:
            if refused.answer_status == _NOT_PERMITTED and self._where == _CLOSING:
                raise VendorRefused(f"{refused}; {_CLOSED}", _NOT_PERMITTED) from None
            raise
