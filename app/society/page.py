"""The page of a society: its members and settings, its calls, and the mean ratings of each iteration."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.core.errors import Phrase
from app.core.lists import COMMANDS, Code, Labelled, ListColumn, Reference
from app.jobs.page import ASKED, JobPage, JobTable, Section, fact, json_fact, spec_facts
from app.models import Society
from app.society.config import SETTINGS, SocietyConfig
from app.society.job import SOCIETY
from app.society.listing import COUNTS, IterationMeans, figures_of, means_by_iteration, recalls_of


def _config(item: Any) -> SocietyConfig:
    return SocietyConfig.model_validate(item.row.config)


def _society_settings(item: Any) -> dict[str, Any]:
    """The settings of a society; for an imported one, those missing in its files are unknown."""
    unknown = dict.fromkeys(SocietyConfig.model_fields, Phrase("unknown")) if item.row.imported else {}
    return {**unknown, **item.row.config}


def _model_of_member(member: Any) -> Any:
    """A member's model, with a link to it unless an import named one that is not registered here."""
    number, name = member["model_id"], member["model"]
    return name if number is None else Reference("model", number, name)


def _int_if_whole(share: float) -> float:
    """A share, as an int if it is a whole number."""
    return int(share) if share == int(share) else share


def _agents(item: Any) -> list[Labelled]:
    return [
        Labelled(
            {name: each[name] for name in ("model", "share", "system")},
            Phrase("%(model)s (share %(share)s)", model=_model_of_member(each), share=_int_if_whole(each["share"])),
        )
        for each in item.row.agents
    ]


def _society_lead(item: Any) -> list[Phrase | str]:
    config = _config(item)
    return [
        Phrase(
            "%(count)s agents on a %(size)s by %(size)s grid, %(setting)s; radius %(radius)s, %(critics)s critics.",
            count=config.agents, size=config.size, setting=Phrase(SETTINGS[config.setting]), radius=config.reach,
            critics=config.critics,
        ),
    ]  # fmt: skip


def _recalled(name: str, title: str) -> ListColumn:
    def cells(session: Session, items: Sequence[Any]) -> list[int]:
        return [getattr(recalls_of(session, each.row.id), name) for each in items]

    return fact(name, title, values=cells)


_MEANS = JobTable(
    "means",
    "Mean ratings of each iteration",
    [fact(name, name, seen=COMMANDS, numeric=True) for name in IterationMeans._fields],
    lines=lambda session, items: [means_by_iteration(session, each.row.id) for each in items],
)
_ASKED = (
    fact("name", "Name"),
    fact("agents", "Agents", _agents),
    fact("observers", "Observers", lambda each: [_model_of_member(observer) for observer in each.row.observers]),
    *spec_facts(SocietyConfig, _society_settings),
    json_fact("config", lambda each: each.row.config),
    fact("embedder", "Embedder", lambda each: each.row.embedder and Code(each.row.embedder)),
    fact("priors", "First memories from", lambda each: each.row.prior_source),
    fact("questions", "Questions", lambda each: each.row.question_source),
    json_fact("imported"),
    json_fact("iteration"),
)
_RECALLED = [_recalled("drafts", "Drafts"), _recalled("recalls", "Drafts with a question from memory")]
_HINT = Phrase(
    "An unread rating held no number from 1 to 7; it counts in no mean and no data. Interactions fail if a model "
    "refuses to answer."
)
PAGE: JobPage[Society] = JobPage(
    kind=SOCIETY,
    lead=_society_lead,
    links=lambda each: [
        *([Reference("society data", each.row.id, Phrase("Cut training data"))] if each.done else []),
        Reference("society report", each.row.id, Phrase("Report")),
    ],
    like=lambda each: not each.row.imported,
    progress=Phrase("%(done)s of %(all)s interactions are over"),
    figures=figures_of,
    sections=[
        Section("counted", "Calls and ratings", counts=COUNTS, fragment="society-failures.html", hint=_HINT),
        Section(ASKED, "What was asked for", _ASKED, beside=True),
        Section("files", "Its data", fragment="society-files.html"),
        Section("recall", "Recall", _RECALLED, table=_MEANS, alone=True, beside=True),
    ],
)
