"""The process that sends a push to the hub, so that a cancelled one stops at once: `python -m app.publication.sending`.

It reads one line of JSON from its input, and writes one: the commit, or why there is none. It ends when its input does,
which is when the process that started it is gone. The token is only in that line, and in no command or file.
"""

import json
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.core.errors import AppError
from app.core.module_process import wait_for_end_of_input
from app.publication.bundle import Bundle, BundleManifest
from app.publication.hub import Hub
from app.publication.places import PublicationPlace


def main() -> None:
    """See the module."""
    said: Mapping[str, Any] = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()

    files: dict[str, Path | bytes] = {name: text.encode() for name, text in said["texts"].items()}
    files |= {name: Path(path) for name, path in said["paths"].items()}
    manifest = BundleManifest.model_validate(said["manifest"])
    try:
        hub = Hub(said["endpoint"], said["token"], manifest.kind)
        place = PublicationPlace(said["repository"], said["revision"])
        revision = hub.push(place, Bundle(manifest, files, said["size"]), private=said["private"])
        answer = {"revision": revision}
    except AppError as error:
        answer = {"error": error.message}
    except Exception as error:  # whatever the library raises for a response that no hub gives
        answer = {
            "error": f"the hub's library failed ({type(error).__name__}); look whether {said['endpoint']} is a hub"
        }
    print(json.dumps(answer), flush=True)


def _end_with_input() -> None:
    wait_for_end_of_input()
    os._exit(1)


if __name__ == "__main__":
    main()
