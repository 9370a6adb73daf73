"""A training at OpenAI: the dataset is uploaded, the vendor trains, and the tuned model is an API model like its base.

`app/finetuning/openai/` has the fields and the calls, `app/finetuning/vendors/` the steps taken by a worker.
"""

from typing import ClassVar

from app.core.errors import Invalid, Phrase
from app.finetuning.openai.fields import OpenAIFields, epochs_of
from app.finetuning.openai.rows import chat_rows
from app.finetuning.tinker.address import service_of
from app.finetuning.together.address import is_there
from app.finetuning.vendors.backend import VendorBackend
from app.models import LanguageModel


class OpenAIBackend(VendorBackend):
    """Trains at OpenAI, or another server with its fine-tuning API, with the address and the key of the base."""

    title = "At OpenAI"
    summary = (
        "The dataset is uploaded to the server of the base, an API model, and trained there. This costs money. OpenAI"
        " itself takes no new customers for it, and no jobs from 6 January 2027 on."
    )
    vendor = "OpenAI"
    bases = Phrase("API model")
    runner = "app.finetuning.openai.vendor:follow"
    configs: ClassVar = {"sft": OpenAIFields}  # which OpenAI calls supervised
    rows = staticmethod(chat_rows)
    epochs = staticmethod(epochs_of)

    def check_base(self, base: LanguageModel, field: str = "base") -> None:
        """As for all vendors, and Invalid for a model at another vendor."""
        super().check_base(base, field)
        vendor = "Tinker" if service_of(base) is not None else "Together" if is_there(base) else None
        if vendor is not None:
            raise Invalid(
                field,
                expected=Phrase("an API model at OpenAI"),
                got=Phrase("%(name)s, which is at %(vendor)s", name=base.name, vendor=vendor),
                remedy=Phrase("set backend to %(backend)s", backend=vendor.lower()),
            )


BACKEND = OpenAIBackend()
