"""OpenAI's part in the steps of a job."""

from functools import partial

from app.finetuning.backends.openai import BACKEND
from app.finetuning.openai.client import OpenAIClient
from app.finetuning.openai.fields import body_of
from app.finetuning.vendors.runner import Vendor, follow_vendor

OPENAI = Vendor(
    backend=BACKEND,
    client=OpenAIClient,
    going_on=("validating_files", "queued", "running"),
    body=body_of,
)
follow = partial(follow_vendor, OPENAI)
