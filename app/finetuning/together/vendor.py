"""Together's part in the steps of a job."""

from functools import partial

from app.finetuning.together.answers import GOING_ON
from app.finetuning.together.client import TogetherClient
from app.finetuning.together.fields import body_of, epochs_of
from app.finetuning.together.rows import vendor_rows_of
from app.finetuning.vendors.runner import Vendor, follow_vendor

TOGETHER = Vendor(client=TogetherClient, going_on=GOING_ON, rows=vendor_rows_of, epochs=epochs_of, body=body_of)
follow = partial(follow_vendor, TOGETHER)
