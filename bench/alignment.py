"""Whether `stable-alignment` on a society's data improves held-out answers, beside the same data with shuffled ratings.

    python -m bench.alignment                     # 10 seeds, a quarter of an hour on a core
    python -m bench.alignment --seeds 1 --preset code

A society of scripted agents is run for each seed, and a tiny model is made from nothing that answers as its agents do,
drafts and revisions alike. It learns the society's comparisons twice: as they are, and with the ratings of each query
shuffled. Both models and their base answer questions that no society was asked, and `scripted-observer` rates them,
all by the jobs that everybody uses. A rating is by the words of a small lexicon, so a gain says that the training does
what its loss says, and nothing of values. docs/results.md has the figures.
"""

import argparse
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from app.analysis.bootstrap import mean_figure
from app.assessments import lifecycle as assessments
from app.assessments.figures import ASPECTS
from app.assessments.job import ASSESSMENT
from app.assessments.spec import AnswerSampling, AssessmentSpec
from app.assessments.training_overlap import held_out
from app.cli.jobs import run_job_here
from app.core.extensions import db, reading, transact, writing
from app.datasets import register, row_import
from app.datasets.importers.spec import DatasetImportSpec
from app.datasets.row_import import RowImport
from app.finetuning import lifecycle as trainings
from app.finetuning.config import preset_fields
from app.finetuning.job import TRAINING
from app.finetuning.spec import TrainingSpec
from app.jobs import states
from app.jobs.kind import JobKind
from app.players.base import ChatSampling
from app.society import dataset as society_data
from app.society import lifecycle as societies
from app.society.job import SOCIETY
from app.society.material import PriorMemories, QuestionList
from app.society.priors import read_priors
from app.society.spec import SocietySpec
from app.society.store import read_interactions
from bench.in_process import fresh_parlor
from bench.society import QUESTIONS

AGENT, OBSERVER = "scripted-agent", "scripted-observer"
METHOD = "stable-alignment"
MIXING = {"published": "released", "code": "code"}
ASKED, HELD_OUT = 240, 100  # questions for the societies, and for the assessment
WORLD = {"size": 6, "iterations": 12, "setting": "half_half", "global_interaction": True}
TINY = {"width": 64, "layers": 3, "length": 256, "epochs": 8}
# The published learning rate is for models with billions of weights; a step has eight queries, as published.
FITTED = {"learning_rate": 5e-4, "max_length": 256, "batch": 8, "accumulation": 1}
SAMPLING = ChatSampling(temperature=0.7, max_tokens=80)
ALIGNED, PLACEBO, BASE = "aligned", "placebo", "base"


class BenchedParlor:
    """A Parlor in a fresh folder, within the context of its app."""

    def __init__(self, home: Path, threads: int) -> None:
        self._home = home
        self._threads = threads
        self._save = transact(db.engine)

    def measure(self, seed: int, preset: str) -> dict[str, list[float]]:
        """Ratings by question under "MODEL, ASPECT", and their differences under "MODEL - MODEL, ASPECT"."""
        asked, held = _questions(seed)
        number = self._society(asked, seed)
        base = self._base(number, seed)
        with reading() as session:
            data = society_data.build(session, self._home, number, MIXING[preset], seed)
        told = [json.loads(line) for line in data.comparisons.path.read_text(encoding="utf-8").splitlines()]
        real = register.save(self._save, data.comparisons, f"society {seed}")
        placebo = self._imported(shuffled(told, seed), f"placebo {seed}")
        mixed_in = None
        if data.realignment is not None:
            mixed_in = register.save(self._save, data.realignment, f"realignment {seed}")
        models = {
            kind: self._aligned(f"{kind}-{seed}", dataset, mixed_in, base, seed, preset)
            for kind, dataset in ((ALIGNED, real), (PLACEBO, placebo))
        }
        found: dict[str, list[float]] = {}
        for kind, model in models.items():
            found |= self._assessed(kind, model, base, held, seed)
        for aspect in ASPECTS:
            pairs = zip(found[f"{ALIGNED}, {aspect}"], found[f"{PLACEBO}, {aspect}"], strict=True)
            found[f"{ALIGNED} - {PLACEBO}, {aspect}"] = [new - old for new, old in pairs]
        return found

    def _society(self, asked: Sequence[str], seed: int) -> int:
        config = {**WORLD, "seed": seed}
        spec = SocietySpec.read({"agents": {AGENT: 1.0}, "observers": [OBSERVER], "config": config})
        questions, priors = QuestionList("the benchmark", asked), PriorMemories("shipped", read_priors())
        with writing() as session:
            number = societies.create(session, spec, questions, priors, queued=False).id
        return self._run(SOCIETY, number)

    def _base(self, society: int, seed: int) -> str:
        """A model that answers like the society's agents, regardless of ratings."""
        with reading() as session:
            every = list(read_interactions(session, society))
        rows = [
            {"messages": [{"role": "user", "content": each.question}, {"role": "assistant", "content": text}]}
            for each in every
            for text in (each.draft, each.revision)
        ]
        fields = {**TINY, "seed": seed, "threads": self._threads}
        return self._trained(
            TrainingSpec(
                method="tiny",
                dataset=str(self._imported(rows, f"answers {seed}")),
                name=f"{BASE}-{seed}",
                config=fields,
            )
        )

    def _aligned(self, name: str, dataset: int, mixed_in: int | None, base: str, seed: int, preset: str) -> str:
        fields = {**preset_fields(METHOD, preset), **FITTED, "seed": seed, "threads": self._threads}
        sft_data = None if mixed_in is None else str(mixed_in)
        spec = TrainingSpec(method=METHOD, dataset=str(dataset), name=name, base=base, config=fields, sft_data=sft_data)
        return self._trained(spec)

    def _trained(self, spec: TrainingSpec) -> str:
        with writing() as session:
            number = trainings.create(session, spec, queued=False, home=self._home).id
        self._run(TRAINING, number)
        return spec.name

    def _imported(self, rows: Sequence[Any], name: str) -> int:
        path = self._home / f"{name}.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        with path.open("rb") as file, reading() as session:
            wanted = RowImport(file, DatasetImportSpec(file=str(path), format="parlor"))
            found = row_import.read_import(session, self._home, wanted)
        return row_import.register_read(self._save, wanted, found)

    def _assessed(self, kind: str, model: str, base: str, held: Sequence[str], seed: int) -> dict[str, list[float]]:
        sampling = AnswerSampling.read(SAMPLING._asdict())
        spec = AssessmentSpec(model=model, base=base, raters=(OBSERVER,), sampling=sampling, seed=seed)
        with reading() as session:
            unknown = held_out(session, self._home, (model, base), held)
        assert not unknown.known
        with writing() as session:
            number = assessments.create(session, spec, QuestionList("held out", held), unknown, queued=False).id
        self._run(ASSESSMENT, number)
        found: dict[str, list[float]] = {}
        with reading() as session:
            rated = assessments.answers_of(session, number)
        for aspect in ASPECTS:
            of_model, of_base = (
                [getattr(each, aspect)[0] for each in rated if each.of_base is of_base] for of_base in (False, True)
            )
            found |= {f"{kind}, {aspect}": of_model, f"{BASE}, {aspect}": of_base}
            found[f"{kind} - {BASE}, {aspect}"] = [new - old for new, old in zip(of_model, of_base, strict=True)]
        return found

    def _run(self, kind: JobKind[Any], number: int) -> int:
        run_job_here(kind, number)
        with reading() as session:
            row = kind.get(session, number)
            assert row.status == states.DONE, f"{kind.subject(number)}: {row.error}"
        return number


def shuffled(rows: Sequence[Any], seed: int) -> list[Any]:
    """The same rows with each query's ratings shuffled, so that they say nothing about its responses."""
    rng = random.Random(f"placebo {seed}")
    return [{**row, "scores": rng.sample(row["scores"], len(row["scores"]))} for row in rows]


def _questions(seed: int) -> tuple[list[str], list[str]]:
    drawn = random.Random(f"questions {seed}").sample(QUESTIONS, ASKED + HELD_OUT)
    return drawn[:ASKED], drawn[ASKED:]


def measure(seeds: int, preset: str, threads: int) -> dict[str, Any]:
    """Means over all questions of all seeds; intervals resample seeds, as each has a training of its own."""
    by_seed: list[dict[str, list[float]]] = []
    for seed in range(1, seeds + 1):
        with fresh_parlor(SMALL_MODELS=False) as settings:
            by_seed.append(BenchedParlor(settings.PARLOR_HOME, threads).measure(seed, preset))
        difference = np.mean(by_seed[-1][f"{ALIGNED} - {PLACEBO}, {ASPECTS[0]}"])
        print(f"seed {seed}: {ALIGNED} - {PLACEBO} {difference:+.2f}", file=sys.stderr, flush=True)
    names = list(by_seed[0])
    units = np.repeat(np.arange(seeds), HELD_OUT)
    pooled = {name: mean_figure(np.array([value for each in by_seed for value in each[name]]), units) for name in names}
    means = {name: [float(np.mean(each[name])) for each in by_seed] for name in names}
    figures = {name: {**figure._asdict(), "by_seed": means[name]} for name, figure in pooled.items()}
    return {"preset": preset, "seeds": seeds, "questions": HELD_OUT, "figures": figures}


def table(found: dict[str, Any]) -> str:
    """All results, for a terminal."""
    lines = [
        f"{METHOD}, preset {found['preset']}: {found['seeds']} seeds, {found['questions']} held-out questions each"
    ]
    width = max(map(len, found["figures"]))
    for name, figure in found["figures"].items():
        sign = "+" if " - " in name else ""
        by_seed = " ".join(f"{value:{sign}.2f}" for value in figure["by_seed"])
        interval = f"({figure['no_interval']})"
        if figure["low"] is not None:
            interval = f"({figure['low']:{sign}.2f} to {figure['high']:{sign}.2f})"
        lines.append(f"{name:<{width}}  {figure['value']:{sign}.2f} {interval}  by seed: {by_seed}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """0: measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.alignment", description="Measures alignment by a society.")
    parser.add_argument("--seeds", type=int, default=10, help="societies, models and sets of questions (10)")
    parser.add_argument("--preset", choices=list(MIXING), default="published", help="of the training (published)")
    parser.add_argument("--threads", type=int, default=1, help="of each training (1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    found = measure(options.seeds, options.preset, options.threads)
    print(json.dumps(found) if options.json else table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
