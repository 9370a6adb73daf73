"""The process that pulls a model or a dataset for a page: `python -m app.publication.pulling`.

It reads one line of JSON from its input. It writes each step that it begins, and at the end the number of what it
registered or the error that explains why it registered nothing, each pickled so that the page can translate it. It ends
when its input does. The token is only in that line.
"""

import json
import os
import pickle
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from app.core.config import load_settings
from app.core.errors import AppError, Unavailable
from app.core.extensions import open_engine, reading, transact
from app.core.module_process import end_by_itself, end_with_input
from app.publication.bundle import MODEL
from app.publication.hub import HubUnreachable
from app.publication.pull import Tell, pull_dataset, pull_model
from app.publication.spec import DatasetPullSpec, ModelPullSpec
from app.registry.checkpoint_check import check_checkpoint


def main() -> None:
    """See the module."""
    answers = os.fdopen(os.dup(1), "wb")
    # Other output, such as logs or that of a C library, is no part of the answers.
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    said: Mapping[str, Any] = json.loads(sys.stdin.buffer.readline())
    end_with_input()

    def tell(what: object) -> None:
        answers.write(pickle.dumps(what))
        answers.flush()

    answer: int | AppError
    try:
        answer = _pulled(said, tell)
    except HubUnreachable as error:
        answer = Unavailable(error.text)  # the web process does not load the hub's library
    except AppError as error:
        answer = error
    end_by_itself()
    tell(answer)


def _pulled(said: Mapping[str, Any], tell: Tell) -> int:
    settings, spec = load_settings(said["settings"]), said["spec"]
    engine = open_engine(said["database"])
    if said["kind"] == MODEL:
        return pull_model(transact(engine), settings, ModelPullSpec.of_json(spec), look=check_checkpoint, tell=tell)
    database = partial(reading, engine)
    return pull_dataset(transact(engine), database, settings, DatasetPullSpec.of_json(spec), tell=tell)


if __name__ == "__main__":
    main()
