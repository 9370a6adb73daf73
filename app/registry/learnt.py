"""Writes to the registry how a server wants its models to be asked, as its refusals have shown."""

import structlog
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from app.core.errors import Invalid
from app.core.extensions import DATABASE_AWAY, reason_of, writing
from app.models import LanguageModel
from app.players.api import learning, options

log = structlog.get_logger()


def write_learnt(database: Engine) -> None:
    """Write what this process has learnt since the last time, if anything, to each row of the model at that address.

    In a transaction of its own, before that of the answers from which it was learnt. A database that is away is given
    it the next time.
    """
    learnt = learning.unwritten()
    if not learnt:
        return
    try:
        with writing(database) as session:
            _write(session, learnt)
    except DATABASE_AWAY as error:
        log.warning("the database did not take how a model wants to be asked", error=reason_of(error))
        return
    learning.written(learnt)
    for model, address in learnt:
        log.info("a model wants to be asked differently", model=model, address=address, **learnt[model, address])


def _write(session: Session, learnt: dict[tuple[str, str], dict[str, object]]) -> None:
    for row in session.scalars(select(LanguageModel).where(LanguageModel.kind == "api").with_for_update()):
        try:
            known = options.read_options(row.options)
        except Invalid:
            continue
        if found := learnt.get((known.model, known.base_url)):
            row.options = {**row.options, **found}
