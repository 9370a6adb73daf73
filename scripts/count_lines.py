"""Counts the lines of Python, HTML and JavaScript that are kept here, by package: `python -m scripts.count_lines`.

What is somebody else's (`vendor`) is left out. The last lines are the sums that docs/architecture.md speaks of.
"""

from collections import Counter

from app.core.config import ROOT

FOLDERS = ("app", "templates", "static", "workers")
KINDS = (".py", ".html", ".js")
ADMIN = ("app/cli", "app/web/admin", "templates/admin")


def lines_by_folder() -> Counter[str]:
    """The lines of each folder, without those of the folders in it."""
    found = Counter[str]()
    for path in (path for folder in FOLDERS for path in (ROOT / folder).rglob("*")):
        if path.suffix in KINDS and "vendor" not in path.parts:
            found[path.parent.relative_to(ROOT).as_posix()] += len(path.read_text(encoding="utf-8").splitlines())
    return found


def main() -> None:
    found = lines_by_folder()
    for folder, lines in sorted(found.items()):
        print(f"{lines:7}  {folder}")
    admin = sum(lines for folder, lines in found.items() if folder.startswith(ADMIN))
    print(f"{admin:7}  {', '.join(ADMIN)}")
    print(f"{found.total():7}  all of {', '.join(FOLDERS)}")


if __name__ == "__main__":
    main()
