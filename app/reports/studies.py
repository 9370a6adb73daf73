"""The report of a study: outcomes by condition of the people of its frozen waves. Others are excluded."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np
from sqlalchemy.orm import Session

from app.analysis.bootstrap import LEAST, RESAMPLES, Figure, mean_figure
from app.analysis.wording import figure_in_words, in_words, signed, signed_beside, signed_in_words
from app.core.errors import Conflict, Phrase, Verbatim
from app.games import find_game
from app.games.metrics import POINTS
from app.models import StudyVersion, Wave
from app.reports.common_sections import key_difference, whole_report
from app.reports.interval_charts import interval_chart
from app.reports.origins import NONE, ReportContext, as_json, origins_of
from app.reports.report import FoldedText, Report, ReportFigure, ReportSection, ReportTable, plain_table
from app.studies.arms import Condition, conditions
from app.studies.column_names import UTILITY
from app.studies.design import StudyDesign
from app.studies.export.analysis import AnalysedPerson, analysis_rows, outcome_key
from app.studies.export.scope import ExportScope, find_scope
from app.studies.store import models_of

FEW_PEOPLE = "fewer than 10 people"
_COUNTS = "counts"
_SEED = 240_618_872
_PLACES = (("attention", "attention checks passed"), ("minutes", "minutes from entry to the end"))


def study_report(session: Session, reference: str, context: ReportContext) -> Report:
    """The report of STUDY, or of STUDY:WAVE. Raises NotFound, and Conflict if no wave is frozen, or if the figures of
    frozen waves measure different things.
    """
    scope = find_scope(session, reference)
    waves = [wave for wave in scope.waves.values() if not wave.rehearsal]
    frozen = {wave.id: wave for wave in waves if wave.frozen_at is not None}
    if not frozen:
        raise Conflict(
            "study",
            expected=Phrase("a study with a frozen wave, as the results of others stay hidden"),
            got=Phrase("none that is frozen"),
            remedy=Phrase("freeze its wave once nobody is taking part"),
            subject=Verbatim(reference),
        )
    used = {wave.study_version_id for wave in frozen.values()}
    versions = {each: version for each, version in scope.versions.items() if each in used}
    scope = replace(scope, waves=frozen, versions=versions, designs={each: scope.designs[each] for each in versions})
    _check_one_design(scope, reference)
    left_out = [wave.name for wave in waves if wave.id not in frozen]
    people = [*analysis_rows(session, scope)]
    counted = [each for each in people if each.data == _COUNTS and not each.excluded_by]
    design = scope.designs[max(versions)]
    outcome = design.analysis.outcome
    means = _means_by_condition(design, outcome, counted)
    differences = _differences(design, outcome, counted)
    models = {row.id for version in versions.values() for row in models_of(session, version).values()}
    hidden = f" Not in it, as they are not frozen: {', '.join(left_out)}." if left_out else ""
    return whole_report(
        session, context, origins_of(session, {}, models),
        name=f"study-{reference.replace(':', '-')}",
        title=design.title,
        about=f"Report of the study {scope.study.name}, {_waves_in_words(frozen.values())}: {len(people)} people came,"
        f" {len(counted)} are in the figures.{hidden}",
        finding=_study_finding(design, outcome, means, differences),
        key_figures=[
            key_difference(title, figure, _outcome_unit(design, outcome)) for title, figure in differences
        ],
        results=[
            _result_section(design, outcome, means, differences),
            ReportSection("people", "Who took part", tables=[_flow_table(people, frozen), _measures_table(counted)]),
        ],
        methods=_study_methods(design, outcome, scope),
        versions=_design_and_wave_versions(scope),
        texts=[
            FoldedText(f"{scope.study.name}@{version.number} as it was loaded", _design_as_json(version))
            for version in versions.values()
        ],
        texts_title="Design",
        limits=_study_limits(people, design, left_out, means),
        commands=[
            f"flask study export-data {reference} --out data.zip    # analysis.csv has a row a person",
            f"flask report --study {reference}",
        ],
        before_commands=[
            "Data of people are not in this file: what they wrote and answered stays in the archive of the study."
        ],
    )  # fmt: skip


def _check_one_design(scope: ExportScope, reference: str) -> None:
    """Raises Conflict if versions differ in design, as their people cannot share a mean, whatever one calls it."""
    asked = {
        json.dumps([
            each.game, each.analysis.outcome, sorted(each.plan.within),
            [[factor, list(each.levels(factor).items())] for factor in each.conditions], each.analysis.exclude,
        ], default=str)
        for each in scope.designs.values()
    }  # fmt: skip
    if len(asked) == 1:
        return
    versions = ", ".join(f"{scope.study.name}@{version.number}" for version in scope.versions.values())
    waves = [f"{scope.study.name}:{wave.name}" for wave in scope.waves.values()]
    raise Conflict(
        "study",
        expected=Phrase("frozen waves of one design, as their figures are taken together"),
        got=Phrase("the versions %(names)s, which differ in it", names=Verbatim(versions)),
        remedy=Phrase("name one wave: %(names)s", names=Verbatim(", ".join(waves))),
        subject=Verbatim(reference),
    )


def _waves_in_words(waves: Collection[Wave]) -> str:
    names = [wave.name for wave in waves]
    return f"frozen wave {names[0]}" if len(names) == 1 else f"frozen waves {', '.join(names)}"


# ---- Figures ---------------------------------------------------------------------------


def _outcome_values(condition: Condition, outcome: str, people: Sequence[AnalysedPerson]) -> list[float]:
    found = (each.outcomes.get(outcome_key(outcome, condition)) for each in people)
    return [value for value in found if value is not None]


def _means_by_condition(
    design: StudyDesign, outcome: str, people: Sequence[AnalysedPerson]
) -> list[tuple[str, Figure]]:
    """The mean of the outcome under each condition, over people."""
    return [
        (
            _condition_name(design, each),
            mean_figure(np.array(_outcome_values(each, outcome, people), float), reason=FEW_PEOPLE),
        )
        for each in conditions(design)
    ]


def _condition_name(design: StudyDesign, condition: Condition) -> str:
    named = [f"{factor} {design.levels(factor)[label]}" for factor, label in condition.items()]
    return ", ".join(named) or "everybody"


def _differences(design: StudyDesign, outcome: str, people: Sequence[AnalysedPerson]) -> list[tuple[str, Figure]]:
    """For each factor with two levels: the second minus the first, within each person who plays both."""
    found = []
    for factor in design.conditions:
        levels = design.levels(factor)
        if len(levels) != 2:
            continue
        first, second = levels
        of_each = [
            (_at(design, outcome, each, factor, first), _at(design, outcome, each, factor, second)) for each in people
        ]
        if factor in design.plan.within:
            both = [new - old for old, new in of_each if old is not None and new is not None]
            figure = mean_figure(np.array(both, float), reason=FEW_PEOPLE)
        else:
            figure = _difference_between_groups(
                [old for old, _ in of_each if old is not None], [new for _, new in of_each if new is not None]
            )
        if figure.value is not None:
            found.append((f"{factor}: {levels[second]} minus {levels[first]}", figure))
    return found


def _at(design: StudyDesign, outcome: str, person: AnalysedPerson, factor: str, label: str) -> float | None:
    """A person's mean over the conditions in which a factor has that level."""
    values = [
        value
        for condition in conditions(design)
        if condition[factor] == label
        for value in _outcome_values(condition, outcome, [person])
    ]
    return fmean(values) if values else None


def _difference_between_groups(first: Sequence[float], second: Sequence[float]) -> Figure:
    """The difference of two groups' means, both resampled. Source: Efron & Tibshirani 1993, chapter 8."""
    if not first or not second:
        return Figure(None)
    value, n = fmean(second) - fmean(first), len(first) + len(second)
    if min(len(first), len(second)) < LEAST:
        return Figure(value, n=n, no_interval=FEW_PEOPLE)
    rng = np.random.default_rng(_SEED)
    drawn = [rng.choice(np.array(each, float), (RESAMPLES, len(each))).mean(1) for each in (first, second)]
    low, high = np.quantile(drawn[1] - drawn[0], (0.025, 0.975))
    return Figure(value, float(low), float(high), n)


def _outcome_unit(design: StudyDesign, outcome: str) -> str:
    return POINTS if outcome == UTILITY else find_game(design.game).metrics.columns[outcome].unit


def _result_section(
    design: StudyDesign, outcome: str, means: Sequence[tuple[str, Figure]], differences: Sequence[tuple[str, Figure]]
) -> ReportSection:
    unit, title = _outcome_unit(design, outcome), outcome.replace("_", " ").capitalize()
    chart = interval_chart(
        "outcomes", f"{title} by condition", title, "points per match" if unit == POINTS else unit, means, "Condition"
    )
    caption = f"Mean {title.lower()} of people under each condition; lines are 95 % intervals over people."
    tables = [
        plain_table(
            "conditions", "The same as numbers.", ("Condition", title, "People"),
            [(name, in_words(figure._asdict(), unit), str(figure.n)) for name, figure in means],
        )
    ]  # fmt: skip
    if differences:
        rows = [(name, signed(figure.value, unit), signed_beside(figure, unit) or NONE) for name, figure in differences]
        tables.append(
            plain_table(
                "differences", "Differences between the levels of each factor that has two.",
                ("Factor", "Difference", "95 % interval and n"), rows,
            )
        )  # fmt: skip
    return ReportSection("result", "Result", figures=[ReportFigure(chart, caption, has_table=True)], tables=tables)


def _flow_table(people: Sequence[AnalysedPerson], waves: Mapping[int, Wave]) -> ReportTable:
    """The number of people who came, how they ended and who counts, by wave."""
    endings = list(dict.fromkeys(each.ending or "under way" for each in people))
    rows = []
    for wave in waves.values():
        own = [each for each in people if each.wave == wave.name]
        ended = Counter(each.ending or "under way" for each in own)
        counts = [each for each in own if each.data == _COUNTS]
        kept = sum(not each.excluded_by for each in counts)
        rows.append(
            (
                wave.name,
                *(str(each) for each in (len(own), *(ended[name] for name in endings), len(counts))),
                str(len(counts) - kept),
                str(kept),
            )
        )
    head = (
        "Wave",
        "Came",
        *(name.replace("_", " ").capitalize() for name in endings),
        "Count",
        "Excluded",
        "In figures",
    )
    return plain_table("flow", "How people ended, and who is in the figures.", head, rows)


def _measures_table(people: Sequence[AnalysedPerson]) -> ReportTable:
    rows = []
    for name, title in _PLACES:
        values = [value for each in people if (value := each.measured.get(name)) is not None]
        if values:
            rows.append(
                (
                    title.capitalize(),
                    f"{fmean(values):.1f}",
                    f"{min(values):.1f} to {max(values):.1f}",
                    str(len(values)),
                )
            )
    return plain_table(
        "measures", "What was measured of the people in the figures.", ("Measure", "Mean", "Range", "People"), rows
    )


# ---- Words -----------------------------------------------------------------------------


def _study_finding(
    design: StudyDesign, outcome: str, means: Sequence[tuple[str, Figure]], differences: Sequence[tuple[str, Figure]]
) -> str:
    unit, title = _outcome_unit(design, outcome), outcome.replace("_", " ")
    if differences:
        name, figure = differences[0]
        return f"The mean {title} differs by {signed_in_words(figure, unit)} for {name}."
    found = [(name, figure) for name, figure in means if figure.value is not None]
    if not found:
        return "Nobody in the figures has played a match that counts."
    best = max(found, key=lambda each: each[1].value or 0.0)
    return f"The mean {title} is highest, {figure_in_words(best[1], unit)}, for {best[0]}."


def _study_methods(design: StudyDesign, outcome: str, scope: ExportScope) -> list[str]:
    factors = "; ".join(
        f"{factor} ({', '.join(map(str, design.levels(factor).values()))};"
        f" {'within' if factor in design.plan.within else 'between'} people)"
        for factor in design.conditions
    )
    rules = "; ".join(design.analysis.exclude) or "none"
    preregistered = "; ".join(f"{version.number}: {version.sha256}" for version in scope.versions.values())
    return [
        (
            f"People played {find_game(design.game).title} with these factors: {factors or 'none'}. Arms were drawn in"
            f" balanced blocks from the seed {design.plan.assign.seed}."
        ),
        (
            f"The design names the outcome {outcome} and these rules of exclusion: {rules}. They were written down"
            f" before the wave was opened: the SHA-256 of the design by version is {preregistered}."
        ),
        (
            "A person's outcome is the mean over the matches that count; matches that a model aborted do not. Means"
            " and differences are over people, with percentile intervals of 1,000 bootstrap resamples of people;"
            " differences are within a person where a person plays both levels."
        ),
        f"People were told that they play with: {design.partner_told}."
        + (f" Deception: {design.deception}." if design.deception else ""),
    ]


def _design_and_wave_versions(scope: ExportScope) -> list[tuple[str, str, str]]:
    designs = [
        (f"Study {scope.study.name}@{version.number}", "the design with its texts and material", version.sha256)
        for version in scope.versions.values()
    ]
    waves = [
        (
            f"Wave {wave.name}",
            f"version {scope.versions[wave.study_version_id].number}, frozen on {wave.frozen_at:%Y-%m-%d}",
            NONE,
        )
        for wave in scope.waves.values()
    ]
    return [*designs, *waves]


def _design_as_json(version: StudyVersion) -> str:
    return as_json(json.loads(version.design["design"]))


def _study_limits(
    people: Sequence[AnalysedPerson],
    design: StudyDesign,
    left_out: Sequence[str],
    means: Sequence[tuple[str, Figure]],
) -> list[str]:
    points = []
    if left_out:
        points.append(f"Waves that are not frozen are not in this report: {', '.join(left_out)}.")
    gone = sum(each.data == "withdrawn" for each in people)
    if gone:
        points.append(f"{gone} people had all of their data deleted; they are in no figure.")
    early = sum(each.ending not in (None, "completed") for each in people)
    if early:
        points.append(
            f"{early} of {len(people)} people ended early. If endings differ by condition, means may as well."
        )
    excluded = sum(each.data == _COUNTS and bool(each.excluded_by) for each in people)
    if excluded:
        points.append(f"{excluded} people are excluded by the rules of the design.")
    if any(figure.no_interval for _, figure in means):
        points.append(f"Figures without an interval are of {FEW_PEOPLE}.")
    if len(design.conditions) > 1:
        points.append("Differences are those of one factor at a time; how factors act together is not tested here.")
    points.append(
        "One comparison may be confirmatory, that of the outcome which the design names; all else is descriptive."
    )
    return points
