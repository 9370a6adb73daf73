"""How many small faults the tests notice: `python -m bench.mutation`, a measurement that takes hours and is no gate.

Of each package below some lines are drawn by a fixed seed, and of each line one fault that cosmic-ray can make there:
another operator, another number, a loop that is left out. With each fault alone in a copy of a revision run the tests
that come by its line and by few others. Those that they do not notice meet all tests at the end, together, as that
takes far longer: of the tests that fail then it is found which fault alone makes them fail, and the others meet all
tests again without it. What was found is kept in bench/measured/mutation, by revision, so that a run that was
interrupted goes on and two revisions can be compared: `--of REVISION`.
"""

import argparse
import ast
import fcntl
import gzip
import io
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from bench import line_probe

ROOT = Path(__file__).resolve().parent.parent  # not from `app`, which may be elsewhere in an older revision
PACKAGES = ("app/rounds", "app/studies", "app/finetuning", "app/society", "app/analysis")
MEASURED = ROOT / "bench" / "measured" / "mutation"
LINES = 12  # for each package
SEED = 20261126
WHOLE, SOME = ("-n", "6"), ("-n", "2")  # processes: more of them wait less, but take longer to begin
ALONE = (30, 100)  # tests of a fault's line, run against it alone: at first so many, then up to so many more
KINDS = ("unit", "integration", "training", "browser")  # folders of tests, the quickest first
TOGETHER = 40  # failing tests at which a run with several faults ends early
LONGEST = 3600.0  # seconds for the tests; a fault that makes them hang counts as noticed
OPEN = "by no test of its line"  # before all tests were run against it
BY_ITS_OWN, BY_ANOTHER, BY_NONE = "by the tests of its line", "by another test", "by none"
CHOSEN = "MUTATION_TESTS"  # variable: the file that says which test functions to run, and which to skip
FAILED = "MUTATION_FAILED"  # variable: the file for the names of failed ones


@dataclass(frozen=True)
class Fault:
    """A change of one line: the cosmic-ray operator that makes it, and at which of its possible places."""

    path: str
    line: int
    operator: str
    occurrence: int

    def made_in(self, source: str) -> str:
        """The source with the fault applied."""
        changed: str | None = mutate_code(source, get_operator(self.operator)(), self.occurrence)
        assert changed is not None, f"expected a place for {self.operator} in {self.path}"
        return changed


# ---- Drawing -------------------------------------------------------------------


def draw(root: Path) -> list[Fault]:
    """The faults of a tree: LINES lines of each package, and one fault of each line. Equal trees give equal faults."""
    chance, found = random.Random(SEED), []
    for package in PACKAGES:
        by_line: dict[tuple[str, int], list[Fault]] = defaultdict(list)
        for path in sorted((root / package).rglob("*.py")):
            for fault in faults_of(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")):
                by_line[fault.path, fault.line].append(fault)
        lines = chance.sample(sorted(by_line), min(LINES, len(by_line)))
        found += [chance.choice(by_line[line]) for line in lines]
    return found


def faults_of(path: str, source: str) -> Iterator[Fault]:
    """Every fault that can be made in a module's function bodies; a changed annotation would have no effect."""
    within, apart = _places(source)
    nodes = list(ast_nodes(get_ast(source)))
    for name in operator_names():
        operator = get_operator(name)
        if operator.arguments():
            continue
        places = (start for node in nodes for start, _ in operator().mutation_positions(node))
        for occurrence, (line, column) in enumerate(places):
            if line in within and not any(first <= (line, column) < last for first, last in apart):
                yield Fault(path, line, name, occurrence)


Span = tuple[tuple[int, int], tuple[int, int]]


def _places(source: str) -> tuple[set[int], list[Span]]:
    """The lines of function bodies, and the spans of annotations."""
    lines: set[int] = set()
    annotations: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines.update(range(node.body[0].lineno, (node.end_lineno or 0) + 1))
            annotations.append(node.returns)
        elif isinstance(node, ast.arg | ast.AnnAssign):
            annotations.append(node.annotation)
    spans = [
        ((each.lineno, each.col_offset), (each.end_lineno or 0, each.end_col_offset or 0))
        for each in annotations
        if each is not None
    ]
    return lines, spans


# ---- Running -------------------------------------------------------------------


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that are not named; this module is a plugin of the runs that it starts."""
    if CHOSEN not in os.environ:
        return
    choice = json.loads(Path(os.environ[CHOSEN]).read_text(encoding="utf-8"))
    wanted, spared = choice["wanted"], set(choice["spared"])
    taken = [
        each
        for each in items
        if line_probe.named(each.nodeid) not in spared and (wanted is None or line_probe.named(each.nodeid) in wanted)
    ]
    config.hook.pytest_deselected(items=list(set(items) - set(taken)))
    items[:] = taken


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down a failed test, for the process that runs the tests."""
    if report.failed and FAILED in os.environ:
        with Path(os.environ[FAILED]).open("a", encoding="utf-8") as file:
            file.write(f"{line_probe.named(report.nodeid)}\n")


class Measurement:
    """The faults of one revision, and their results."""

    def __init__(self, revision: str) -> None:
        done = subprocess.run(["git", "rev-parse", "--verify", f"{revision}^{{commit}}"], cwd=ROOT, capture_output=True)
        if done.returncode:
            raise SystemExit(f"error: --of: expected a revision of this repository, got {revision}")
        commit = done.stdout.decode().strip()
        self.folder = ROOT / "var" / "mutation" / commit[:12]
        self.tree = self.folder / "tree"
        self._results = MEASURED / f"{commit[:12]}.jsonl"
        self._coverage = MEASURED / f"{commit[:12]}-tests.json.gz"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = (self.folder / "lock").open("wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # else each run would measure the other's faults
        except BlockingIOError:
            raise SystemExit(f"error: expected one run at a time, got another one of {commit[:12]}") from None
        packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True)
        with tarfile.TarFile(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(self.tree, filter="data")  # each time, as a killed run leaves a fault in it
        (self.tree / ".venv").unlink(missing_ok=True)
        (self.tree / ".venv").symlink_to(ROOT / ".venv")
        for module in (__file__, line_probe.__file__):
            shutil.copy(module, self.tree / "bench")  # an older revision lacks the code that runs its tests

    def run(self) -> list[tuple[Fault, str]]:
        """Make each fault that has no result yet. Returns all faults, each with who noticed it, in words."""
        known = {Fault(**row["fault"]): row["noticed"] for row in self._rows()}
        drawn = draw(self.tree)
        tests = self._tests_by_fault(drawn) if any(known.get(fault, OPEN) == OPEN for fault in drawn) else {}
        for number, fault in enumerate(drawn, 1):
            if fault in known:
                continue
            noticed = any(self._noticing([fault], some) for some in in_parts(tests[fault], tests.values()))
            self._keep(known, fault, BY_ITS_OWN if noticed else OPEN, f"{number} of {len(drawn)}")
        while left := [fault for fault in drawn if known[fault] == OPEN]:
            print(f"All tests run with {len(left)} faults together.", flush=True)
            noticing = self._noticing(left)
            found = False
            for fault in left if noticing else ():
                for which, some in ((BY_ITS_OWN, noticing & tests[fault]), (BY_ANOTHER, noticing - tests[fault])):
                    if by := self._noticing([fault], some):
                        self._keep(known, fault, which, f"by {', '.join(sorted(by))}")
                        found = True
                        break
            if noticing and not found:  # only together do they make the tests fail
                self._leave_out(noticing)
            for fault in left if not noticing else ():
                self._keep(known, fault, BY_NONE, "all tests")
        return [(fault, known[fault]) for fault in drawn]

    def _keep(self, known: dict[Fault, str], fault: Fault, noticed: str, which: str) -> None:
        known[fault] = noticed
        print(f"{which}: {fault.path}:{fault.line} {noticed}", flush=True)
        with self._results.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"fault": asdict(fault), "noticed": noticed}) + "\n")

    def _rows(self) -> list[dict[str, Any]]:
        if not self._results.exists():
            return []
        return [json.loads(line) for line in self._results.read_text(encoding="utf-8").splitlines()]

    def _noticing(self, faults: Sequence[Fault], tests: set[str] | None = None) -> set[str]:
        """The first tests that fail with some faults, and fail again when run alone: a named one, or some of all.

        A test that failed only once may have failed because the machine was busy: the others are then run without it.
        Named tests that could not even start, or never ended, all count as failed.
        """
        before = {fault.path: (self.tree / fault.path).read_text(encoding="utf-8") for fault in faults}
        spared = self._unfit_tests()
        try:
            for path, source in before.items():
                # From the last place to the first: a fault moves what follows.
                for fault in sorted((each for each in faults if each.path == path), key=lambda each: -each.line):
                    source = fault.made_in(source)
                (self.tree / path).write_text(source, encoding="utf-8")
            while (failed := self._failed(tests, spared, TOGETHER if tests is None else 1)) is not None:
                if not failed and tests is None:
                    raise SystemExit(f"error: all tests: expected their end, got none; see {self.folder}/pytest.log")
                if not failed:
                    return tests or set()
                if again := self._failed(failed, set(), len(failed)):
                    return again
                if again is not None:  # the tests did not even begin
                    return failed
                spared |= failed
            return set()
        finally:
            for path, source in before.items():
                (self.tree / path).write_text(source, encoding="utf-8")

    def _failed(self, tests: set[str] | None, spared: set[str], most: int) -> set[str] | None:
        """The first tests that fail, among those named or among all but the spared; None if all of them pass."""
        chosen, files = self.folder / "tests", ["tests"]
        if tests is not None:
            tests = tests - spared
            files = sorted({f"{each.rpartition('.')[0].replace('.', '/')}.py" for each in tests})
        if not files:
            return None
        choice = {"wanted": None if tests is None else sorted(tests), "spared": sorted(spared)}
        chosen.write_text(json.dumps(choice), encoding="utf-8")
        try:
            processes = WHOLE if tests is None or len(tests) > ALONE[0] else SOME
            code, failed = self._pytest([*processes, f"--maxfail={most}", *files], {CHOSEN: str(chosen)})
        except subprocess.TimeoutExpired:
            return set()
        return failed if code not in (0, pytest.ExitCode.NO_TESTS_COLLECTED) else None

    def _pytest(self, arguments: Sequence[str], env: dict[str, str]) -> tuple[int, set[str]]:
        """The exit status of a run, and the names of the tests that failed in it."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "bench.mutation", *arguments]
        failed = self.folder / "failed"
        failed.write_text("", encoding="utf-8")
        own = {"PYTHONPATH": str(self.tree), FAILED: str(failed)}  # the path: for `flask`, which would find the project
        with (self.folder / "pytest.log").open("wb") as log:
            done = subprocess.run(
                command, cwd=self.tree, env=os.environ | own | env, stdout=log, stderr=log, timeout=LONGEST
            )
        return done.returncode, set(failed.read_text(encoding="utf-8").split())

    def _unfit_tests(self) -> set[str]:
        return set(self._covered()["unfit"])

    def _leave_out(self, tests: set[str]) -> None:
        self._keep_covered({**self._covered(), "unfit": sorted(self._unfit_tests() | tests)})

    def _covered(self) -> dict[str, Any]:
        """The tests that failed without a fault, and the drawn lines that each other test reaches."""
        found: dict[str, Any] = json.loads(gzip.decompress(self._coverage.read_bytes()))
        return found

    def _keep_covered(self, covered: Mapping[str, Any]) -> None:
        self._coverage.write_bytes(gzip.compress(json.dumps(covered).encode(), mtime=0))

    def _tests_by_fault(self, drawn: Sequence[Fault]) -> dict[Fault, set[str]]:
        """The names of the tests that reach each fault's line, from one run of all tests."""
        if not self._coverage.exists():
            print("All tests run once, to see which come by which line.", flush=True)
            came_by = self.folder / "came-by"
            came_by.write_text("", encoding="utf-8")
            sources = {path: (self.tree / path).read_text(encoding="utf-8") for path in {each.path for each in drawn}}
            try:
                for path, source in sources.items():
                    lines = {number: each.line for number, each in enumerate(drawn) if each.path == path}
                    (self.tree / path).write_text(with_probes(source, lines), encoding="utf-8")
                _, failed = self._pytest(WHOLE, {line_probe.VARIABLE: str(came_by)})
            finally:
                for path, source in sources.items():
                    (self.tree / path).write_text(source, encoding="utf-8")
            lines_of: dict[str, set[int]] = defaultdict(set)
            for line in came_by.read_text(encoding="utf-8").splitlines():
                number, _, test = line.partition(" ")
                lines_of[test].add(int(number))
            self._keep_covered({
                "unfit": sorted(failed), "came_by": {test: sorted(lines_of[test]) for test in sorted(lines_of)},
            })  # fmt: skip
            print(f"Left out, since they failed without any fault: {', '.join(sorted(failed)) or 'none'}", flush=True)
        found: dict[Fault, set[str]] = {fault: set() for fault in drawn}
        for test, numbers in self._covered()["came_by"].items():
            for number in numbers:
                found[drawn[number]].add(test)
        return found


def in_parts(tests: set[str], of_lines: Collection[set[str]]) -> list[set[str]]:
    """The tests that run against a line's fault alone, in parts: quick tests first, then those that reach the fewest
    lines.
    """
    lines = Counter(test for others in of_lines for test in others)
    in_order = iter(sorted(tests, key=lambda each: (KINDS.index(each.split(".")[1]), lines[each], each)))
    return [part for most in ALONE if (part := set(itertools.islice(in_order, most)))]


def with_probes(source: str, lines: Mapping[int, int]) -> str:
    """A module that reports when it reaches certain lines: `lines` maps the number reported to the line number.

    The call is put before the innermost statement with the line that can have another statement before it.
    """
    starts: dict[int, tuple[int, int]] = dict.fromkeys(lines.values(), (0, 0))
    texts = source.split("\n")
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.stmt) or texts[node.lineno - 1].lstrip().startswith(("elif ", "@")):
            continue
        for line, (found, _) in starts.items():
            if found < node.lineno <= line <= (node.end_lineno or 0):
                starts[line] = node.lineno, node.col_offset
    calls = sorted(((*starts[line], number) for number, line in lines.items()), reverse=True)
    for start, indent, number in calls:
        call = f'__import__("{line_probe.__name__}").line_probe.came_by({number})'
        texts.insert(start - 1, f"{' ' * indent}{call}")
    return "\n".join(texts)


def report(found: Sequence[tuple[Fault, str]], tree: Path) -> str:
    """The shares by package, and each unnoticed fault as a diff."""
    lines = []
    for package in (*PACKAGES, ""):
        counts = Counter(noticed != BY_NONE for fault, noticed in found if fault.path.startswith(package))
        lines.append(f"{package or 'together':16} {counts[True]:3} of {counts.total():3} noticed")
    for fault, noticed in found:
        if noticed == BY_NONE:
            source = (tree / fault.path).read_text(encoding="utf-8")
            changes = unified_diff(source.splitlines(), fault.made_in(source).splitlines(), fault.path, "", n=1)
            lines += ["", *(line.rstrip() for line in changes)]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--of", default="HEAD", metavar="REVISION", help="what is measured [default: HEAD]")
    measurement = Measurement(parser.parse_args().of)
    print(report(measurement.run(), measurement.tree))


if __name__ == "__main__":
    main()
