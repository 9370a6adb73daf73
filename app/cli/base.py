"""Shared parts of all commands: one-line refusals, JSON, `name=value` options, and making sure of the database.

Exit codes: 0 done, 1 done and something is wrong (doctor), 2 refused, 130 interrupted.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NoReturn, TypeVar, cast

import click
from flask import current_app
from flask.cli import ScriptInfo
from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError

from app import schema
from app.cli.groups import BaseGroup, UsageRefused, short_usage_errors
from app.core import logs
from app.core.config import Settings
from app.core.csv_tables import Column, to_csv
from app.core.errors import AppError, Invalid, Verbatim
from app.core.files import write_all
from app.core.typed_numbers import is_plain_whole
from training.processor import slow_precision

T = TypeVar("T")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


class CommandFailed(UsageRefused):
    """One line on stderr and exit code 1: the command was valid, but it cannot continue."""

    exit_code = 1


class Interrupted(click.ClickException):
    """One line on stderr and the exit code of a program ended by Ctrl-C."""

    exit_code = 130

    def show(self, file: Any = None) -> None:
        click.echo(f"\n{self.format_message()}", file=file, err=file is None)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn expected errors into one line; anything else is a bug and keeps its traceback."""
    try:
        yield
    except AppError as error:
        raise UsageRefused(error.message) from None
    except DBAPIError as error:
        if not isinstance(error, OperationalError | ProgrammingError):
            raise
        reason = str(error.orig).splitlines()[0]
        raise UsageRefused(
            f"database: expected one that is ready, got {reason!r}; `flask doctor` says what to do"
        ) from None
    except KeyboardInterrupt:
        raise Interrupted("Interrupted.") from None


class _PlainWhole(click.types.IntParamType):
    """A whole number in ordinary digits: not 1_000, nor digits of other scripts."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        _check_plain(self, value, param, ctx)
        return super().convert(value, param, ctx)


class WholeRange(click.IntRange):
    """A whole number in ordinary digits between two bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        _check_plain(self, value, param, ctx)
        return super().convert(value, param, ctx)


WHOLE = _PlainWhole()


def _check_plain(
    kind: click.types.IntParamType, value: Any, param: click.Parameter | None, ctx: click.Context | None
) -> None:
    if isinstance(value, str) and not is_plain_whole(value):
        kind.fail(f"{value!r} is not a valid integer.", param, ctx)


class RepeatableOption(click.Option):
    """An option that may be repeated, and that also takes the following arguments for which `belongs` returns True."""

    def __init__(self, *args: Any, belongs: Callable[[str], bool], **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "multiple": True})
        self.belongs = belongs


def is_pair(argument: str) -> bool:
    """Whether an argument looks like name=value."""
    return "=" in argument and not argument.startswith("-")


def is_name(argument: str) -> bool:
    """Whether an argument may be a name rather than an option."""
    return not argument.startswith("-")


class Command(click.Command):
    """A command that prints its refusals, including usage errors, in one line; it runs in the context of an app."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        with short_usage_errors(info_name, parent):
            return super().make_context(info_name, args, parent, **extra)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._spread(args))

    def invoke(self, ctx: click.Context) -> Any:
        script = ctx.find_object(ScriptInfo)
        with one_line_errors(), logs.quiet():
            if script is not None and not current_app:
                ctx.with_resource(script.load_app().app_context())
            return super().invoke(ctx)

    def _spread(self, args: Sequence[str]) -> list[str]:
        """Expand `--config a=1 b=2` to `--config a=1 --config b=2`."""
        options = {name: each for each in self.params if isinstance(each, RepeatableOption) for name in each.opts}
        spread: list[str] = []
        taker: str | None = None  # the option that takes the arguments after its first
        for argument in args:
            if taker is not None and spread[-1] != taker and options[taker].belongs(argument):
                spread += [taker, argument]
                continue
            if taker is None or spread[-1] != taker:
                taker = argument if argument in options else None
            spread.append(argument)
        return spread


class Group(BaseGroup):
    """A group of commands of this class."""

    command_class = Command


def unwritable(out: object, error: OSError) -> Invalid:
    """The refusal for an `--out` file that could not be written."""
    return Invalid(
        "--out",
        expected="a file that can be written",
        got=Verbatim(f"{out} ({error.strerror})"),
        remedy="nothing was left there",
    )


def settings() -> Settings:
    """The settings of the app that the command runs in."""
    return cast(Settings, current_app.config["SETTINGS"])


def ensure_database() -> None:
    """Create the database, with the baselines, if PARLOR_HOME is empty."""
    schema.ensure(current_app._get_current_object())  # type: ignore[attr-defined]


def print_json(value: Any) -> None:
    """One JSON value on one line of stdout, in ASCII, which every terminal and pipe takes."""
    click.echo(json.dumps(value))


def print_result(as_json: bool, value: Any, *lines: str) -> None:
    """Print the result of a command, as one JSON value or as lines of text."""
    if as_json:
        print_json(value)
        return
    for line in lines:
        click.echo(line)


def warn_of_bfloat16(field: str, precision: object, device: object) -> None:
    """Warn on stderr if computing in this precision would be slow on this machine."""
    if (slow := slow_precision(str(precision), str(device))) is not None:
        click.echo(f"warning: {field}: {slow}; float32, or a GPU, is faster", err=True)


def counted(number: int, one: str, many: str = "") -> str:
    """A count with its noun; `many` is the plural if it is not just `one` with an s."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def print_csv(columns: Sequence[Column], rows: Iterable[Any]) -> None:
    """Print a table as CSV on stdout, in UTF-8 whatever the terminal's locale is."""
    write_all(to_csv(columns, rows), sys.stdout.buffer)


def check_one_format(as_json: bool, as_csv: bool) -> None:
    """Raises Invalid if a command is asked to print both JSON and CSV."""
    if as_json and as_csv:
        raise Invalid("--csv", expected="it without --json, because both are printed to stdout", got=Verbatim("both"))


def progress(items: Iterable[T], count: Callable[[], int | None]) -> AbstractContextManager[Iterable[T]]:
    """The items, with a progress bar on stderr while they are consumed, if stderr is a terminal.

    `count` returns the number of items, or None if it is unknown.
    """
    if not sys.stderr.isatty():
        return nullcontext(items)
    return click.progressbar(items, length=count(), file=sys.stderr, update_min_steps=100)


def read_pairs(pairs: Sequence[str], option: str, *, show: bool = True) -> dict[str, Any]:
    """Read name=value options; a value that is a JSON number, list, object or null is parsed, all else is text.

    `show` says whether a refusal may repeat the given text. Raises Invalid.
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        name, mark, text = pair.partition("=")
        if not mark or not name.strip():
            _refuse_pair(option, pair if show else None)
        if name in found:
            raise Invalid(option, expected="each name once", got=Verbatim(f"{name!r} twice"))
        found[name] = read_value(text)
    return found


def _refuse_pair(option: str, pair: str | None) -> NoReturn:
    raise Invalid(option, expected="name=value", got=Verbatim("something else" if pair is None else repr(pair)))


def read_value(text: str) -> Any:
    """JSON if the text begins like a number, list, object or quoted text; a bare word stays a word."""
    if text[:1] in '-0123456789[{"':
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text
