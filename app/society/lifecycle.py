"""The lifecycle of a society: created, run by a worker, ended. Nothing here commits."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase
from app.jobs.holding import hold
from app.jobs.kind import Requester
from app.models import LanguageModel, Society
from app.registry.named import named_models
from app.registry.prices import check_budget
from app.society import store
from app.society.config import SocietyConfig
from app.society.embedders import check_embedder, registered
from app.society.estimate import SocietyEstimate, embedding_of, estimate_for
from app.society.job import SOCIETY
from app.society.material import PriorMemories, QuestionList
from app.society.population import models_of_agents
from app.society.prompts import TEMPLATE
from app.society.spec import SocietySpec
from app.society.world import first_memories, labels

MOST_QUESTIONS = 200_000
LONGEST_QUESTION = 20_000  # characters
Row = dict[str, Any]


class _Members(NamedTuple):
    """The members of a society as stored in its tables: the models of agents and of observers, and the agents."""

    models: Mapping[str, list[LanguageModel]]  # by the field that names them
    agents: list[Row]
    observers: list[Row]
    population: list[Row]


def create(
    session: Session,
    spec: SocietySpec,
    questions: QuestionList,
    priors: PriorMemories,
    *,
    queued: bool,
    requester: Requester | None = None,
) -> Society:
    """Create a waiting society, for workers if it is `queued`.

    Raises NotFound for an unknown model, Conflict for an archived one, and Invalid for all else that cannot be run.
    """
    members = _members(session, spec, questions, priors)
    hold(session, (model for models in members.models.values() for model in models))
    row = SOCIETY.new_row(
        queued=queued,
        requester=requester,
        spec=spec.to_json() | {"questions": questions.source, "priors": priors.source},
        name=_check_name(spec),
        config=spec.world.model_dump(mode="json"),
        agents=members.agents,
        observers=members.observers,
        embedder=spec.embedder,
        template=TEMPLATE,
        question_source=questions.source[-300:],
        questions=list(questions.questions),
        prior_source=priors.source[-300:],
        priors={label: [list(pair) for pair in pairs] for label, pairs in priors.pairs.items()},
        lease_count=0,
        **spec.budget.columns,
    )
    session.add(row)
    session.flush()
    store.insert_agents(session, ({"society_id": row.id, **each} for each in members.population))
    return row


def check(session: Session, spec: SocietySpec, questions: QuestionList, priors: PriorMemories) -> None:
    """Raises what `create` raises for a society that cannot be run, and writes nothing."""
    _members(session, spec, questions, priors)


def estimated(session: Session, spec: SocietySpec, questions: QuestionList, priors: PriorMemories) -> SocietyEstimate:
    """The estimate of a society. Raises what `create` raises."""
    members = _members(session, spec, questions, priors)
    first = {priors.pairs[each["label"]][place][0] for each in members.population for place in each["first_memories"]}
    embedding = embedding_of(spec.world, questions.questions, first)
    agents = [*zip(members.models["agents"], spec.agents.values(), strict=True)]
    return estimate_for(session, spec.world, agents, members.models["observers"], (spec.embedder, embedding))


def _members(session: Session, spec: SocietySpec, questions: QuestionList, priors: PriorMemories) -> _Members:
    if unknown := sorted({*spec.systems} - {*spec.agents}):
        raise Invalid("systems", expected=Phrase("models of agents"), got=unknown[0])
    models = named_models(session, spec)
    agents = [
        {"model_id": row.id, "model": row.name, "share": spec.agents[row.name], "system": row.name in spec.systems}
        for row in models["agents"]
    ]
    observers = [{"model_id": row.id, "model": row.name} for row in models["observers"]]
    check_budget(spec.budget, (*models["agents"], *models["observers"]))
    check_questions(questions)
    check_embedder(spec.embedder)
    registered.options_of(session, spec.embedder)
    return _Members(models, agents, observers, _population(spec.world, agents, priors))


def _population(config: SocietyConfig, models: list[Row], priors: PriorMemories) -> list[Row]:
    """The agents as stored in their table. Raises Invalid if a label has too few memories."""
    places = models_of_agents(config, [model["share"] for model in models])
    agents = []
    for agent, (label, place) in enumerate(zip(labels(config), places, strict=True)):
        pairs = priors.pairs.get(label, ())
        if len(pairs) < config.first_memories:
            raise Invalid(
                "priors",
                expected=Phrase(
                    "%(count)s or more memories labelled %(label)s in %(source)s",
                    count=config.first_memories,
                    label=label,
                    source=priors.source,
                ),
                got=len(pairs),
                remedy=Phrase("add some, or set first_memories lower"),
            )
        model = models[place]
        agents.append(
            {
                "agent": agent,
                "label": label,
                "model": model["model"],
                "model_id": model["model_id"],
                "first_memories": list(first_memories(config, agent, len(pairs))),
            }
        )
    return agents


def check_questions(given: QuestionList, field: str = "questions") -> None:
    """Raises Invalid for a list with no or too many questions, and for a question that no model can be asked."""
    if not 1 <= len(given.questions) <= MOST_QUESTIONS:
        raise Invalid(
            field,
            expected=Phrase("1 to %(most)s questions in %(source)s", most=MOST_QUESTIONS, source=given.source),
            got=len(given.questions),
            remedy=Phrase("write one on each line"),
        )
    for number, question in enumerate(given.questions, 1):
        if not 1 <= len(question.strip()) <= LONGEST_QUESTION:
            raise Invalid(
                field,
                expected=Phrase("1 to %(most)s characters", most=LONGEST_QUESTION),
                got=len(question.strip()),
                subject=Phrase("question %(number)s of %(source)s", number=number, source=given.source),
            )


def _check_name(spec: SocietySpec) -> str:
    name = " ".join(spec.name.split())
    if not name.isprintable():
        raise Invalid("name", expected=Phrase("at most 80 characters on one line"), got=spec.name)
    return name or " and ".join(spec.agents)[:80]
