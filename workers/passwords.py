"""Makes the passwords of docker-compose.yml at its first start: `python -m workers.passwords FOLDER`.

Each reader has a folder, a volume of its own, with only what it needs: the two servers `database/password` and
`broker/password.conf`, Parlor `parlor/DATABASE_URL` and `parlor/REDIS_URL`, which it reads as settings
(`SETTINGS_FOLDER`). Existing files are not changed, so the passwords last as long as the volumes.
"""

import os
import secrets
import sys
from pathlib import Path

from app.core.errors import Invalid, Verbatim
from app.core.files import temporary_beside

OWN, SHARED = 0o600, 0o644  # the servers run as other users; nobody else has their volumes
FILES = {
    "database": {"database/password": ("{password}", SHARED)},
    "broker": {"broker/password.conf": ("requirepass {password}\n", SHARED)},
}
SETTINGS = {
    "database": ("parlor/DATABASE_URL", "postgresql://parlor:{password}@database:5432/parlor"),
    "broker": ("parlor/REDIS_URL", "redis://:{password}@broker:6379/0"),
}


def make(folder: Path) -> list[Path]:
    """Write the files of each server that has none yet, and return them.

    Raises Invalid where only some of a server's files exist: a new password would not match the server's. Raises
    OSError.
    """
    made = []
    for server, files in FILES.items():
        name, url = SETTINGS[server]
        wanted = {**files, name: (url, OWN)}
        there = [each for each in wanted if (folder / each).exists()]
        if len(there) == len(wanted):
            continue
        if there:
            missing = ", ".join(sorted(set(wanted) - set(there)))
            raise Invalid(
                None,
                expected=f"all files of the {server}'s password or none",
                got=Verbatim(f"no {missing}"),
                remedy="docs/operations.md says how to set a new password",
                subject=folder,
            )
        password = secrets.token_hex(24)
        for each, (text, mode) in wanted.items():
            made.append(_write_secret(folder / each, text.format(password=password), mode))
    return made


def _write_secret(path: Path, text: str, mode: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        temporary_beside(path) as draft,
        os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file,
    ):
        os.fchmod(file.fileno(), mode)  # whatever the umask is
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return path


def main() -> int:
    """0: all passwords are there; 2: they cannot be made, and one line on stderr says why."""
    try:
        [folder] = sys.argv[1:]
        for path in make(Path(folder)):
            print(f"made {path}")
    except ValueError:
        print("error: expected the folder of the passwords, and nothing else", file=sys.stderr)
        return 2
    except (Invalid, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
