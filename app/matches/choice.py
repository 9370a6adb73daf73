"""The conditions for choosing matches, described once for commands and for what is built from matches."""

from app.jobs.spec import SpecPart, spec_field
from app.matches.figures import FIGURES
from app.matches.filter import CONSENTS, SOURCES, STATUSES

_ANY = {"unset": "any"}
_KNOWN = {**_ANY, "widget": "known"}
_DAY = {**_ANY, "widget": "day", "metavar": "DAY"}


class MatchChoice(SpecPart):
    """Conditions on a match, as typed: `app.matches.filter.read_choice` reads them. Empty ones are ignored."""

    game: str | None = spec_field("Game", "Only this game.", None, of="games", metavar="GAME", **_KNOWN)
    player: str | None = spec_field(
        "Player", "Only matches of this model, or of people: person.", None, of="players", metavar="NAME", **_KNOWN
    )
    role: str | None = spec_field(
        "Role", "Only matches in which the player had this role.", None, of="roles", metavar="ROLE", **_KNOWN
    )
    reason: str | None = spec_field(
        "Ended as", "Only matches with this outcome, such as deal.", None, of="reasons", metavar="OUTCOME", **_KNOWN
    )
    status: str | None = spec_field("Status", f"Only these: {', '.join(STATUSES)}.", None, metavar="STATUS", **_ANY)
    source: str | None = spec_field(
        "Source", f"Only matches from here: {', '.join(SOURCES)}.", None, of="sources", metavar="SOURCE", **_KNOWN
    )
    since: str | None = spec_field("Since", "Only matches that began on this day or later, in UTC.", None, **_DAY)
    until: str | None = spec_field("Until", "Only matches that began on this day or earlier, in UTC.", None, **_DAY)
    match: str | None = spec_field("Match", "Only this match, by its id.", None, metavar="ID", **_ANY)
    campaign: int | None = spec_field(
        "Campaign", "Only rounds and evaluations of this campaign, by its number.", None, metavar="N", ge=1, **_ANY
    )
    study: str | None = spec_field("Study", "Only this study, by its name.", None, metavar="NAME", **_ANY)
    arm: str | None = spec_field("Arm", "Only arms of this name.", None, metavar="NAME", **_ANY)
    consent: str | None = spec_field(
        "Consent to training",
        f"Only matches whose people all agreed to training, or not all: {', '.join(CONSENTS)}.",
        None,
        of="consents",
        metavar="WHETHER",
        **_KNOWN,
    )
    text: str | None = spec_field(
        "Said",
        'Only matches in which this was said: words, "a phrase", begin*, -without.',
        None,
        metavar="WORDS",
        **_ANY,
    )
    figures: str | None = spec_field(
        "Figures",
        f"Only matches of such figures, as in 'refused>=2 lower_score<3': {', '.join(FIGURES)}.",
        None,
        metavar="BOUNDS",
        **_ANY,
    )
    prompt: str | None = spec_field(
        "System prompt",
        "Only matches in which a model was told this besides the rules: NAME, in any version, or NAME@VERSION.",
        None,
        metavar="PROMPT",
        **_ANY,
    )
