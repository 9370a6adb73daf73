"""Files read in a separate process for the web process: YAML takes long to read, and people who play meanwhile must not
wait. A module run as such a process takes JSON and prints one JSON object: what was read, or why it was `refused`. YAML
is also written by one.
"""

import json
from typing import Any

from app.core.errors import AppError, Phrase, Unavailable
from app.core.module_process import BrokeOffError, run_module

_SECONDS = 60  # time limit for files


class RefusedFiles(AppError):
    """A file, or one that it names, cannot be read; the text says where and why."""

    code = "invalid"
    status = 400


def read_in_process(module: str, *arguments: str, given: Any) -> Any:
    """The answer of a module that is started with these arguments. Raises RefusedFiles, and Unavailable if it
    crashed.
    """
    try:
        done = run_module(module, *arguments, given=given, seconds=_SECONDS)
    except TimeoutError:
        raise RefusedFiles(Phrase("The files took longer than %(most)s seconds to read.", most=_SECONDS)) from None
    except BrokeOffError as error:
        raise Unavailable(Phrase("The files could not be read: %(why)s", why=str(error))) from None
    answer = json.loads(done)
    if "refused" in answer:
        raise RefusedFiles(answer["refused"])
    return answer
