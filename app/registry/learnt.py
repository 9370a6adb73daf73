"""Writes to the registry how a server wants its models to be called, learnt from test calls and refusals."""

from datetime import UTC, datetime

import structlog
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from app.core.errors import Invalid
from app.core.extensions import DATABASE_AWAY, reason_of, writing
from app.models import LanguageModel
from app.players.api import learning, options
from app.players.api.server_findings import (
    REFUSED,
    UNVERIFIED,
    SamplingCheck,
    ServerFindings,
    options_found,
    read_findings,
)

log = structlog.get_logger()


def write_learnt(database: Engine) -> None:
    """Write what this process has learnt since last time, if anything, to each row of the model at the address.

    This takes a separate transaction, before that of the answers from which it was learnt. If the database is
    unavailable, it is written the next time.
    """
    learnt = learning.unwritten()
    if not learnt:
        return
    try:
        with writing(database) as session:
            _write_learnt_options(session, learnt)
    except DATABASE_AWAY as error:
        log.warning("the database did not take how a model wants to be asked", error=reason_of(error))
        return
    learning.written(learnt)
    for model, address in learnt:
        log.info("a model wants to be asked differently", model=model, address=address, **learnt[model, address])


def _write_learnt_options(session: Session, learnt: dict[tuple[str, str], dict[str, object]]) -> None:
    models = select(LanguageModel).where(LanguageModel.kind == "api").with_for_update(key_share=True)
    for row in session.scalars(models):
        try:
            known = options.read_options(row.options)
        except Invalid:
            continue
        if found := learnt.get((known.model, known.base_url)):
            row.options = {**row.options, **found}
            if (findings := read_findings(row.findings)) is not None:
                now_known = options.read_options(row.options)
                changed = findings.after_refusal(now_known.token_field, now_known.refused_fields, datetime.now(UTC))
                row.findings = changed.model_dump(mode="json")


def keep_findings(session: Session, row: LanguageModel, findings: ServerFindings) -> None:
    """Store the findings of a test call, and set the options that follow from it and were not given explicitly."""
    before = read_findings(row.findings)
    given = dict(row.options)
    if before is not None:
        given = {name: value for name, value in given.items() if before.options.get(name) != value}
        if (
            before.check is not None
            and before.check.verdict != REFUSED
            and findings.sampling.get("temperature") == UNVERIFIED
        ):
            findings = findings.after_check(before.check)
    follows = options_found(findings, given)
    if follows.get("reasoning_room", 0) < options.read_options(given).reasoning_room:
        follows.pop("reasoning_room", None)
    try:
        options.read_options({**given, **follows})
    except Invalid:  # for example reasoning as a number of tokens, which the form that was found does not take
        follows.pop("reasoning_form", None)
    row.options = {**given, **follows}
    row.findings = findings.model_copy(update={"options": follows}).model_dump(mode="json")
    session.flush()


def keep_check(session: Session, row: LanguageModel, check: SamplingCheck) -> None:
    """Store whether a model's temperature has an effect, which the record of each later call will state."""
    known = options.read_options(row.options)
    refused = [name for name in known.refused_fields if name != "temperature"]
    if check.verdict == REFUSED:
        refused.append("temperature")
    state = UNVERIFIED if check.verdict == REFUSED else check.verdict
    row.options = {**row.options, "refused_fields": refused, "sampling_state": state}
    if (findings := read_findings(row.findings)) is not None:
        row.findings = findings.after_check(check).model_dump(mode="json")
    session.flush()
