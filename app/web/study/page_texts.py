"""The texts of a design as pages show them: with the facts of the study, the goal, and what Parlor adds."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from flask import render_template
from flask_babel import format_decimal, gettext, ngettext
from markupsafe import Markup
from sqlalchemy.orm import Session

from app.models import LanguageModel, StudyVersion
from app.players.api.addresses import host_of
from app.players.api.options import VENDOR_URL, read_options
from app.studies.design import StudyDesign
from app.studies.markdown import ReadText, read_text
from app.studies.progress import StudyProgress
from app.studies.store import design_of, models_of
from app.studies.texts import Goal, first_condition, goal_of, words_of
from app.web.study.blueprint import money
from app.web.threads import off_loop

_OPENAI = "OpenAI"
_SHORT = 4000  # characters of a text that is read in under a tenth of a second, whatever its content


def goal_words(goal: Goal) -> str:
    """The goal in one sentence."""
    weight = goal.weight
    if weight is None or weight == 0:
        return str(gettext("Score as many points as you can for yourself."))
    if weight == 1:
        return str(gettext("Score as many points as you can together, yours and your partner’s."))
    if weight == -1:
        return str(gettext("Score more points than your partner, as many more as you can."))
    counts = format_decimal(abs(Decimal(weight.numerator) / weight.denominator))
    if weight > 0:
        text = gettext("Score points for yourself; each of your partner’s counts %(weight)s for you.", weight=counts)
    else:
        text = gettext("Score points for yourself; each of your partner’s takes %(weight)s from you.", weight=counts)
    return str(text)


def html_of(text: str, words: Mapping[str, str], parts: Mapping[str, Markup] | None = None) -> ReadText:
    """A text of a study as `read_text` returns it; a long one is read off the event loop."""
    if len(text) <= _SHORT:
        return read_text(text, words, parts)
    return off_loop(read_text, text, words, parts)


def instructions_page(progress: StudyProgress) -> dict[str, Any]:
    """The instructions for the condition of the match that comes next."""
    design = progress.design
    goal = goal_of(design, progress.condition or first_condition(design))
    shown = Markup(  # noqa: S704 - a template escapes what it shows
        render_template("study/goal.html", goal=goal, goal_words=goal_words(goal), currency=design.pay.currency)
    )
    words = {**_words_of_design(design), "goal": goal_words(goal)}
    text = html_of(progress.version.design["texts"][design.instructions], words, {"goal": shown})
    return {"text": text, "goal": goal, "goal_words": goal_words(goal)}


def consent_text(version: StudyVersion) -> ReadText:
    """What the author wants people to agree to."""
    design = design_of(version)
    return html_of(version.design["texts"][design.consent.text], _words_of_design(design))


def debrief_page(progress: StudyProgress) -> ReadText | None:
    """What the author says at the end."""
    name = progress.design.consent.debrief
    return None if name is None else html_of(progress.version.design["texts"][name], _words_of_design(progress.design))


def vendors(session: Session, version: StudyVersion) -> Sequence[str]:
    """The vendors that receive what people write because a model runs there, without repetition."""
    return list(dict.fromkeys(_vendor(row) for row in models_of(session, version).values() if row.kind == "api"))


def agreed_text(session: Session, progress: StudyProgress) -> str:
    """All that a person agrees to, as the text whose version is kept."""
    own = progress.version.design["texts"][progress.design.consent.text]
    version, asked = progress.version, progress.design.consent
    publication = ["publication"] if asked.publication == "ask" else []
    return "\n".join([version.sha256, own, *vendors(session, version), asked.training, *publication])


def debrief_text(progress: StudyProgress) -> str:
    """What a person has read before they are asked again."""
    name = progress.design.consent.debrief
    return "\n".join([progress.version.sha256, progress.version.design["texts"][name] if name else "", "debrief"])


def deadline_words(deadline: str) -> str:
    """A time such as “30 days after taking part”, in the page's language."""
    days, _, event = deadline.partition(" days after ")
    if event == "close":
        return str(ngettext("%(num)s day after the study closes", "%(num)s days after the study closes", int(days)))
    return str(ngettext("%(num)s day after you took part", "%(num)s days after you took part", int(days)))


def linked_words(deadline: str) -> str:
    """When the code by which a person is recognised is deleted, in the page's language."""
    if deadline.endswith(" close"):
        return deadline_words(deadline)
    return str(gettext("%(time)s, but not before the study closes", time=deadline_words(deadline)))


def _words_of_design(design: StudyDesign) -> dict[str, str]:
    return words_of(design, partial(money, currency=design.pay.currency))


def _vendor(row: LanguageModel) -> str:
    address = read_options(row.options).base_url
    return _OPENAI if address == VENDOR_URL else host_of(address)
