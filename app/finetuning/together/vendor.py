"""Together's part in the steps of a job."""

from functools import partial

from app.finetuning.backends.together import BACKEND
from app.finetuning.together.answers import GOING_ON
from app.finetuning.together.client import TogetherClient
from app.finetuning.together.fields import body_of
from app.finetuning.vendors.runner import Vendor, follow_vendor

TOGETHER = Vendor(backend=BACKEND, client=TogetherClient, going_on=GOING_ON, body=body_of)
follow = partial(follow_vendor, TOGETHER)
