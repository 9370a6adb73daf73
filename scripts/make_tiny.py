"""Makes the small models that Parlor comes with, from nothing: `make tiny`.

Scripted players play rounds, datasets are cut from them, and `python -m training tiny` and `sft` learn from those, all
through the commands that anybody can give. Takes about two hours on two cores; what is there already is not made
again, so it can be interrupted between models.

`tiny` is the partner to play against without a key or a GPU: it learns from the scripted negotiator at work with
partners who write as people do, then from its own games that ended well, and at last also from those who won scripted
games of taboo. `tiny-base` is weak on purpose: it goes on from what `tiny` was taught and picks up the habits of
careless negotiators, so that, like the large models of the papers, it can do more than it does, and a campaign shows
what it makes of that. Neither ever sees the contexts that campaigns hold out.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.campaigns.material import is_held_out
from app.config import ROOT
from app.games.contexts import generate_context
from app.games.taboo import target_words
from app.players.clues import table
from app.rounds.material import items_of

MODELS = ROOT / "data" / "models"
ROWS = "rows.jsonl"
CONTEXTS = 60_000  # draws; each match gets one, and one in ten is held out


@dataclass(frozen=True, slots=True)
class Round:
    """A round to play, and whose moves of it are learned."""

    game: str
    models: tuple[str, str]
    matches: int
    objective: str | float = "self"
    words: str = ""  # of taboo: a file among the materials

    @property
    def arguments(self) -> list[str]:
        swapped = ["--swap-seats"] if len(set(self.models)) > 1 else []
        return [self.game, "--models", *self.models, "--matches", str(self.matches), *swapped]


@dataclass(frozen=True, slots=True)
class Recipe:
    """A model: rounds, who is learned from, how many transcripts of each game, and the fields of the training."""

    rounds: Sequence[Round]
    learned_from: dict[str, str]  # by game
    rows: dict[str, int]  # by game, at most
    longest: int  # words of a transcript; longer ones repeat themselves
    training: dict[str, float]
    base: str | None = None  # the model that it goes on from, which plays as STUDENT
    filter: str = "all"
    again: tuple[str, int] | None = None  # so many of that model's transcripts are learned once more, lest it forgets


SIZE = {"width": 128, "layers": 6, "heads": 4, "length": 512}
START, TAUGHT, PLAYED, AGAIN = "tiny-start", "tiny-taught", "tiny-played", "tiny-played-again"
TINY, BASE = "tiny", "tiny-base"
SHIPPED = (TINY, BASE)
STUDENT = "student"
SOME_BROKEN_OFF = 3  # how a round ends in which a model broke the rules too often; the rest of it is as good as any


def _own_games(matches: dict[str, tuple[int, int]]) -> tuple[Round, ...]:
    """What the model that learns plays, by objective: so many with itself, so many with one who writes as people do."""
    return tuple(
        Round("negotiation", (STUDENT, partner), number, objective)
        for objective, numbers in matches.items()
        for partner, number in zip((STUDENT, "casual"), numbers, strict=True)
    )


RECIPES = {
    START: Recipe(
        rounds=(
            Round("negotiation", ("scripted", "scripted"), 18_000, "self"),
            Round("negotiation", ("scripted", "scripted"), 5_000, "coop"),
            Round("negotiation", ("scripted", "scripted"), 3_000, "comp"),
            Round("negotiation", ("scripted", "scripted"), 500, 0.5),
            Round("negotiation", ("scripted", "scripted"), 500, -0.5),
            Round("taboo", ("scripted", "scripted"), 9_000, words="table.txt"),
            Round("taboo", ("scripted", "scripted"), 2_000, words="all.txt"),
        ),
        learned_from={"negotiation": "scripted", "taboo": "scripted"},
        rows={"negotiation": 26_000, "taboo": 14_000},
        longest=170,
        training={"epochs": 2, "learning_rate": 3e-3, "seed": 1, **SIZE},
    ),
    TAUGHT: Recipe(
        rounds=(
            Round("negotiation", ("scripted", "casual"), 9_000, "self"),
            Round("negotiation", ("scripted", "casual"), 4_000, "coop"),
            Round("negotiation", ("scripted", "casual"), 2_000, "comp"),
        ),
        learned_from={"negotiation": "scripted"},
        rows={"negotiation": 11_000},
        longest=170,
        training={"epochs": 1, "learning_rate": 1.5e-3, "batch": 32, "seed": 2},
        base=START,
        again=(START, 9_000),
    ),
    PLAYED: Recipe(
        rounds=_own_games({"self": (2_500, 1_500), "coop": (1_200, 800)}),
        learned_from={"negotiation": STUDENT},
        filter="nonzero",
        rows={"negotiation": 5_000},
        longest=170,
        training={"epochs": 2, "learning_rate": 1e-3, "batch": 32, "seed": 3},
        base=TAUGHT,
        again=(TAUGHT, 4_000),
    ),
    AGAIN: Recipe(
        rounds=_own_games({"self": (2_000, 1_500), "coop": (800, 500)}),
        learned_from={"negotiation": STUDENT},
        filter="nonzero",
        rows={"negotiation": 5_000},
        longest=170,
        training={"epochs": 3, "learning_rate": 1e-3, "batch": 32, "seed": 4},
        base=PLAYED,
        again=(TAUGHT, 2_500),
    ),
    TINY: Recipe(
        rounds=(
            *_own_games({"self": (2_500, 1_500), "coop": (1_000, 600)}),
            Round("taboo", ("scripted", "scripted"), 24_000, words="table.txt"),
            Round("taboo", ("scripted", "scripted"), 2_000, words="all.txt"),
        ),
        learned_from={"negotiation": STUDENT, "taboo": "scripted"},
        filter="nonzero",
        rows={"negotiation": 6_000, "taboo": 25_000},
        longest=170,
        training={"epochs": 2, "learning_rate": 1e-3, "batch": 32, "seed": 5},
        base=AGAIN,
    ),
    BASE: Recipe(
        rounds=(
            Round("negotiation", ("careless", "careless"), 4_000, "self"),
            Round("negotiation", ("careless", "careless"), 2_500, "coop"),
        ),
        learned_from={"negotiation": "careless"},
        rows={"negotiation": 4_500},
        longest=150,
        training={"max_steps": 250, "learning_rate": 1e-3, "batch": 16, "seed": 1},
        base=TAUGHT,
        again=(TAUGHT, 500),
    ),
}


def main() -> None:
    """Make the models, as far as they are not there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=Path, default=ROOT / "var" / "tiny", help="folder to work in [var/tiny]")
    parser.add_argument("--out", type=Path, default=MODELS, help="folder to put them in [data/models]")
    asked = parser.parse_args()
    work, out = asked.work.resolve(), asked.out.resolve()
    if all((out / name).exists() for name in SHIPPED):
        print(f"{' and '.join(SHIPPED)} are in {out} already; remove what is to be made anew, or name another --out.")
        return
    for name in RECIPES:
        Kitchen(name, work, out).make()


class Kitchen:
    """A folder in which one model is made."""

    def __init__(self, name: str, work: Path, out: Path) -> None:
        self._recipe = RECIPES[name]
        self._work, self._out = work, out
        self._home = work / name
        self._output = self._model(name)
        self._environment = {**os.environ, "PARLOR_HOME": str(self._home), "DATABASE_URL": "", "REDIS_URL": ""}

    def _model(self, name: str) -> Path:
        return self._out / name if name in SHIPPED else self._work / name / "model"

    def make(self) -> None:
        """Play, cut and train, unless the model is there."""
        if self._output.exists():
            print(f"{self._output} is there already; remove it to make it again.")
            return
        shutil.rmtree(self._home, ignore_errors=True)
        self._home.mkdir(parents=True)
        self._materials()
        for manner in ("casual", "careless"):
            self._flask("model", "add-scripted", manner, "--manner", manner)
        if self._recipe.base:
            folder = str(self._model(self._recipe.base))
            self._flask("model", "add-local", STUDENT, "--path", folder, "--prompt-style", "compact")
        (self._home / ROWS).write_text("".join(self._rows()), encoding="utf-8")
        self._train()

    def _rows(self) -> list[str]:
        recipe = self._recipe
        played: dict[str, list[str]] = {}
        for seed, each in enumerate(recipe.rounds, 1):
            said = self._flask("round", "run", *each.arguments, "--seed", str(seed), *self._played_with(each), "--json")
            played.setdefault(each.game, []).append(str(json.loads(said)["round_id"]))
        rows = [row for game, rounds in played.items() for row in self._cut(game, rounds)]
        rng = random.Random(recipe.training["seed"])
        if recipe.again:
            whose, count = recipe.again
            known = (self._work / whose / ROWS).read_text(encoding="utf-8").splitlines(keepends=True)
            rows += rng.sample(known, count)
        rng.shuffle(rows)
        return rows

    def _train(self) -> None:
        config = {**self._recipe.training, "data": str(self._home / ROWS), "output": str(self._output)}
        config["run"] = str(self._home / "run")
        if self._recipe.base:
            config["base"] = str(self._model(self._recipe.base))
        path = self._home / "train.json"
        path.write_text(json.dumps(config), encoding="utf-8")
        method = "sft" if self._recipe.base else "tiny"
        self._run(sys.executable, "-m", "training", method, "--config", str(path), shown=True)

    def _materials(self) -> None:
        """Contexts and words to play with."""
        rng = random.Random(0)
        drawn = (generate_context(rng) for _ in range(CONTEXTS))
        with (self._home / "contexts.txt").open("w", encoding="utf-8") as file:
            for each in drawn:
                if not is_held_out(*items_of([each])):
                    for values in each.values:
                        pairs = zip(each.counts, values, strict=True)
                        print(*(number for pair in pairs for number in pair), file=file)
        known = list(table())
        lists = {"table": known, "all": target_words()}
        for name, words in lists.items():
            (self._home / f"{name}.txt").write_text("\n".join(words) + "\n", encoding="utf-8")

    def _played_with(self, each: Round) -> list[str]:
        if each.game == "taboo":
            return ["--words", str(self._home / each.words), "--pick", "random"]
        contexts = str(self._home / "contexts.txt")
        return ["--config", f"objective={each.objective}", "--contexts", contexts, "--pick", "random"]

    def _cut(self, game: str, rounds: Sequence[str]) -> list[str]:
        """Transcripts of a game, drawn from those of these rounds."""
        recipe, out = self._recipe, self._home / f"{game}.jsonl"
        chosen = [argument for number in rounds for argument in ("--round", number)]
        wanted = ["--filter", recipe.filter, "--model", recipe.learned_from[game], "--style", "compact"]
        self._flask("dataset", "build", *chosen, *wanted, "--out", str(out))
        rows = [
            row for row in out.read_text(encoding="utf-8").splitlines(keepends=True) if _words(row) <= recipe.longest
        ]
        return random.Random(0).sample(rows, min(recipe.rows[game], len(rows)))

    def _flask(self, *arguments: str) -> str:
        return self._run(sys.executable, "-m", "flask", *arguments)

    def _run(self, *command: str, shown: bool = False) -> str:
        print("$ python", *command[1:], flush=True)
        done = subprocess.run(  # noqa: S603 - our own commands
            command, cwd=ROOT, env=self._environment, stdout=None if shown else subprocess.PIPE, text=True, check=False
        )
        if done.returncode not in (0, SOME_BROKEN_OFF):
            raise SystemExit(done.returncode)
        return "" if shown else done.stdout


def _words(row: str) -> int:
    return sum(len(message["content"].split()) for message in json.loads(row)["messages"])


if __name__ == "__main__":
    main()
