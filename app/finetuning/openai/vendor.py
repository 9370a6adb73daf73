"""OpenAI's part in the steps of a job."""

from functools import partial

from app.finetuning.openai.client import OpenAIClient
from app.finetuning.openai.fields import body_of, epochs_of
from app.finetuning.openai.rows import chat_rows
from app.finetuning.vendors.runner import Vendor, follow_vendor

OPENAI = Vendor(
    client=OpenAIClient,
    going_on=("validating_files", "queued", "running"),
    rows=chat_rows,
    epochs=epochs_of,
    body=body_of,
)
follow = partial(follow_vendor, OPENAI)
