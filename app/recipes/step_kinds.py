"""The kinds of step in a recipe: the spec that checks their fields, what they take from earlier steps, and what they
give to later ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.assessments.spec import AssessmentSpec
from app.benchmarks.spec import BenchmarkSpec
from app.benchmarks.tasks import read_tasks
from app.core.errors import Invalid, Phrase, refusals_within
from app.datasets.importers.spec import DatasetImportSpec
from app.datasets.importers.training_rows import FORMATS
from app.datasets.row_fields import is_drawn
from app.datasets.spec import DatasetRequestSpec
from app.finetuning.backends import all_backends
from app.finetuning.config import LOCAL
from app.finetuning.spec import TrainingSpec
from app.games import find_game, formula_of, permutations_of
from app.games.rewards import NO_REWARDS
from app.jobs.spec import JobSpec
from app.recipes.operations import BestResponsesSpec, CompareSpec, ComparisonsSpec, EvaluateSpec
from app.rounds.spec import RoundSpec
from app.society.embedders import check_embedder
from app.society.spec import SocietySpec
from training.methods import all_methods
from training.methods.base import COMPARISONS, Need

# What steps pass to each other, as named in messages.
MODEL, ROUND, SOCIETY = "a model", "a round", "a society"
CONVERSATION_DATA = "a dataset of conversations"
REWARDED_DATA = "a dataset of conversations with rewards"
COMPARISON_DATA = "a dataset of comparisons"
ANY_DATA = "a dataset"  # whose type only its rows tell
DATASETS = (CONVERSATION_DATA, REWARDED_DATA, COMPARISON_DATA, ANY_DATA)
_CONVERSATIONS = (CONVERSATION_DATA, REWARDED_DATA, ANY_DATA)
TRAINING, ASSESSMENT, BENCHMARK, FIGURES, TABLE = "a training", "an assessment", "a benchmark", "figures", "a table"

Fields = Mapping[str, Any]
Takes = Mapping[str, Sequence[str]]


def _checks_nothing(_spec: Any) -> None:
    pass


@dataclass(frozen=True, slots=True)
class StepKind:
    """A kind of step.

    takes: the types accepted by each field that may name an output of an earlier step; they may depend on
    the other fields, as may what the step `gives`: each output's name with its type, the first being the
    default.
    files: fields that name a file beside the recipe. seed: the path of a seed that is derived from the run's
    if not given; `same_seed`: whether it is the same in all iterations of a loop. check: checks beyond those
    of the spec; raises FieldError.
    """

    name: str
    spec: type[JobSpec]
    takes: Callable[[Fields], Takes]
    gives: Callable[[Fields], Mapping[str, str]]
    files: Sequence[str] = ()
    seed: Callable[[Fields], tuple[str, ...]] = lambda _fields: ("seed",)
    same_seed: bool = False
    check: Callable[[Any], None] = _checks_nothing


# ---- Trainings -------------------------------------------------------------------


def _taken_by_training(fields: Fields) -> Takes:
    method = all_methods().get(str(fields.get("method")))
    data: Sequence[str] = DATASETS
    if method is not None and method.rows.kind == COMPARISONS:
        data = (COMPARISON_DATA, ANY_DATA)
    elif method is not None:
        data = (REWARDED_DATA, ANY_DATA) if Need.REWARDS in method.needs else _CONVERSATIONS
    return {"dataset": data, "sft_data": _CONVERSATIONS, "base": (MODEL,), "reference": (MODEL,)}


def _seed_of_training(fields: Fields) -> tuple[str, ...]:
    """The path of a training's seed; empty where the backend, such as a vendor's, has none."""
    backend, method = all_backends().get(str(fields.get("backend", LOCAL))), str(fields.get("method"))
    has_one = backend is not None and method in all_methods() and "seed" in backend.fields(method)
    return ("config", "seed") if has_one else ()


# ---- What is played --------------------------------------------------------------


def _check_game(spec: RoundSpec | EvaluateSpec) -> None:
    with refusals_within("config"):
        find_game(spec.game).config(dict(spec.config))
    spec.sampling.of_game(spec.game)


def _check_round(spec: RoundSpec) -> None:
    if spec.cross_play:
        raise Invalid("cross_play", expected="a round of two models, or of one with itself", got=True)
    if spec.swap_seats and spec.matches is not None and spec.matches % 2:
        raise Invalid("matches", expected=Phrase("an even number where seats are swapped"), got=spec.matches)
    _check_game(spec)


def _check_kept(spec: DatasetRequestSpec) -> None:
    if spec.rewards != NO_REWARDS and spec.matches.game is not None:
        formula_of(spec.matches.game)
    if spec.permutations and spec.matches.game is not None:
        permutations_of(spec.matches.game)


def _check_benchmark(spec: BenchmarkSpec) -> None:
    read_tasks(spec.tasks)


def _check_society(spec: SocietySpec) -> None:
    check_embedder(spec.embedder)


def _outputs_of_keep_step(fields: Fields) -> Mapping[str, str]:
    return {"dataset": CONVERSATION_DATA if fields.get("rewards", NO_REWARDS) == NO_REWARDS else REWARDED_DATA}


def _imported(fields: Fields) -> Mapping[str, str]:
    form = FORMATS.get(str(fields.get("format")))
    if form is None or form.kind is None:
        return {"dataset": ANY_DATA}
    if form.kind == COMPARISONS:
        return {"dataset": COMPARISON_DATA}
    return {"dataset": REWARDED_DATA if form.name == "spag-rows" else CONVERSATION_DATA}


_KINDS = (
    StepKind(
        "round",
        RoundSpec,
        lambda _fields: {"models": (MODEL,), "talk_of": (ROUND,)},
        lambda _fields: {"round": ROUND},
        files=("material",),
        check=_check_round,
    ),
    StepKind(
        "keep",
        DatasetRequestSpec,
        lambda _fields: {"rounds": (ROUND,), "models": (MODEL,)},
        _outputs_of_keep_step,
        seed=lambda fields: ("seed",) if is_drawn(fields) else (),
        check=_check_kept,
    ),
    StepKind(
        "import",
        DatasetImportSpec,
        lambda _fields: {},
        _imported,
        files=("file",),
        seed=lambda _fields: (),
    ),
    StepKind(
        "best-responses",
        BestResponsesSpec,
        lambda _fields: {"dataset": (COMPARISON_DATA, ANY_DATA)},
        lambda _fields: {"dataset": CONVERSATION_DATA},
        seed=lambda _fields: (),
    ),
    StepKind(
        "training",
        TrainingSpec,
        _taken_by_training,
        lambda _fields: {"model": MODEL, "training": TRAINING},
        seed=_seed_of_training,
    ),
    StepKind(
        "evaluate",
        EvaluateSpec,
        lambda _fields: {"model": (MODEL,), "against": (MODEL,), "beside": (FIGURES,), "talk_of": (ROUND,)},
        lambda _fields: {"figures": FIGURES, "round": ROUND},
        files=("material",),
        same_seed=True,
        check=_check_game,
    ),
    StepKind(
        "benchmark",
        BenchmarkSpec,
        lambda _fields: {"model": (MODEL,)},
        lambda _fields: {"figures": FIGURES, "benchmark": BENCHMARK},
        seed=lambda _fields: (),
        check=_check_benchmark,
    ),
    StepKind(
        "society",
        SocietySpec,
        lambda _fields: {"agents": (MODEL,), "systems": (MODEL,), "observers": (MODEL,)},
        lambda _fields: {"society": SOCIETY},
        files=("questions", "priors"),
        check=_check_society,
    ),
    StepKind(
        "comparisons",
        ComparisonsSpec,
        lambda _fields: {"society": (SOCIETY,)},
        lambda _fields: {"dataset": COMPARISON_DATA, "realignment": CONVERSATION_DATA},
    ),
    StepKind(
        "assessment",
        AssessmentSpec,
        lambda _fields: {"model": (MODEL,), "base": (MODEL,), "raters": (MODEL,)},
        lambda _fields: {"figures": FIGURES, "assessment": ASSESSMENT},
        files=("questions",),
    ),
    StepKind(
        "compare",
        CompareSpec,
        lambda _fields: {"of": (FIGURES,)},
        lambda _fields: {"table": TABLE},
        seed=lambda _fields: (),
    ),
)
STEP_KINDS: Mapping[str, StepKind] = {kind.name: kind for kind in _KINDS}
