"""A part of reports: whether gains come from more or better agreements, and what is left over a control."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.analysis.bootstrap import Figure
from app.analysis.gain import Gain, SplitMetrics, gain_of, mean_difference, split_metrics
from app.analysis.reading import matches_of
from app.analysis.wording import number, signed, signed_in_words
from app.games import metrics_of
from app.games.metrics import SHARE
from app.models import RoundMaterial, RoundRow
from app.recipes.tables import mean_with_interval
from app.reports.interval_charts import interval_chart
from app.reports.report import ReportFigure, ReportSection, plain_table

KEY, TITLE = "gain", "Where the gain comes from"


class GainArm(NamedTuple):
    """One way of training: evaluations of the model before and after it, as rounds, by training seed; by None if there
    is only one training.
    """

    label: str
    evaluations: Mapping[Any, tuple[int, int]]


class ArmGain(NamedTuple):
    """The gain of an arm: a mean over its seeds where it has several; None where it could not be split."""

    label: str
    gain: Gain | None


def gains_of(session: Session, game: str, arms: Sequence[GainArm]) -> list[ArmGain]:
    """The gain of each arm, split. Empty for a game without agreements."""
    metrics = split_metrics(metrics_of(game))
    if metrics is None:
        return []
    return [ArmGain(arm.label, _gain(session, metrics, [*arm.evaluations.values()])) for arm in arms]


def difference_of(session: Session, game: str, arm: GainArm, control: GainArm) -> Figure:
    """The score after the arm minus that after the control, match by match; a mean over the seeds of both."""
    value = metrics_of(game).headline.value
    found = []
    for seed in [each for each in arm.evaluations if each in control.evaluations]:
        own, other = arm.evaluations[seed][1], control.evaluations[seed][1]
        if value is None or not same_matches(session, own, other):
            continue
        found.append(mean_difference(value, *(matches_of(session, [each]) for each in (other, own))))
    return _mean_over_seeds(found)


def same_matches(session: Session, *rounds: int) -> bool:
    """Whether rounds were played by the same rules with the same material, seeds and seats, were completed, and still
    have all their matches.
    """
    asked = set()
    for number_of_round in rounds:
        row, material = session.get_one(RoundRow, number_of_round), session.get(RoundMaterial, number_of_round)
        items = json.dumps(material.items, sort_keys=True) if material is not None else ""
        config = json.dumps([row.game, row.config], sort_keys=True)
        asked.add((config, row.seed, row.matches, row.swap_seats, row.pick, hashlib.sha256(items.encode()).hexdigest()))
        if row.finished != row.matches or row.removed_at is not None:
            return False
    return len(asked) == 1


def _gain(session: Session, metrics: SplitMetrics, evaluations: Sequence[tuple[int, int]]) -> Gain | None:
    found = []
    for before, after in evaluations:
        if not same_matches(session, before, after):
            return None
        try:
            found.append(gain_of(metrics, matches_of(session, [before]), matches_of(session, [after])))
        except ValueError:  # a game that gives points without an agreement
            return None
    if len(found) < 2:
        return found[0] if found else None
    first, last = (_mean_if_complete([each.scores[place] for each in found]) for place in (0, 1))
    shares = [sum(each.shares[place] for each in found) / len(found) for place in (0, 1)]
    parts = zip(*((each.whole, each.more, each.better) for each in found), strict=True)
    return Gain((shares[0], shares[1]), (first, last), *map(_mean_over_seeds, parts))


def _mean_if_complete(values: Sequence[float | None]) -> float | None:
    there = [each for each in values if each is not None]
    return sum(there) / len(there) if len(there) == len(values) else None


def _mean_over_seeds(figures: Sequence[Figure]) -> Figure:
    """The only figure, or the mean of those of several seeds, with its interval by Student's t."""
    values = [each.value for each in figures if each.value is not None]
    if len(values) < len(figures) or not figures:
        return Figure(None)
    return figures[0] if len(figures) == 1 else Figure(**mean_with_interval(values))


# ---- What a reader sees ----------------------------------------------------------------


def gain_section(game: str, gains: Sequence[ArmGain], differences: Sequence[tuple[str, Figure]] = ()) -> ReportSection:
    """The split of the gains as a chart and table, with the differences from a control; empty if there is none."""
    metrics, whole = split_metrics(metrics_of(game)), [each for each in gains if each.gain is not None]
    if metrics is None or not whole:
        return ReportSection(KEY, TITLE)
    unit = metrics.score.unit
    rows = [
        (f"{each.label}: {part}", figure)
        for each in whole
        if each.gain is not None
        for part, figure in (("more agreements", each.gain.more), ("better agreements", each.gain.better))
        if figure.value is not None
    ]
    chart = interval_chart("gain", TITLE, "Gain in score", f"{unit} a match", rows, "Part", 0)
    caption = (
        "The gain split into more agreements (change of the share of agreed matches, times the mean of both scores) and"
        " better agreements (change of the score of agreed matches, times the mean of both shares). Both add up to the"
        " gain. Lines are 95 % intervals over what was drawn independently: seeds, or matches; over seeds of trainings"
        " where there are several."
    )
    left_out = [each.label for each in gains if each.gain is None]
    return ReportSection(
        KEY, TITLE,
        paragraphs=[
            *(_sentence(each.label, each.gain, unit) for each in whole if each.gain is not None),
            *([f"Not split, as both models were not evaluated on the same matches: {', '.join(left_out)}."]
            if left_out else []),
        ],
        figures=[ReportFigure(chart, caption, has_table=True)] if rows else [],
        tables=[
            plain_table(
                "gain-parts", "The gain and its two parts.",
                ("Arm", "Gain", "By more agreements", "By better agreements"),
                [
                    (each.label, *(signed_in_words(part, unit) for part in (gain.whole, gain.more, gain.better)))
                    for each in whole
                    if (gain := each.gain) is not None
                ],
            ),
            plain_table(
                "gain-agreed", "The figures that the gain is split by.",
                (
                    "Arm", "Agreed before", "Agreed after",
                    f"{metrics.agreed.heading} before", f"{metrics.agreed.heading} after",
                ),
                [
                    (each.label, *(number(share, SHARE) for share in gain.shares),
                     *(number(score, unit) for score in gain.scores))
                    for each in whole
                    if (gain := each.gain) is not None
                ],
            ),
            *([plain_table(
                "gain-control", "What each has over the control after the training, on the same matches.",
                ("Arm", f"{metrics.score.heading} minus that of the control"),
                [(label, signed_in_words(figure, unit)) for label, figure in differences],
            )] if differences else []),
        ],
    )  # fmt: skip


def _sentence(label: str, gain: Gain, unit: str) -> str:
    """The split in words. Parts of a gain that is not clear, or that have opposite signs, get no percentages."""
    whole, more, better = gain.whole, gain.more, gain.better
    if more.value is None or better.value is None or whole.value is None:
        return f"{label}: there is no split, as one of the models never agreed on anything."
    shares = " to ".join(number(each, SHARE) for each in gain.shares)
    scores = " to ".join(number(each, unit) for each in gain.scores)
    changed = f"the share of agreed matches goes from {shares} and their mean score from {scores}"
    clear = (whole.low or 0) > 0 or (whole.high or 0) < 0
    if clear and more.value * whole.value >= 0 and better.value * whole.value >= 0:
        part = more.value / whole.value
        called, by = ("gain", ("more", "better")) if whole.value > 0 else ("loss", ("fewer", "worse"))
        return (
            f"{label}: {number(part, SHARE)} of the {called} of {signed(whole.value, unit)} comes from {by[0]}"
            f" agreements and {number(1 - part, SHARE)} from {by[1]} ones: {changed}."
        )
    return (
        f"{label}: {changed}. The change of the share brings {signed_in_words(more, unit)}, that of the score"
        f" {signed_in_words(better, unit)}, together {signed_in_words(whole, unit)}."
    )
