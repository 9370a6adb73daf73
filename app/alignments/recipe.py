"""The recipe of an alignment: the steps that its spec amounts to. Pure."""

from collections.abc import Sequence

from app.alignments.spec import ALIGN, SFT, AlignmentSpec, read_preset
from app.alignments.step_names import (
    ASSESSMENT,
    BEST_RESPONSES,
    COMPARISONS,
    DEMONSTRATIONS,
    FIRST_SOCIETY,
    SECOND_SOCIETY,
    TRAINING,
)
from app.games.base import JSON
from app.recipes.expressions import literal
from app.recipes.recipe_file import FORMAT, RecipeFile

_LONGEST_NAME = 80  # of societies and datasets


def recipe_of(spec: AlignmentSpec, name: str, *, rated: bool) -> RecipeFile:
    """The recipe of an alignment of that name.

    `rated`: its demonstrations are rated responses, of which the best are learnt.
    """
    return RecipeFile.model_validate(document_of(spec, name, rated=rated))


def document_of(spec: AlignmentSpec, name: str, *, rated: bool) -> JSON:
    """The recipe as it is written to a file."""
    first, aligned = model_names(name)
    learner, called = "${base}", spec.base
    steps: list[JSON] = []
    if spec.demonstrations is not None:
        learner, called, dataset = f"${{{DEMONSTRATIONS}.model}}", first, spec.demonstrations
        if rated:
            best = {"dataset": dataset, "name": _run_name_with_suffix(name, " demonstrations")}
            steps.append({"name": BEST_RESPONSES, "do": "best-responses", "with": best})
            dataset = f"${{{BEST_RESPONSES}.dataset}}"
        taught = _training(SFT, dataset, "${run}-sft", {"seed": spec.seed, **spec.sft}, "${base}")
        steps.append({"name": DEMONSTRATIONS, "do": "training", "with": taught})
    aligned_model = f"${{{TRAINING}.model}}"
    mixed = {"society": f"${{{FIRST_SOCIETY}.society}}", "mixing": read_preset(spec.preset).mixing, "seed": spec.seed}
    trained = _training(ALIGN, f"${{{COMPARISONS}.dataset}}", "${run}-aligned", spec.fields, learner)
    assessed = {
        "model": aligned_model,
        "base": learner,
        "raters": [*map(literal, spec.judges)],
        "sampling": spec.sampling.model_dump(mode="json", exclude_none=True),
        "seed": spec.seed,
    }
    steps += [
        {
            "name": FIRST_SOCIETY,
            "do": "society",
            "with": _society(spec, learner, _run_name_with_suffix(name, f": {called}")),
        },
        {"name": COMPARISONS, "do": "comparisons", "with": {**mixed, "name": "${run}"}},
        {"name": TRAINING, "do": "training", "with": {**trained, "sft_data": f"${{{COMPARISONS}.realignment}}"}},
        {
            "name": SECOND_SOCIETY,
            "do": "society",
            "with": _society(spec, aligned_model, _run_name_with_suffix(name, f": {aligned}")),
        },
        {"name": ASSESSMENT, "do": "assessment", "with": assessed},
    ]
    return {"recipe": "alignment", "version": FORMAT, "inputs": {"base": spec.base}, "steps": steps}


def model_names(name: str) -> Sequence[str]:
    """The names of an alignment's models: that trained on demonstrations, and that trained on the society."""
    return f"{name}-sft", f"{name}-aligned"


def _society(spec: AlignmentSpec, learner: str, name: str) -> JSON:
    """A society with the model that learns."""
    return {
        "agents": {learner: spec.share, **{literal(model): share for model, share in spec.agents.items()}},
        "observers": [*map(literal, spec.observers)],
        "embedder": literal(spec.embedder),
        "config": spec.society.model_dump(mode="json", exclude_none=True),
        "name": name,
        "seed": spec.seed,
    }


def _run_name_with_suffix(name: str, rest: str) -> str:
    """A name that begins with the run's name, `name`, cut to the longest length allowed."""
    return "${run}" + str(literal(f"{name}{rest}"[:_LONGEST_NAME].removeprefix(name)))


def _training(method: str, dataset: str, name: str, config: JSON, base: str) -> JSON:
    fields = {field: literal(value) for field, value in config.items()}
    return {"method": method, "dataset": dataset, "name": name, "base": base, "config": fields}
