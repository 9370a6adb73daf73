"""`flask judge`: the outcome of recorded games of Adversarial Taboo."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from app.cli.base import Command, print_json, progress
from app.core.errors import Invalid, Verbatim
from app.games.taboo.episodes import judge_episode, read_episodes
from app.games.taboo.judges import RULES
from training.json_rows import RepeatedField, parse_json


@click.command(cls=Command)
@click.argument("file")
@click.option("--rule", type=click.Choice(list(RULES)), default="strict", show_default=True, help="Which judge.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of {outcome, plies}.")
def judge(file: str, rule: str, as_json: bool) -> None:
    """Judge recorded games of Adversarial Taboo.

    FILE is a JSON list of {history: [{role, content}], target_word, max_turns}; - reads it from stdin. Rules judge: no
    model is called, and nothing is paid.
    """
    episodes = read_episodes(_read_json(file))
    with progress(episodes, lambda: len(episodes)) as each:
        verdicts = [judge_episode(episode, rule) for episode in each]
    if as_json:
        print_json([{"outcome": verdict.outcome, "plies": verdict.plies} for verdict in verdicts])
        return
    for number, verdict in enumerate(verdicts):
        click.echo(f"{number}\t{verdict.outcome}\t{verdict.plies}")


def _read_json(file: str) -> Any:
    where = "stdin" if file == "-" else file
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return parse_json(raw)
    except OSError as error:
        raise Invalid(
            "FILE", expected="a JSON file that can be read", got=Verbatim(f"{where} ({error.strerror})")
        ) from None
    except RepeatedField as error:
        raise Invalid(None, expected="each field of an object once", got=Verbatim(str(error)), subject=where) from None
    except json.JSONDecodeError as error:
        place = f"{where}, line {error.lineno}, column {error.colno}"
        raise Invalid(
            None, expected="JSON", got=Verbatim(f"something else ({error.msg.lower()})"), subject=place
        ) from None
    except (UnicodeDecodeError, RecursionError) as error:
        reason = "text that is not UTF-8" if isinstance(error, UnicodeDecodeError) else "lists within lists without end"
        raise Invalid(None, expected="a JSON list of episodes", got=Verbatim(reason), subject=where) from None
