"""A society's life: created, followed by a worker, ended. Nothing here commits."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase, shown
from app.core.validation import real_number
from app.jobs.kind import Requester
from app.models import LanguageModel, Society
from app.registry import CHAT_USE, check_not_archived, get_model, player_spec
from app.registry.named import answers_chats
from app.society import store
from app.society.config import SocietyConfig, read_config
from app.society.embedders import check_embedder, registered
from app.society.estimate import SocietyEstimate, embedding_of, estimate_for
from app.society.job import SOCIETY
from app.society.material import PriorMemories, QuestionList
from app.society.population import models_of_agents
from app.society.world import first_memories, labels

MOST_MODELS = 100  # of agents, and of observers
MOST_QUESTIONS = 200_000
LONGEST_QUESTION = 20_000  # characters


@dataclass(frozen=True, slots=True)
class SocietySpec:
    """What to run: a society, with names of the registry, each agent model with its share of the agents.

    The models named in `systems` get a system message against warning and lecturing by habit, as agents. `config` has
    fields of SocietyConfig, laid over the `preset`; numbers may have come as text.
    """

    agents: Sequence[tuple[str, float | str]]
    observers: Sequence[str]
    questions: QuestionList
    priors: PriorMemories
    embedder: str
    config: Mapping[str, Any] = field(default_factory=dict)
    preset: str | None = None
    systems: Collection[str] = ()
    name: str = ""


def create(session: Session, spec: SocietySpec, *, queued: bool, requester: Requester | None = None) -> Society:
    """Write down a society that waits to be run, by workers if it is `queued`.

    Raises NotFound for an unknown model, Conflict for an archived one, and Invalid for all else that cannot be run.
    """
    config, agents, observers, population = _prepared(session, spec)
    row = SOCIETY.new_row(
        queued=queued,
        requester=requester,
        name=_check_name(spec),
        config=config.model_dump(mode="json"),
        agents=agents,
        observers=observers,
        embedder=spec.embedder,
        question_source=spec.questions.source[-300:],
        questions=list(spec.questions.questions),
        prior_source=spec.priors.source[-300:],
        priors={label: [list(pair) for pair in pairs] for label, pairs in spec.priors.pairs.items()},
        lease_count=0,
    )
    session.add(row)
    session.flush()
    store.insert_agents(session, ({"society_id": row.id, **each} for each in population))
    return row


def check(session: Session, spec: SocietySpec) -> None:
    """Raises as `create` does for what cannot be run, and writes nothing."""
    _prepared(session, spec)


def estimated(session: Session, spec: SocietySpec) -> SocietyEstimate:
    """What a society will take. Raises as `create` does."""
    config, _, _, population = _prepared(session, spec)
    first = {spec.priors.pairs[each["label"]][place][0] for each in population for place in each["first_memories"]}
    embedding = embedding_of(config, spec.questions.questions, first)
    agents, observers = _agent_models(session, spec.agents), _observers(session, spec.observers)
    return estimate_for(session, config, agents, observers, (spec.embedder, embedding))


def _prepared(
    session: Session, spec: SocietySpec
) -> tuple[SocietyConfig, list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """The config, the models of agents and of observers, and the agents, as the tables hold them."""
    config = read_config(spec.config, spec.preset)
    if unknown := sorted(set(spec.systems) - {name for name, _ in spec.agents}):
        raise Invalid("system", expected=Phrase("models of agents"), got=unknown[0])
    agents = [
        {"model_id": row.id, "model": row.name, "share": share, "system": row.name in spec.systems}
        for row, share in _agent_models(session, spec.agents)
    ]
    observers = [{"model_id": row.id, "model": row.name} for row in _observers(session, spec.observers)]
    check_questions(spec.questions)
    check_embedder(spec.embedder)
    registered.options_of(session, spec.embedder)
    return config, agents, observers, _population(config, agents, spec.priors)


def _population(
    config: SocietyConfig, models: Sequence[Mapping[str, Any]], priors: PriorMemories
) -> list[dict[str, Any]]:
    """The agents as their table holds them. Raises Invalid where there are too few memories of a label."""
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


def _agent_models(session: Session, named: Sequence[tuple[str, float | str]]) -> list[tuple[LanguageModel, float]]:
    _check_names("agents", [name for name, _ in named])
    shares = [real_number(share, "agents", 0, 1e6) for _, share in named]
    if not all(shares):
        raise Invalid("agents", expected=Phrase("a share above 0 for each model"), got=0)
    return [(_chat_model(session, "agents", name), share) for (name, _), share in zip(named, shares, strict=True)]


def _observers(session: Session, names: Sequence[str]) -> list[LanguageModel]:
    _check_names("observers", names)
    return [_chat_model(session, "observers", name) for name in names]


def _check_names(field_name: str, names: Sequence[str]) -> None:
    if not 1 <= len(names) <= MOST_MODELS:
        raise Invalid(field_name, expected=Phrase("1 to %(most)s models", most=MOST_MODELS), got=len(names))
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise Invalid(field_name, expected=Phrase("each model once"), got=twice[0])


def _chat_model(session: Session, field_name: str, name: str) -> LanguageModel:
    """A model that answers chats. Raises NotFound, Conflict and Invalid."""
    row = get_model(session, name)
    check_not_archived(row)
    if CHAT_USE not in row.uses or not answers_chats(player_spec(row)):
        raise Invalid(
            field_name,
            expected=Phrase("a model that answers chats"),
            got=Phrase("%(name)s, whose uses are %(uses)s", name=shown(name), uses=", ".join(row.uses) or "none"),
            remedy=Phrase("`flask model list` shows what each model is for"),
        )
    return row


def check_questions(given: QuestionList) -> None:
    """Raises Invalid for a list of none or too many, and for a question that no model can be asked."""
    if not 1 <= len(given.questions) <= MOST_QUESTIONS:
        raise Invalid(
            "questions",
            expected=Phrase("1 to %(most)s questions in %(source)s", most=MOST_QUESTIONS, source=given.source),
            got=len(given.questions),
            remedy=Phrase("write one on each line"),
        )
    for number, question in enumerate(given.questions, 1):
        if not 1 <= len(question.strip()) <= LONGEST_QUESTION:
            raise Invalid(
                "questions",
                expected=Phrase("1 to %(most)s characters", most=LONGEST_QUESTION),
                got=len(question.strip()),
                subject=Phrase("question %(number)s of %(source)s", number=number, source=given.source),
            )


def _check_name(spec: SocietySpec) -> str:
    name = " ".join(spec.name.split())
    if len(name) > 80 or not name.isprintable():
        raise Invalid("name", expected=Phrase("at most 80 characters on one line"), got=spec.name)
    return name or " and ".join(model for model, _ in spec.agents)[:80]
