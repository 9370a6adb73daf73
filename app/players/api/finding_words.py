"""A test call's findings, in plain words for a page and for a terminal. Pure."""

from collections.abc import Iterator

from app.core.errors import Phrase, Verbatim
from app.players.api.options import ApiOptions
from app.players.api.reasoning import OFF
from app.players.api.server_findings import Extent, SamplingCheck, SamplingState, ServerFindings

Line = tuple[Phrase, Phrase | Verbatim]  # the subject, and the finding

_STATES: dict[SamplingState, Phrase] = {
    "sent": Phrase("sent, and it has an effect"),
    "refused": Phrase("refused by the server, not sent"),
    "unverified": Phrase("sent; whether it has an effect is unverified"),
}
_FIELDS = {"temperature": Phrase("Temperature"), "top_p": Phrase("Top-p"), "seed": Phrase("Seed")}
_EXTENTS: dict[Extent, Phrase] = {
    "yes": Phrase("sent where they are asked for"),
    "ignored": Phrase("not sent, although the server takes the field"),
    "refused": Phrase("refused by the server"),
    "not tried": Phrase("not tried"),
}
_STRUCTURED: dict[Extent, Phrase] = {
    **_EXTENTS,
    "yes": Phrase("respected"),
    "ignored": Phrase("ignored: the server takes a schema and does not keep to it"),
}


def in_words(findings: ServerFindings, options: ApiOptions) -> Iterator[Line]:
    """The findings, each with the option that overrides it, if any; `options` are those of the row."""
    yield Phrase("Limit of tokens"), _limit(findings, options)
    for field, name in _FIELDS.items():
        if field in findings.sampling:
            yield name, _STATES[findings.sampling[field]]
    if findings.check is not None:
        yield Phrase("Check of the temperature"), check_in_words(findings.check)
    yield Phrase("Reasons"), _reasoning(findings)
    yield Phrase("Reasoning is switched"), _switch(findings)
    if findings.reasoning_room is not None:
        yield (
            Phrase("Room for reasoning"),
            Phrase(
                "%(found)s tokens are enough, %(now)s are set (reasoning_room)",
                found=findings.reasoning_room,
                now=options.reasoning_room,
            ),
        )
    yield Phrase("Tokens"), Phrase("counted") if findings.usage else Phrase("not counted")
    yield Phrase("Cached tokens"), Phrase("counted") if findings.cached_tokens else Phrase("not counted")
    if findings.cost:
        yield Phrase("Cost"), Phrase("reported with each answer")
    yield Phrase("Log-probabilities"), _EXTENTS[findings.log_probs]
    yield Phrase("Structured output"), _STRUCTURED[findings.structured_output]
    if findings.streams:
        yield Phrase("Events"), Phrase("sent although not requested; they are joined")
    yield Phrase("Calls itself"), _own_name(findings)
    yield Phrase("Found by"), _calls(findings)
    for line in findings.unanswered:
        yield Phrase("Without an answer"), Verbatim(line)


def check_in_words(check: SamplingCheck) -> Phrase:
    """The result of a check's draws."""
    if check.verdict == "refused":
        return Phrase("refused: the server takes no temperature")
    values = {
        "draws": check.draws, "cold": check.different_at_lowest, "hot": check.different_at_highest,
        "lowest": Verbatim(f"{check.lowest:g}"), "highest": Verbatim(f"{check.highest:g}"),
    }  # fmt: skip
    if check.verdict == "sent":
        return Phrase("sent: of %(draws)s answers %(cold)s differ at %(lowest)s and %(hot)s at %(highest)s", **values)
    return Phrase(
        "unverified: of %(draws)s answers %(cold)s differ at %(lowest)s and %(hot)s at %(highest)s, which may be "
        "chance; the server may ignore the temperature",
        **values,
    )


def _limit(findings: ServerFindings, options: ApiOptions) -> Phrase:
    field = Verbatim(options.token_field)
    if findings.keeps_limit is False:
        return Phrase("sent as %(field)s and not kept to: longer answers are cut here", field=field)
    return Phrase("sent as %(field)s (token_field)", field=field)


def _reasoning(findings: ServerFindings) -> Phrase:
    if findings.reasoning == "no":
        return Phrase("no")
    tokens = findings.reasoning_tokens or 0
    if findings.reasoning == "yes":
        return Phrase("yes, in the answer, by some %(tokens)s tokens", tokens=tokens)
    return Phrase("yes, hidden, by some %(tokens)s tokens", tokens=tokens)


def _switch(findings: ServerFindings) -> Phrase:
    form = Verbatim(findings.reasoning_form)
    if findings.reasoning_switch == OFF:
        return Phrase("off by reasoning=off in the form %(form)s (reasoning_form)", form=form)
    if findings.reasoning_switch == "on":
        return Phrase("on by reasoning=low in the form %(form)s (reasoning_form)", form=form)
    if findings.reasoning_switch == "always":
        return Phrase("never off: the server says that this model always reasons")
    if findings.reasoning_switch == "not tried":
        return Phrase("not tried")
    if findings.reasoning == "no":
        return Phrase("by nothing that was tried: it does not reason")
    return Phrase("by nothing that was tried: it always reasons, or wants another reasoning_form")


def _own_name(findings: ServerFindings) -> Phrase | Verbatim:
    name = Verbatim(findings.model or "")
    if not findings.model:
        return Phrase("nothing")
    if findings.provider:
        return Phrase("%(name)s, by %(provider)s", name=name, provider=Verbatim(findings.provider))
    if findings.fingerprint:
        return Phrase("%(name)s, fingerprint %(print)s", name=name, print=Verbatim(findings.fingerprint))
    return name


def _calls(findings: ServerFindings) -> Phrase:
    values = {
        "calls": findings.calls, "prompt": findings.prompt_tokens, "completion": findings.completion_tokens,
    }  # fmt: skip
    if findings.usd is None:
        return Phrase("%(calls)s calls: %(prompt)s tokens in, %(completion)s out", **values)
    usd = Verbatim(f"${findings.usd:.6f}")
    return Phrase("%(calls)s calls: %(prompt)s tokens in, %(completion)s out, %(usd)s", usd=usd, **values)
