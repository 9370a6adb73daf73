"""Makes the small models that Parlor comes with, from nothing: `make tiny`.

Scripted players play rounds, datasets are cut from them, and `python -m training tiny` and `sft` learn from those, all
through the commands that anybody can give. Takes about two hours on two cores; what is there already is not made
again, so it can be interrupted between models.

`tiny` is the partner to play against without a key or a GPU: it learns from the scripted negotiator at work with
partners who write as people do, then from its own games that ended well, and at last also from more scripted games of
taboo. `tiny-base` is weak on purpose: it goes on from what `tiny` was taught and picks up the habits of
careless negotiators, so that, like the large models of the papers, it can do more than it does, and a campaign shows
what it makes of that. `little-base` is weak because it has seen little: 200 transcripts. None of them ever plays a
context that campaigns hold out, in either seat order.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from app.core.config import ROOT
from app.core.files import temporary_beside
from app.games.negotiation.contexts import generate_context
from app.games.negotiation.material import Contexts, pieces_of
from app.games.taboo.words import target_words
from app.players.scripted.taboo.clues import table
from app.rounds.held_out import is_held_out

MODELS = ROOT / "data" / "models"
ROWS = "rows.jsonl"
CONTEXTS = 60_000  # draws; each match gets one, and one in ten is held out


@dataclass(frozen=True, slots=True)
class Round:
    """A round to play."""

    game: str
    models: tuple[str, str]
    matches: int
    objective: str | float = "self"
    words: str = ""  # of taboo: a file among the materials

    @property
    def arguments(self) -> list[str]:
        swapped = ["--swap-seats"] if len(set(self.models)) > 1 and self.game == "negotiation" else []
        return [self.game, "--models", *self.models, "--matches", str(self.matches), *swapped]


@dataclass(frozen=True, slots=True)
class Lesson:
    """Rounds of one game, whose moves of them are learned, which transcripts, and how many at most."""

    rounds: Sequence[Round]
    learned_from: str
    rows: int
    filter: str = "all"
    reason: str = ""  # only matches that ended so


@dataclass(frozen=True, slots=True)
class Recipe:
    """A model: what it learns, and the fields of the training."""

    lessons: Sequence[Lesson]
    training: dict[str, float]
    longest: int = 170  # words of a transcript; longer ones repeat themselves
    base: str | None = None  # the model that it goes on from, which plays as STUDENT
    again: tuple[str, int] | None = None  # so many of that model's transcripts are learned once more, lest it forgets
    edit: Callable[[dict[str, Any], random.Random], dict[str, Any]] | None = None  # a row as it is learned


SIZE = {"width": 128, "layers": 6, "heads": 4, "length": 512}
START, TAUGHT, PLAYED, AGAIN = "tiny-start", "tiny-taught", "tiny-played", "tiny-played-again"
TINY, BASE, LITTLE = "tiny", "tiny-base", "little-base"
SHIPPED = (TINY, BASE, LITTLE)
STUDENT = "student"
SOME_BROKEN_OFF = 3  # how a round ends in which a model broke the rules too often; the rest of it is as good as any


def negotiations(models: tuple[str, str], matches: Mapping[str | float, int]) -> tuple[Round, ...]:
    """A round for each objective, with so many matches."""
    return tuple(Round("negotiation", models, number, objective) for objective, number in matches.items())


def own_games(matches: dict[str, tuple[int, int]], rows: int) -> Lesson:
    """Games of the model that learns in which there was a deal.

    `matches`: by objective, how many are played with itself, and how many with one who writes as people do.
    """
    rounds = (
        Round("negotiation", (STUDENT, partner), number, objective)
        for objective, numbers in matches.items()
        for partner, number in zip((STUDENT, "casual"), numbers, strict=True)
    )
    return Lesson(tuple(rounds), STUDENT, rows, filter="nonzero")


def from_scripted(rows: int, steps: int) -> Recipe:
    """A model that learns from so many transcripts of the scripted negotiator with itself, in so many steps."""
    lesson = Lesson(negotiations(("scripted", "scripted"), {"self": 4_000}), "scripted", rows)
    return Recipe((lesson,), {"max_steps": steps, "batch": 16, "epochs": 100, "learning_rate": 2e-3, "seed": 1, **SIZE})


def _taboo(words: str, matches: int, attacker: str = "scripted") -> Round:
    return Round("taboo", (attacker, "scripted"), matches, words=words)


RECIPES = {
    START: Recipe(
        lessons=(
            Lesson(
                rounds=negotiations(
                    ("scripted", "scripted"), {"self": 18_000, "coop": 5_000, "comp": 3_000, 0.5: 500, -0.5: 500}
                ),
                learned_from="scripted",
                rows=26_000,
            ),
            Lesson((_taboo("table.txt", 9_000), _taboo("all.txt", 2_000)), "scripted", 14_000),
        ),
        training={"epochs": 2, "learning_rate": 3e-3, "seed": 1, **SIZE},
    ),
    TAUGHT: Recipe(
        lessons=(
            Lesson(
                rounds=negotiations(("scripted", "casual"), {"self": 9_000, "coop": 4_000, "comp": 2_000}),
                learned_from="scripted",
                rows=11_000,
            ),
        ),
        training={"epochs": 1, "learning_rate": 1.5e-3, "batch": 32, "seed": 2},
        base=START,
        again=(START, 9_000),
    ),
    PLAYED: Recipe(
        lessons=(own_games({"self": (2_500, 1_500), "coop": (1_200, 800)}, 5_000),),
        training={"epochs": 2, "learning_rate": 1e-3, "batch": 32, "seed": 3},
        base=TAUGHT,
        again=(TAUGHT, 4_000),
    ),
    AGAIN: Recipe(
        lessons=(own_games({"self": (2_000, 1_500), "coop": (800, 500)}, 5_000),),
        training={"epochs": 3, "learning_rate": 1e-3, "batch": 32, "seed": 4},
        base=PLAYED,
        again=(TAUGHT, 2_500),
    ),
    TINY: Recipe(
        lessons=(
            own_games({"self": (2_500, 1_500), "coop": (1_000, 600)}, 6_000),
            Lesson((_taboo("table.txt", 20_000),), "scripted", 20_000, filter="nonzero"),
            # With one who talks as people do, and with words that nobody has clues for, one has to wait with a guess.
            Lesson((_taboo("table.txt", 11_000, "casual"),), "scripted", 5_000, filter="nonzero"),
            Lesson((_taboo("table.txt", 6_000, "casual"),), "scripted", 2_500, reason="tied game"),
            Lesson((_taboo("all.txt", 4_000),), "scripted", 5_000),
        ),
        training={"epochs": 2, "learning_rate": 1e-3, "batch": 32, "seed": 5},
        base=AGAIN,
    ),
    BASE: Recipe(
        lessons=(
            Lesson(
                rounds=negotiations(("careless", "careless"), {"self": 4_000, "coop": 2_500}),
                learned_from="careless",
                rows=4_500,
            ),
        ),
        training={"max_steps": 250, "learning_rate": 1e-3, "batch": 16, "seed": 1},
        longest=150,
        base=TAUGHT,
        again=(TAUGHT, 500),
    ),
    LITTLE: from_scripted(200, 600),  # docs/headline-plan.md says why so few
}


def main() -> None:
    """Make the models, as far as they are not there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=Path, default=ROOT / "var" / "tiny", help="folder to work in [var/tiny]")
    parser.add_argument("--out", type=Path, default=MODELS, help="folder to put them in [data/models]")
    asked = parser.parse_args()
    work, out = asked.work.resolve(), asked.out.resolve()
    if all((out / name).exists() for name in SHIPPED):
        print(f"{', '.join(SHIPPED)} are in {out} already; remove what is to be made anew, or name another --out.")
        return
    for name, recipe in RECIPES.items():
        ModelBuilder(name, recipe, work, out).make()


class ModelBuilder:
    """A folder in which one model is made."""

    def __init__(self, name: str, recipe: Recipe, work: Path, out: Path) -> None:
        self._recipe = recipe
        self._work, self._out = work, out
        self.home = work / name
        self.output = self._model(name)
        self._environment = {**os.environ, "PARLOR_HOME": str(self.home), "DATABASE_URL": "", "REDIS_URL": ""}

    def _model(self, name: str) -> Path:
        return self._out / name if name in SHIPPED else self._work / name / "model"

    def make(self) -> None:
        """Play, cut and train, unless the model is there. What was interrupted plays anew, or goes on training."""
        if self.output.exists():
            print(f"{self.output} is there already; remove it to make it again.")
            return
        rows = self.home / ROWS
        if not rows.exists():
            self._prepare()
            with temporary_beside(rows) as draft:
                draft.write_text("".join(self._rows()), encoding="utf-8")
        self._train()

    def _prepare(self) -> None:
        """Start over: materials, and who plays."""
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        if self._recipe.lessons:
            self._materials()
        players = {player for lesson in self._recipe.lessons for each in lesson.rounds for player in each.models}
        for manner in sorted(players & {"casual", "careless"}):
            self.flask("model", "add-scripted", manner, "--manner", manner)
        if self._recipe.base and STUDENT in players:
            folder = str(self._model(self._recipe.base))
            self.flask("model", "add-local", STUDENT, "--path", folder, "--prompt-style", "compact")

    def _rows(self) -> list[str]:
        recipe, seeds = self._recipe, count(1)
        rows: list[str] = []
        for number, lesson in enumerate(recipe.lessons, 1):
            rounds = [self._play(each, next(seeds)) for each in lesson.rounds]
            rows += self._cut(lesson, rounds, self.home / f"lesson-{number}.jsonl")
        rng = random.Random(recipe.training["seed"])
        if recipe.again:
            whose, number = recipe.again
            known = (self._work / whose / ROWS).read_text(encoding="utf-8").splitlines(keepends=True)
            rows += rng.sample(known, number)
        if recipe.edit:
            rows = [json.dumps(recipe.edit(json.loads(row), rng)) + "\n" for row in rows]
        rng.shuffle(rows)
        return rows

    def _train(self) -> None:
        config = {**self._recipe.training, "data": str(self.home / ROWS), "output": str(self.output)}
        config["run"] = str(self.home / "run")
        if self._recipe.base:
            config["base"] = str(self._model(self._recipe.base))
        path = self.home / "train.json"
        path.write_text(json.dumps(config), encoding="utf-8")
        method = "sft" if self._recipe.base else "tiny"
        self._run(sys.executable, "-m", "training", method, "--config", str(path), shown=True)

    def _materials(self) -> None:
        """Contexts and words to play with."""
        rng = random.Random(0)
        drawn = (generate_context(rng) for _ in range(CONTEXTS))
        with (self.home / "contexts.txt").open("w", encoding="utf-8") as file:
            for each in drawn:
                if not is_held_out(Contexts(), *pieces_of([each])):
                    for values in each.values:
                        pairs = zip(each.counts, values, strict=True)
                        print(*(number for pair in pairs for number in pair), file=file)
        known = list(table())
        lists = {"table": known, "all": target_words()}
        for name, words in lists.items():
            (self.home / f"{name}.txt").write_text("\n".join(words) + "\n", encoding="utf-8")

    def _play(self, each: Round, seed: int) -> str:
        """Play a round, whose number it returns."""
        if each.game == "taboo":
            played_with = ["--words", str(self.home / each.words)]
        else:
            played_with = ["--config", f"objective={each.objective}", "--contexts", str(self.home / "contexts.txt")]
        more = ["--seed", str(seed), *played_with, "--pick", "random", "--json"]
        return str(json.loads(self.flask("round", "run", *each.arguments, *more))["round_id"])

    def _cut(self, lesson: Lesson, rounds: Sequence[str], out: Path) -> list[str]:
        """The transcripts of a lesson, drawn from those of these rounds."""
        chosen = [argument for number in rounds for argument in ("--round", number)]
        wanted = ["--filter", lesson.filter, "--model", lesson.learned_from, "--style", "compact"]
        wanted += ["--reason", lesson.reason] if lesson.reason else []
        self.flask("dataset", "build", *chosen, *wanted, "--out", str(out))
        lines = out.read_text(encoding="utf-8").splitlines(keepends=True)
        rows = [line for line in lines if _words(line) <= self._recipe.longest]
        return random.Random(0).sample(rows, min(lesson.rows, len(rows)))

    def flask(self, *arguments: str) -> str:
        """What a command of Parlor prints, in this folder."""
        return self._run(sys.executable, "-m", "flask", *arguments)

    def _run(self, *command: str, shown: bool = False) -> str:
        print("$ python", *command[1:], flush=True)
        done = subprocess.run(  # noqa: S603 - our own commands
            command,
            cwd=ROOT,
            env=self._environment,
            stdout=None if shown else subprocess.PIPE,
            encoding="utf-8",
            check=False,
        )
        if done.returncode not in (0, SOME_BROKEN_OFF):
            raise SystemExit(done.returncode)
        return "" if shown else done.stdout


def _words(row: str) -> int:
    return sum(len(message["content"].split()) for message in json.loads(row)["messages"])


if __name__ == "__main__":
    main()
