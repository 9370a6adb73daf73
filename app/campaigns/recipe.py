"""The recipe of a campaign: the steps that its spec amounts to. Pure.

Rounds, evaluations and trainings have seeds derived from the campaign's seed and from their iteration. Names are those
shown in lists: "NAME, round 3", and NAME-3 for a model and the dataset that it learnt from.
"""

from collections.abc import Mapping
from typing import Any

from app.campaigns.spec import ALL_ROUNDS, BASE, CampaignSpec, EvaluationSpec, needs_rewards
from app.campaigns.step_names import (
    EVALUATE,
    ITERATION,
    KEEP,
    KEEP_TAUGHT,
    OF_BASE,
    PLAY,
    PLAY_WITH,
    TEACH,
    TRAIN,
    TRAIN_FIRST,
)
from app.datasets.filters import NONZERO
from app.datasets.row_fields import is_drawn
from app.games.base import JSON
from app.games.rewards import NO_REWARDS
from app.recipes.expressions import literal
from app.recipes.recipe_file import FORMAT, RecipeFile
from app.rounds.plan import match_seed
from app.rounds.spec import MOST_NAME

_NAMED = f"${{run}}-${{{ITERATION}}}"


def recipe_of(spec: CampaignSpec, name: str, style: str | None) -> RecipeFile:
    """The recipe of a campaign of that name, whose base has that prompt style; `spec` has a number of matches."""
    return RecipeFile.model_validate(document_of(spec, name, style))


def document_of(spec: CampaignSpec, name: str, style: str | None) -> JSON:
    """The recipe as it is written to a file."""
    numbers = [*range(1, spec.total + 1)]
    seeds = [match_seed(spec.seed, number) for number in numbers]
    inputs: JSON = {
        "base": spec.base,
        "iterations": spec.total,
        "seeds": seeds,
        "training_seeds": [seed % 2**32 for seed in seeds],
        "evaluation_seed": match_seed(spec.seed, 0),
    }
    writer = _Writer(spec, name, style)
    steps = [*writer.evaluations(OF_BASE, "${base}", "0"), *writer.start(), *writer.played()]
    for place in range(len(spec.matches_against)):
        inputs[_seeds_with(place)] = [match_seed(seed, 1 + place) for seed in seeds]
    steps += [*writer.learnt(), *writer.evaluations("", _learner_of(spec), f"${{{ITERATION}}}")]
    return {"recipe": "campaign", "version": FORMAT, "inputs": inputs, "steps": steps}


def evaluation_names(spec: CampaignSpec) -> Mapping[str, str]:
    """The labels of all evaluations of a model, by step name; the first has none."""
    return {_evaluation_name(place): each.label for place, each in enumerate([spec.as_played, *spec.further])}


def _evaluation_name(place: int) -> str:
    return EVALUATE if place == 0 else f"{EVALUATE}_{1 + place}"


def _seeds_with(place: int) -> str:
    return f"seeds_with_{1 + place}"


def _learner_of(spec: CampaignSpec) -> str:
    """The model of an iteration."""
    return f"${{{TRAIN}.model or {TRAIN_FIRST}.model}}" if spec.has_start else f"${{{TRAIN}.model}}"


class _Writer:
    """Writes the steps of a campaign."""

    def __init__(self, spec: CampaignSpec, name: str, style: str | None) -> None:
        self._spec, self._style = spec, style
        self._room = MOST_NAME - len(name)  # for the rest of a round's name
        first = f" or previous.{TRAIN_FIRST}.model" if spec.has_start else ""
        self._latest = f"${{previous.{TRAIN}.model{first} or base}}"
        self._in_first = {"for": f"{ITERATION} in 1..iterations", "when": f"{ITERATION} == 1"}
        self._in_loop = {"for": f"{ITERATION} in 1..iterations"}
        if spec.has_start:
            self._in_loop["when"] = f"{ITERATION} > 1"

    def start(self) -> list[JSON]:
        """The steps before the model's own rounds: a teacher's round, and the training on it or on a dataset."""
        spec = self._spec
        if not spec.has_start:
            return []
        dataset, found = spec.start_data or "", []
        if spec.teacher is not None:
            dataset = f"${{{KEEP_TAUGHT}.dataset}}"
            played = self._round_step_fields(
                (literal(spec.teacher),), spec.matches_of_round, "seeds", {}, f", {spec.teacher}"
            )
            kept = {"rounds": [f"${{{TEACH}.round}}"], **self._fields_of_keep_step(NONZERO)}
            found = [
                {"name": TEACH, "do": "round", **self._in_first, "with": played},
                {"name": KEEP_TAUGHT, "do": "keep", **self._in_first, "with": kept},
            ]
        trained = self._training(spec.start_method, spec.start_training, dataset)
        return [
            *found,
            {"name": TRAIN_FIRST, "do": "training", **self._in_first, "with": {**trained, "base": "${base}"}},
        ]

    def played(self) -> list[JSON]:
        """The rounds of an iteration: the newest model with itself, and with each partner."""
        spec, against = self._spec, self._spec.matches_against
        newest = self._latest
        sampling = spec.sampling.options()
        alone = spec.matches_of_round - sum(against.values())
        steps = [(PLAY, self._round_step_fields((newest,), alone, "seeds", sampling, ""))]
        for place, (partner, matches) in enumerate(against.items()):
            names = (newest, literal(partner))
            with_it = self._round_step_fields(names, matches, _seeds_with(place), sampling, f", with {partner}")
            steps.append((f"{PLAY_WITH}_{1 + place}", with_it))
        return [{"name": name, "do": "round", **self._in_loop, "with": fields} for name, fields in steps]

    def learnt(self) -> list[JSON]:
        """The dataset of an iteration, of what the learning models but not their partners said, and the training.

        For a method that learns from rewards, the reference is the model that played, whichever model is trained
        further.
        """
        spec = self._spec
        so_far = "all." if spec.data_of == ALL_ROUNDS else ""
        rounds = [PLAY, *(f"{PLAY_WITH}_{1 + place}" for place in range(len(spec.matches_against)))]
        kept: JSON = {
            "rounds": [f"${{{so_far}{name}.round}}" for name in rounds],
            **self._fields_of_keep_step(spec.kept),
            **spec.of_rows,
        }
        if is_drawn(kept):
            kept["seed"] = f"${{training_seeds[{ITERATION}]}}"
        if spec.matches_against:
            kept["models"] = self._learners()
        trained = self._training(spec.method, spec.training, f"${{{KEEP}.dataset}}")
        trained["base"] = "${base}" if spec.start == BASE else self._latest
        if spec.start == BASE and needs_rewards(spec.method):
            trained["reference"] = self._latest
        if spec.sft_data is not None:
            trained["sft_data"] = spec.sft_data
        return [
            {"name": KEEP, "do": "keep", **self._in_loop, "with": kept},
            {"name": TRAIN, "do": "training", **self._in_loop, "with": trained},
        ]

    def evaluations(self, ending: str, model: str, number: str) -> list[JSON]:
        """All evaluations of a model, each beside the base's. They have the same matches for every model."""
        found = []
        for place, each in enumerate([self._spec.as_played, *self._spec.further]):
            name = _evaluation_name(place)
            fields = self._evaluation(each, model, number)
            if not ending:
                fields["beside"] = f"${{{name}{OF_BASE}.figures}}"
            loop = {} if ending else {"for": f"{ITERATION} in 1..iterations"}
            found.append({"name": f"{name}{ending}", "do": "evaluate", **loop, "with": fields})
        return found

    # ---- Fields --------------------------------------------------------------------

    def _game_fields(self, sampling: JSON) -> JSON:
        spec = self._spec
        config = {name: literal(value) for name, value in spec.config.items()}
        return {"game": spec.game, "config": config, "lenient": spec.lenient, "sampling": {**sampling}}

    def _round_name(self, what: str, number: str, more: str) -> str:
        """The name of a round, cut to the longest length allowed."""
        width = len(str(self._spec.total)) if "$" in number else len(number)
        rest: str = literal(more[: max(0, self._room - len(f", {what} ") - width)])
        return f"${{run}}, {what} {number}{rest}"

    def _round_step_fields(self, models: tuple[str, ...], matches: int, seeds: str, sampling: JSON, more: str) -> JSON:
        fields: JSON = {**self._game_fields(sampling), "models": [*models], "matches": matches}
        if len(models) > 1:
            fields["swap_seats"] = True  # half the matches from each seat
        called = self._round_name("round", f"${{{ITERATION}}}", more)
        return {**fields, "seed": f"${{{seeds}[{ITERATION}]}}", "name": called}

    def _evaluation(self, each: EvaluationSpec, model: str, number: str) -> JSON:
        matches = self._spec.evaluation
        fields: JSON = {**self._game_fields(each.sampling), "model": model, "matches": matches}
        if each.partner:
            fields |= {"against": literal(each.partner), "matches": matches - matches % 2}  # as many from each seat
        more = f", {each.label}" if each.label else ""
        return {**fields, "seed": "${evaluation_seed}", "name": self._round_name("evaluation", number, more)}

    def _fields_of_keep_step(self, filter_: str) -> JSON:
        spec = self._spec
        fields: JSON = {"filter": filter_, "name": _NAMED}
        if self._style is not None:
            fields["style"] = self._style
        if spec.given_rewards == NO_REWARDS:
            return fields
        rewarded = {"decay": spec.given_decay, "role_weights": spec.role_weights, "positive_only": spec.positive_only}
        return {**fields, "rewards": spec.given_rewards, **rewarded}

    def _learners(self) -> list[str]:
        """The models that played with themselves in the rounds to learn from."""
        if self._spec.data_of != ALL_ROUNDS:
            return [self._latest]
        first = f"all.{TRAIN_FIRST}.model" if self._spec.has_start else "base"
        return [f"${{{first}}}", f"${{all.{TRAIN}.model or {first}}}"]

    def _training(self, method: str, given: Mapping[str, Any], dataset: str) -> JSON:
        config = {"seed": f"${{training_seeds[{ITERATION}]}}"} | {name: literal(value) for name, value in given.items()}
        return {"method": method, "dataset": dataset, "name": _NAMED, "config": config}
