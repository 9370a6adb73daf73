"""A training of open models at Together, on supervised rows or on preferences.

`app/finetuning/together/` has what is specific to Together, `app/finetuning/vendors/` the steps taken by a worker.
"""

from typing import ClassVar

from app.core.errors import Invalid, Phrase, either
from app.finetuning.together.address import HOSTS, is_there
from app.finetuning.together.fields import CONFIGS, epochs_of
from app.finetuning.together.rows import VENDOR, vendor_rows_of
from app.finetuning.vendors.backend import VendorBackend
from app.models import LanguageModel


class TogetherBackend(VendorBackend):
    """Trains an open model at Together, with the key of the base."""

    title = "At Together"
    summary = (
        "The dataset is uploaded to Together, which trains an open model on conversations or on preferences. This costs"
        " money. It was written from Together's documentation and not tried there."
    )
    vendor = VENDOR
    bases = Phrase("API model at Together")
    runner = "app.finetuning.together.vendor:follow"
    configs: ClassVar = CONFIGS
    rows = staticmethod(vendor_rows_of)
    epochs = staticmethod(epochs_of)

    def check_base(self, base: LanguageModel, field: str = "base") -> None:
        """As for all vendors, and Invalid for a model that is elsewhere."""
        super().check_base(base, field)
        if not is_there(base):
            raise Invalid(
                field,
                expected=Phrase("an API model at Together (%(hosts)s)", hosts=either(HOSTS)),
                got=Phrase("%(name)s, which is elsewhere", name=base.name),
                remedy=Phrase("add one with `flask model add-api`; docs/training.md says how"),
            )


BACKEND = TogetherBackend()
