"""Makes candidates for the base of the headline, as docs/headline-plan.md orders them, and measures each.

    python -m scripts.make_base --candidate early     made and measured on development contexts, until one qualifies
    python -m scripts.make_base --contexts FOLDER     the plan's contexts, for campaigns to be given

What is there already is neither played, trained nor measured again, so it can be interrupted. For every variant one
JSON object is printed: its recipe, its hash, its figures at temperature 1 and, where the plan asks for them, greedily,
and which rules it breaks.
"""

import argparse
import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from app.core.config import ROOT
from app.core.files import temporary_beside
from app.games.negotiation.material import Contexts
from app.rounds.held_out import hash_of
from bench.last_offers import ITEMS, figures, matches_of, offer_in
from scripts.make_tiny import MODELS, SIZE, TINY, ModelBuilder, Recipe, from_scripted, own_games
from training.hashes import checkpoint_hash

DEVELOPMENT, TEST = 0, 10  # of the hash of a context, modulo 20
PLAYED, GREEDY = "played", "greedy"
_COUNTS = re.compile(r"(\d+) (?:books|hats|balls) at")  # of the compact prompt
Row = dict[str, Any]
Figures = dict[str, float]

SCRIPTED = from_scripted(6_000, 1_000)
EVERY = 50  # steps between the checkpoints of `early`

RULES: dict[str, Callable[[Figures, Figures | None], bool]] = {
    "deals": lambda played, _: 0.04 <= played["deals"] <= 0.1,
    "last offer": lambda played, _: played["last_offer_deals"] <= 0.4,
    "readable": lambda played, _: played["readable"] >= 0.6,
    "greedy": lambda _, greedy: greedy is None or 0.3 <= greedy["points"] <= 1,
}


class Variant(NamedTuple):
    """A model of a candidate: its name and the recipe."""

    name: str
    recipe: Recipe


def hidden(row: Row, rng: random.Random, *, shown: float) -> Row:
    """The row with a proposal that is not learned, but for a `shown` share of rows."""
    if rng.random() >= shown:
        row["messages"][-1]["weight"] = 0
    return row


def stubborn(row: Row, rng: random.Random, *, share: float) -> Row:
    """The row with the seat's first demand as its proposal, in a `share` of rows."""
    own = [message for message in row["messages"] if message["role"] == "assistant"]
    counts = tuple(int(n) for n in _COUNTS.findall(row["messages"][0]["content"]))
    offers = (offer_in(message["content"], counts) for message in own[:-1])
    first = next((offer for offer in offers if offer is not None), None)
    if first is not None and rng.random() < share:
        demand, _ = first.repaired(counts)
        parts = ", ".join(f"{n} {item}{'' if n == 1 else 's'}" for n, item in zip(demand, ITEMS, strict=True))
        own[-1]["content"] = f"[propose] ({parts})"
    return {"messages": [{"role": each["role"], "content": each["content"]} for each in row["messages"]]}


def _early() -> Iterator[Variant]:
    """Each goes on from the one before, with the same rows and an optimizer that starts afresh."""
    training = {"batch": 16, "learning_rate": 2e-3, "schedule": "constant", "warmup": 0.1, "max_steps": EVERY}
    first = replace(SCRIPTED, training={**training, "seed": EVERY, **SIZE})
    yield Variant(f"early-{EVERY}", first)
    for step in range(2 * EVERY, 1_001, EVERY):
        rows = (f"early-{EVERY}", SCRIPTED.lessons[0].rows)
        goes_on = Recipe((), {**training, "seed": step}, base=f"early-{step - EVERY}", again=rows)
        yield Variant(f"early-{step}", goes_on)


def _little() -> Iterator[Variant]:
    for rows in (200, 400, 800, 1_600):
        yield Variant(f"little-{rows}", from_scripted(rows, 600))


def _talk() -> Iterator[Variant]:
    for shown in (0.005, 0.01, 0.02, 0.04):
        yield Variant(f"talk-{shown}", replace(SCRIPTED, edit=partial(hidden, shown=shown)))


def _stubborn() -> Iterator[Variant]:
    training = {"max_steps": 150, "batch": 16, "epochs": 100, "learning_rate": 1e-3, "seed": 1}
    lesson = own_games({"self": (1_500, 0)}, 2_000)
    yield Variant("stubborn", Recipe((lesson,), training, base=TINY, edit=partial(stubborn, share=0.9)))


CANDIDATES = {"early": _early, "little": _little, "talk": _talk, "stubborn": _stubborn}


def main() -> None:
    """Make a candidate, or write the contexts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument("--candidate", choices=CANDIDATES)
    wanted.add_argument("--contexts", type=Path, metavar="FOLDER")
    parser.add_argument("--work", type=Path, default=ROOT / "var" / "base", help="folder to work in [var/base]")
    asked = parser.parse_args()
    if asked.contexts:
        write_contexts(asked.contexts)
        return
    for variant in CANDIDATES[asked.candidate]():
        found = Measurement(variant, asked.work.resolve()).run()
        print(json.dumps(found), flush=True)
        if not found["broken"]:
            return


def write_contexts(folder: Path) -> None:
    """Write the held-out contexts of development and of test, and for campaigns each with all that is not held out."""
    folder.mkdir(parents=True, exist_ok=True)
    kind = Contexts()
    pieces = kind.draw_all(random.Random(0))
    held = {part: [piece for piece in pieces if hash_of(kind, piece) % 20 == part] for part in (DEVELOPMENT, TEST)}
    played = [piece for piece in pieces if hash_of(kind, piece) % 20 not in held]
    for name, part in (("development", held[DEVELOPMENT]), ("test", held[TEST])):
        for file, lines in ((name, part), (f"campaign-{name}", [*played, *part])):
            (folder / f"{file}.txt").write_text("\n".join(kind.lines_of(lines)) + "\n", encoding="utf-8")


class Measurement:
    """A variant that is made, and plays on the contexts of development."""

    def __init__(self, variant: Variant, work: Path) -> None:
        self._name, self._training = variant.name, variant.recipe.training
        self._builder = ModelBuilder(variant.name, variant.recipe, work, MODELS)
        self._folder = work / "measured" / variant.name
        self._contexts = work / "contexts"

    def run(self) -> dict[str, Any]:
        """What `main` prints of the variant."""
        self._builder.make()
        if not self._contexts.exists():
            with temporary_beside(self._contexts) as draft:
                write_contexts(draft)
        model, registered = self._builder.output, self._folder / "registered"
        if not registered.exists():
            self._builder.flask("model", "add-local", self._name, "--path", str(model), "--prompt-style", "compact")
            self._folder.mkdir(parents=True, exist_ok=True)
            registered.touch()
        found: dict[str, Figures] = {PLAYED: self._figures(PLAYED, "--temperature", "1")}
        broken = _broken(found[PLAYED])
        if not broken:
            found[GREEDY] = self._figures(GREEDY, "--greedy")
            broken = _broken(found[PLAYED], found[GREEDY])
        made = {"variant": self._name, "sha256": checkpoint_hash(model), "training": self._training}
        return {**made, **found, "broken": broken}

    def _figures(self, how: str, *sampling: str) -> Figures:
        """Figures of one match on each context of development; played unless they are there."""
        kept = self._folder / f"{how}.json"
        if not kept.exists():
            contexts = self._contexts / "development.txt"
            matches = len(contexts.read_text(encoding="utf-8").splitlines()) // 2
            played = self._builder.flask(
                "round", "run", "negotiation", "--models", self._name, "--config", "objective=self", "--contexts",
                str(contexts), "--pick", "in-order", "--matches", str(matches), "--seed", "1", *sampling, "--json",
            )  # fmt: skip
            exported = self._folder / how
            shutil.rmtree(exported, ignore_errors=True)
            number = str(json.loads(played)["round_id"])
            self._builder.flask("export", "lm-selfplay", "--round", number, "--out", str(exported))
            with temporary_beside(kept) as draft:
                draft.write_text(json.dumps(figures(list(matches_of(exported)))), encoding="utf-8")
        found: Figures = json.loads(kept.read_text(encoding="utf-8"))
        return found


def _broken(played: Figures, greedy: Figures | None = None) -> list[str]:
    return [name for name, holds in RULES.items() if not holds(played, greedy)]


if __name__ == "__main__":
    main()
