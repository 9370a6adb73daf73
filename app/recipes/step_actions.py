"""The engine's actions for each kind of step: what is prepared between transactions, the job that is created, and the
figures that are measured when it is done.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.analysis.evaluations import figures_of_model
from app.assessments import lifecycle as assessments
from app.assessments import listing as assessment_listing
from app.assessments import training_overlap
from app.assessments.job import ASSESSMENT
from app.assessments.spec import AssessmentSpec
from app.benchmarks import lifecycle as benchmarks
from app.benchmarks.job import BENCHMARK
from app.benchmarks.listing import mean_of, results_of, score_of
from app.benchmarks.scores import MeasuredScore
from app.benchmarks.spec import BenchmarkSpec
from app.core.extensions import reading, transact
from app.datasets import build, register, row_import, store
from app.datasets.best_responses import best_responses
from app.datasets.importers.spec import DatasetImportSpec
from app.datasets.spec import DatasetRequestSpec
from app.finetuning import lifecycle as trainings
from app.finetuning.config import LOCAL
from app.finetuning.job import TRAINING
from app.finetuning.spec import TrainingBudget, TrainingSpec
from app.jobs.context import JobContext
from app.jobs.kind import requester_of
from app.jobs.spec import JobBudget, JobSpec
from app.models import LanguageModel, RecipeStep, TrainingJob
from app.recipes.operations import BestResponsesSpec, CompareSpec, ComparisonsSpec, EvaluateSpec
from app.recipes.stepped import SteppedKind
from app.recipes.tables import JSON, ComparedStep, table_of
from app.registry.prompts import NO_PROMPT
from app.rounds import lifecycle as rounds
from app.rounds.job import ROUND
from app.rounds.lifecycle import Material
from app.rounds.plan import IN_ORDER, SHUFFLED
from app.rounds.spec import RoundSpec
from app.society import dataset as society_data
from app.society import lifecycle as societies
from app.society.job import SOCIETY
from app.society.spec import SocietySpec

_Z = 1.959963984540054  # 95 % of a normal distribution lie within it


class StepInputs:
    """The material and files of steps; none by default, for owners of steps that have none.

    Each method raises Invalid for unusable input.
    """

    def played(self, _spec: RoundSpec) -> Material | None:
        """The material of a round; None where all matches share one piece, or there is none."""
        return None

    def held_out(self, _spec: EvaluateSpec) -> Material | None:
        """The material of an evaluation."""
        return None

    def files_of(self, _spec: JobSpec) -> dict[str, Any]:
        """The contents of a spec's files, by field."""
        return {}

    def text_of(self, name: str) -> str:
        """The text of a file with rows. Raises KeyError if it does not exist."""
        raise KeyError(name)


class StepContext(NamedTuple):
    """The context in which a step is prepared: who runs it, the job kind that it belongs to, and its inputs."""

    job: JobContext
    kind: SteppedKind[Any]
    inputs: StepInputs


@dataclass(frozen=True, slots=True)
class StepAction:
    """The action for a kind of step.

    prepare: work that is too long for a transaction; if repeated, it leaves nothing that is referred to. begin: the
    columns of the step's row, created with its job in one transaction. measure: its figures once the job is done.
    """

    begin: Callable[[Session, StepContext, Any, Any, Any], JSON]
    prepare: Callable[[StepContext, Any, Mapping[str, RecipeStep]], Any] = lambda _context, _spec, _steps: None
    measure: Callable[[Session, RecipeStep, Mapping[str, RecipeStep]], JSON] | None = None


# ---- Jobs ------------------------------------------------------------------------


def _budget(session: Session, context: StepContext, row: Any, own: JobBudget) -> JobBudget:
    """The budget of a job: what is left of the run's budget, or its own if that is less. Raises BudgetReached."""
    left = context.kind.budget_left(session, row)

    def least(one: Any, other: Any) -> Any:
        return min((each for each in (one, other) if each is not None), default=None)

    return type(own)(usd=least(left.usd, own.usd), tokens=least(left.tokens, own.tokens))


def _played_material(context: StepContext, spec: RoundSpec, _steps: Mapping[str, RecipeStep]) -> Material | None:
    return context.inputs.played(spec)


def _held_out_material(context: StepContext, spec: EvaluateSpec, _steps: Mapping[str, RecipeStep]) -> Material | None:
    return context.inputs.held_out(spec)


def _play(session: Session, context: StepContext, row: Any, spec: RoundSpec, material: Material | None) -> JSON:
    whole = spec.model_copy(
        update={"budget": _budget(session, context, row, spec.budget), "pick": spec.pick or SHUFFLED}
    )
    return _create_round(session, row, whole, material)


def _evaluate(session: Session, context: StepContext, row: Any, spec: EvaluateSpec, material: Material | None) -> JSON:
    whole = RoundSpec(
        game=spec.game,
        models=(spec.model, spec.against or spec.model),
        swap_seats=spec.against is not None,
        matches=spec.matches,
        config=spec.config,
        lenient=spec.lenient,
        pick=IN_ORDER,
        prompts=() if spec.prompt is None else (spec.prompt, spec.prompt if spec.against is None else NO_PROMPT),
        talk_of=spec.talk_of,
        sampling=spec.sampling,
        name=spec.name,
        seed=spec.seed,
        budget=_budget(session, context, row, spec.budget),
    )
    return _create_round(session, row, whole, material)


def _create_round(session: Session, row: Any, spec: RoundSpec, material: Material | None) -> JSON:
    requester = requester_of(row)
    made = rounds.create(session, spec, material, queued=row.queued, goes_on=True, requester=requester)
    return {"kind": ROUND.name, "number": made.id}


def _train(session: Session, context: StepContext, row: Any, spec: TrainingSpec, _prepared: None) -> JSON:
    if spec.backend != LOCAL:
        budget = _budget(session, context, row, spec.budget)
        spec = spec.model_copy(update={"budget": TrainingBudget(usd=budget.usd, tokens=budget.tokens)})
    home, requester = context.job.settings.home, requester_of(row)
    made = trainings.create(session, spec, queued=row.queued, home=home, goes_on=True, requester=requester)
    return {"kind": TRAINING.name, "number": made.id}


def _score(session: Session, context: StepContext, row: Any, spec: BenchmarkSpec, _prepared: None) -> JSON:
    whole = spec.model_copy(update={"budget": _budget(session, context, row, spec.budget)})
    home, requester = context.job.settings.home, requester_of(row)
    made = benchmarks.create(session, whole, queued=row.queued, home=home, requester=requester)
    return {"kind": BENCHMARK.name, "number": made.id}


def _live(session: Session, context: StepContext, row: Any, spec: SocietySpec, files: JSON) -> JSON:
    whole = spec.model_copy(update={"budget": _budget(session, context, row, spec.budget)})
    made = societies.create(session, whole, **files, queued=row.queued, requester=requester_of(row))
    return {"kind": SOCIETY.name, "number": made.id}


def _prepare_assessment(context: StepContext, spec: AssessmentSpec, _steps: Mapping[str, RecipeStep]) -> Any:
    asked = context.inputs.files_of(spec)["questions"]
    with reading(context.job.database) as session:
        models = spec.model, spec.base
        return asked, training_overlap.held_out(session, context.job.settings.home, models, asked.questions)


def _assess(session: Session, context: StepContext, row: Any, spec: AssessmentSpec, prepared: Any) -> JSON:
    whole = spec.model_copy(update={"budget": _budget(session, context, row, spec.budget)})
    requester = requester_of(row)
    made = assessments.create(session, whole, *prepared, queued=row.queued, requester=requester, goes_on=True)
    return {"kind": ASSESSMENT.name, "number": made.id}


# ---- Datasets and tables ---------------------------------------------------------


def _cut(context: StepContext, spec: DatasetRequestSpec, _steps: Mapping[str, RecipeStep]) -> int:
    home = context.job.settings.home
    with reading(context.job.database) as session:
        found = build.prepare(session, spec.cut)
        draft = store.write(home, found, build.training_rows(session, found))
    return register.add(transact(context.job.database), draft, str(spec.name))


def _publish_dataset(session: Session, _context: StepContext, _row: Any, _spec: JobSpec, number: int) -> JSON:
    return {"dataset_id": register.publish(session, number).id}


def _best(context: StepContext, spec: BestResponsesSpec, _steps: Mapping[str, RecipeStep]) -> int:
    with reading(context.job.database) as session:
        draft = best_responses(context.job.settings.home, store.find_dataset(session, spec.dataset))
    return register.add(transact(context.job.database), draft, str(spec.name))


def _read_rows(context: StepContext, spec: DatasetImportSpec, _steps: Mapping[str, RecipeStep]) -> int:
    wanted = row_import.RowImport(BytesIO(context.inputs.text_of(spec.file).encode()), spec)
    with reading(context.job.database) as session:
        found = row_import.read_import(session, context.job.settings.home, wanted)
    return row_import.register_read(transact(context.job.database), wanted, found)


def _imported(_session: Session, _context: StepContext, _row: Any, _spec: JobSpec, number: int) -> JSON:
    return {"dataset_id": number}


def _prepare_comparisons(
    context: StepContext, spec: ComparisonsSpec, _steps: Mapping[str, RecipeStep]
) -> tuple[int, int | None]:
    with reading(context.job.database) as session:
        home, number = context.job.settings.home, int(spec.society)
        found = society_data.build(session, home, number, spec.mixing, spec.seed or 0)
    return society_data.register_both(transact(context.job.database), found, str(spec.name), register.add)


def _with_realignment(
    session: Session, _context: StepContext, _row: Any, _spec: JobSpec, numbers: tuple[int, int | None]
) -> JSON:
    comparisons, realignment = numbers
    mixed_in = None if realignment is None else register.publish(session, realignment).id
    return {"dataset_id": register.publish(session, comparisons).id, "realignment_id": mixed_in}


def _compare(_context: StepContext, spec: CompareSpec, steps: Mapping[str, RecipeStep]) -> JSON:
    compared = [
        ComparedStep(each.name, each.values, each.spec.get("model"), each.figures or {})
        for each in (steps[key] for key in spec.of)
    ]
    return table_of(compared, spec.over, spec.figures)


# ---- Figures ---------------------------------------------------------------------


def _evaluated(session: Session, step: RecipeStep, steps: Mapping[str, RecipeStep]) -> JSON:
    """The figures of the model, compared with those of another evaluation if one is named."""
    beside = None if (key := step.spec.get("beside")) is None else steps[key]
    first = None if beside is None else (beside.number or 0, str(beside.spec["model"]))
    return figures_of_model(session, step.number or 0, str(step.spec["model"]), first)


def _scored(session: Session, step: RecipeStep, _steps: Mapping[str, RecipeStep]) -> JSON:
    """The score of each task, and their geometric mean where there are several."""
    row = BENCHMARK.get(session, step.number or 0)
    results = results_of(session, [row])[row.id]
    found = {each.task: {**_score_with_interval(score_of(each)), "n": each.n} for each in results}
    mean = mean_of(results) if len(results) > 1 else None
    return found if mean is None else {**found, "geometric_mean": _score_with_interval(mean)}


def _score_with_interval(score: MeasuredScore) -> JSON:
    half = None if score.stderr is None else _Z * score.stderr
    if half is None:
        return {"value": score.value, "low": None, "high": None}
    return {"value": score.value, "low": score.value - half, "high": score.value + half}


def _judged(session: Session, step: RecipeStep, _steps: Mapping[str, RecipeStep]) -> JSON:
    """The ratings of all raters combined, by aspect: both models, and their difference."""
    found: JSON = {}
    for each in assessment_listing.figures_of(session, ASSESSMENT.get(session, step.number or 0)):
        if each.aspect in found:
            continue  # one of several raters; single raters come after all of them together
        found[each.aspect] = each.difference._asdict()
        found |= {f"{each.aspect}_{name}": getattr(each, name)._asdict() for name in ("model", "base")}
    return found


# ---- By kind ---------------------------------------------------------------------

ACTIONS: Mapping[str, StepAction] = {
    "round": StepAction(_play, _played_material),
    "keep": StepAction(_publish_dataset, _cut),
    "import": StepAction(_imported, _read_rows),
    "best-responses": StepAction(_publish_dataset, _best),
    "training": StepAction(_train),
    "evaluate": StepAction(_evaluate, _held_out_material, _evaluated),
    "benchmark": StepAction(_score, measure=_scored),
    "society": StepAction(_live, lambda context, spec, _steps: context.inputs.files_of(spec)),
    "comparisons": StepAction(_with_realignment, _prepare_comparisons),
    "assessment": StepAction(_assess, _prepare_assessment, measure=_judged),
    "compare": StepAction(lambda _session, _context, _row, _spec, table: {"figures": table}, _compare),
}


def results_of_step(session: Session, step: RecipeStep) -> JSON:
    """The outputs of a finished step for later ones; None for what it has not made."""
    found: JSON = {"figures": step.key}
    if step.kind is not None:
        found[step.kind] = str(step.number)
    if step.kind == TRAINING.name:
        model = session.get_one(TrainingJob, step.number).model_id
        found["model"] = session.get_one(LanguageModel, model).name
    for output, number in (("dataset", step.dataset_id), ("realignment", step.realignment_id)):
        found[output] = None if number is None else str(number)
    return found
