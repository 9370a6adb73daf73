"""Commands that are listed without being loaded, and one-line usage errors.

Nothing here loads the database or a page: `flask --help` and `flask round --help` print the contents of a list.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from flask.cli import AppGroup

_WHOLE_SENTENCE = 1000  # characters, which no first sentence of a help text has


class UsageRefused(click.ClickException):
    """One line on stderr and exit code 2."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class LazyCommand(click.Command):
    """A command that is listed by its name and help line, and loaded when it is run."""

    def __init__(self, name: str, text: str, load: Callable[[], click.Command]) -> None:
        super().__init__(name, help=text)
        self._load = load

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of the command itself, with which click continues."""
        return self._load().make_context(info_name, args, parent, **extra)


class BaseGroup(AppGroup):
    """A group of commands that prints usage errors in one line."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        with short_usage_errors(info_name, parent):
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with short_usage_errors(ctx.info_name, ctx.parent):
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, each with a whole sentence, which click would cut off at the end of its line."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        rows = [(name, each.get_short_help_str(_WHOLE_SENTENCE)) for name, each in commands.items() if each is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class LazyGroup(BaseGroup):
    """A group that is listed without being loaded, and loaded with its own options when one of its commands is run, or
    without a command if it does something `alone`.
    """

    def __init__(self, name: str, text: str, load: Callable[[], click.Command], *, alone: bool = False) -> None:
        super().__init__(name, help=text)
        self._load, self._alone = load, alone

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of the group itself, unless it is only listed."""
        if args[:1] == ["--help"] or not (args or self._alone):
            return super().make_context(info_name, args, parent, **extra)
        return self._load().make_context(info_name, args, parent, **extra)


@contextmanager
def short_usage_errors(name: str | None, parent: click.Context | None) -> Iterator[None]:
    """Print click's usage errors, such as unknown arguments, in one line."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        path = f"{parent.command_path} {name}" if parent else name
        raise UsageRefused(f"{error.format_message().rstrip('.')}; `{path} --help` shows how it is used") from None
