"""What a study's file may say, and how it is told what is wrong with it."""

import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from app.core.config import ROOT
from app.core.errors import Invalid
from app.studies.arms import arms, matches_a_person
from app.studies.design_files import load_design, write_design
from app.studies.endings import PROLIFIC
from tests.waves import STUDIES

SHIPPED = ROOT / "data" / "studies"
EXAMPLE = SHIPPED / "two-models" / "two-models.yaml"


@pytest.fixture
def folder(tmp_path):
    """A copy of the first example, filled in, that may be written to."""
    return Path(shutil.copytree(STUDIES / EXAMPLE.stem, tmp_path / "study"))


def changed(folder: Path, old: str, new: str) -> Path:
    path = folder / EXAMPLE.name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*/*.yaml")), ids=lambda path: path.stem)
def test_a_shipped_study_can_be_loaded(path):
    loaded = load_design(path)
    assert loaded.design.study == path.stem == path.parent.name
    assert len(arms(loaded.design)) == 4
    assert len(loaded.material) >= matches_a_person(loaded.design)


# What is changed in the example, and what comes behind the name of the file: line, key, what was expected, what came.
FAULTS = {
    "a key twice": (
        "title: Sharing things", "title: Sharing things\ntitle: Again",
        "4: title: expected each key once, got it in line 3, too",
    ),
    "no value": (
        "minutes: 25", "minutes:", "5: minutes: expected a value, got none; leave the key out",
    ),
    "a missing key": ("minutes: 25\n", "", "2: minutes: expected a value, got none"),
    "a misspelt key": ("minutes: 25", "minuts: 25", "5: minuts: expected minutes, got minuts"),
    "a misspelt key deep inside": (
        "seconds_per_word: 0.3", "second_per_word: 0.3",
        "21: same_for_all.reply_after.second_per_word: expected seconds_per_word, got second_per_word",
    ),
    "a truth value for a word": (
        'choice: ["yes", "no", not sure]', "choice: [yes, no, not sure]",
        ("47: survey.end[1].choice[1]: expected text (in quotes where it looks like a number, a date,"
        " yes or no), got True"),
    ),
    "a date for a text": (
        "title: Sharing things", "title: 2026-08-01",
        "3: title: expected text, got the date 2026-08-01; put it in quotes",
    ),
    "no YAML": (
        "game: negotiation", "game: [negotiation",
        "17: expected YAML, got expected ',' or ']', but got ':'",
    ),
    "an alias": (
        "title: Sharing things", "title: &t Sharing things",
        "3: expected YAML, got an anchor (&) or an alias (*), which this file may not have",
    ),
    "lists in lists without end": (
        "title: Sharing things", f"title: {'[' * 2000}",
        "3: expected YAML, got more than 20 levels of keys and lists",
    ),
    "what only looks like a number": (
        "minutes: 25", "minutes: 0x_", "5: minutes: expected a number in digits, or text in quotes, got '0x_'",
    ),
    "no finite number": (
        "seconds_per_word: 0.3", "seconds_per_word: .inf",
        "21: same_for_all.reply_after.seconds_per_word: expected a number in digits, or text in quotes, got '.inf'",
    ),
    "no word at all": (
        "title: Sharing things", 'title: ""', "3: title: expected at least 1 character, got ''",
    ),
    "no time at all": (
        "turn: 2 min", "turn: 0 s",
        "22: same_for_all.limits.turn: expected a time such as 90 s, 10 min, 2 h or 30 days, got '0 s'",
    ),
    "a time beyond all calendars": (
        "turn: 2 min", "turn: 99999999999 days",
        ("22: same_for_all.limits.turn: expected a time such as 90 s, 10 min, 2 h or 30 days,"
        " got '99999999999 days'"),
    ),
    "a level that the game does not know": (
        "objective: [self, coop]", "objective: [self, fair]",
        "19: conditions.objective[2]: expected self, coop, comp or a number from -1 to 1, got 'fair'",
    ),
    "a role in a game of equals": (
        "objective: [self, coop]", "role: [buyer, seller]",
        "19: conditions.role[1]: expected no role, as both seats have the same, got 'buyer'",
    ),
    "a factor left out of the plan": (
        "within: [model, objective]", "within: [objective]",
        "24: plan: expected model under within or under between, got it under neither",
    ),
    "what people are told is not true": (
        "partner_told: computer", "partner_told: either",
        ("15: partner_told: expected computer or hidden, as every partner is a model, got 'either';"
        " a study that says otherwise names the approval of its ethics board under deception"),
    ),
    "a quiz for another objective": (
        "right: {self: 6, coop: 10}", "right: {self: 6, comp: 10}",
        ("38: quiz.questions[1].right: expected one answer for each level of a factor,"
        " got ['comp', 'self']"),
    ),
    "a wrong answer that is right": (
        "wrong: [2, 4, 24]", "wrong: [2, 6, 24]",
        ("37: quiz.questions[1]: expected wrong answers that differ from each other and from the right"
        " one, got keys with values"),
    ),
    "a question that is asked of an answer that cannot be": (
        "show_if: same = yes", "show_if: same = maybe",
        "48: survey.end[2].show_if: expected yes or no or not sure, got 'maybe'",
    ),
    "an order of words": (
        "attention < 2, ", "ai_help < 2, ",
        "64: analysis.exclude[1]: expected = or !=, as ai_help is answered in words, got ai_help < 2",
    ),
    "an answer beside the choice in a rule": (
        "attention < 2, ", "same = maybe, ", "64: analysis.exclude[1]: expected yes or no or not sure, got 'maybe'",
    ),
    "a rule that always holds": (
        "attention < 2, ", "attention < 9, ",
        ("64: analysis.exclude[1]: expected a rule that holds for some, as attention is a whole number from 0 to 3,"
        " got attention < 9"),
    ),
    "a rule that never holds": (
        "show_if: same = yes", "show_if: trust = 9",
        ("48: survey.end[2].show_if: expected a rule that holds for some, as trust is a whole number from 1 to 7,"
        " got trust = 9"),
    ),
    "a label that is too long": (
        "{a: scripted, b: tiny}", "{a: scripted, " + "b" * 41 + ": tiny}",
        ("18: conditions.model: expected labels of at most 40 characters, got a longer one;"
        " write {LABEL: LEVEL} for each"),
    ),
    "two kinds of answers": (
        "text: 500, ask", "text: 500, scale: 5, ask",
        ("48: survey.end[2]: expected one of number, text, choice, choices, scale, matrix, slider,"
        " outside, got keys with values"),
    ),
    "no money": (
        "base: 5.00", "base: five", "55: pay.base: expected an amount of money such as 8.50, got 'five'",
    ),
    "a fraction of a cent": (
        "base: 5.00", "base: 5.005",
        "55: pay.base: expected an amount of money with two decimals at most, got 5.005",
    ),
    "a rule about nothing": (
        "pasted_share > 0.2", "pasted > 0.2",
        ("64: analysis.exclude[2]: expected attention or minutes or pasted_share or hidden_share or"
        " quiz_attempts or matches or utility or trust or effort or read_it or same or how or ai_help or read_this,"
        " got 'pasted'"),
    ),
    "a file that is not there": (
        "instructions: instructions.md", "instructions: rules.md",
        ("32: instructions: expected a text file rules.md beside the study,"
        " got no such file or directory"),
    ),
    "a path out of the folder": (
        "instructions: instructions.md", "instructions: ../rules.md",
        "32: instructions: expected the name of a file in the folder of the study, got '../rules.md'",
    ),
    "a path of material out of the folder": (
        "contexts: contexts.txt", "contexts: /tmp/contexts.txt",
        ("31: material.contexts: expected the name of a file in the folder of the study,"
        " got '/tmp/contexts.txt'"),
    ),
    "a misspelt key beside the file": (
        "each: once a person", "eahc: once a person", "31: material.eahc: expected each, got eahc",
    ),
    "material of a group that there is not": (
        "each: once a person", "yoked_to: self",
        ("31: material.yoked_to: expected none, as no factor with several levels is between persons,"
        " got 'self'"),
    ),
    "more matches than material": (
        "matches: 1\n  blocks", "matches: 5\n  blocks",
        "31: material.contexts: expected at least 20 different pieces, one for each match of a person, got 16",
    ),
    "an answer of no kind": (
        "right: {self: 6, coop: 10}", "right: {self: [6], coop: 10}",
        ("38: quiz.questions[1].right.self: expected text (in quotes where it looks like a number, a date,"
        " yes or no) or a number, got [6]"),
    ),
    "a warning after the end of a turn": (
        "limits: {turn: 2 min", "idle: {warn: 2 min}\n  limits: {turn: 2 min",
        "20: same_for_all: expected an idle.warn that is shorter than limits.turn, got keys with values",
    ),
    "pairs of people": (
        "instructions: instructions.md", "instructions: instructions.md\npairing: {idle: {warn: 60 s, end: 120 s}}",
        "33: pairing: expected a study without pairs of people, who cannot play with each other yet, got pairing",
    ),
    "an ending that there is not": (
        "quiz_failed: {base: 1.00}", "quiz_faild: {base: 1.00}",
        ("63: endings.quiz_faild: expected 'completed', 'declined', 'ineligible', 'quiz_failed', 'no_partner',"
        " 'partner_left', 'technical', 'inactive', 'withdrawn', 'removed', 'full' or 'closed', got 'quiz_faild'"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_told_with_its_line_and_key(folder, old, new, line):
    with pytest.raises(Invalid) as refused:
        load_design(changed(folder, old, new))
    assert refused.value.message == f"two-models.yaml:{line}"


def test_a_consent_text_has_to_tell_of_risks(folder):
    text = (folder / "consent.md").read_text(encoding="utf-8")
    (folder / "consent.md").write_text(text.replace("## Risks", "## Chances"), encoding="utf-8")
    with pytest.raises(Invalid, match=r"two-models.yaml:14: consent.text: expected text under the .*, got no Risks"):
        load_design(folder / EXAMPLE.name)


def test_a_heading_with_nothing_under_it_tells_nothing(folder):
    text = (folder / "consent.md").read_text(encoding="utf-8")
    before, after = text.index("## Risks") + len("## Risks"), text.index("## If you stop")
    (folder / "consent.md").write_text(f"{text[:before]}\n\n{text[after:]}", encoding="utf-8")
    with pytest.raises(Invalid, match="got no Risks"):
        load_design(folder / EXAMPLE.name)


def test_recipients_that_the_design_lists_need_no_german_heading(folder):
    told = "".join(f"## {name}\n\nText.\n\n" for name in ("Zweck", "Risiken", "Wenn Sie vorzeitig aufhören"))
    (folder / "consent.md").write_text(told, encoding="utf-8")
    assert load_design(changed(folder, "language: en", "language: de"))
    with pytest.raises(Invalid, match="got no Empfänger"):
        load_design(changed(folder, "  recipients: [researchers of the university above]\n", ""))


def test_a_misspelt_placeholder_is_refused(folder):
    text = (folder / "consent.md").read_text(encoding="utf-8")
    (folder / "consent.md").write_text(text.replace("{minutes}", "{mintues}"), encoding="utf-8")
    with pytest.raises(Invalid, match=r"yaml:14: consent.text: expected \{minutes\} in .*, got \{mintues\}"):
        load_design(folder / EXAMPLE.name)


def test_a_study_extends_another_one_key_by_key(folder):
    path = folder / "longer.yaml"
    path.write_text("study: longer\nextends: two-models\nminutes: 50\n", encoding="utf-8")
    design, base = load_design(path).design, load_design(folder / EXAMPLE.name).design
    assert (design.study, design.minutes) == ("longer", 50)
    assert design.pay == base.pay


def test_names_of_arms_have_room(folder):
    long = ["self" * 9, "coop" * 9]
    changed(folder, "right: {self: 6, coop: 10}", "right: 6")
    changed(folder, "    by_objective: {coop: {per_point: 0.05}}\n", "")
    path = changed(folder, "[self, coop]", f"{{{long[0]}: self, {long[1]}: coop}}")
    with pytest.raises(Invalid, match="24: plan: expected labels that make names of arms of at most 80 characters"):
        load_design(path)


def test_a_plan_without_blocks_is_one_block(folder):
    path = folder / "shorter.yaml"
    path.write_text(
        "study: shorter\nextends: two-models\nconditions: {model: {a: scripted}, objective: [self]}\n"
        "plan: {matches: 3, assign: {seed: 5}}\npay: {currency: USD, base: 6.00, most_a_person: 4.00}\n",
        encoding="utf-8",
    )
    assert [arm.name for arm in arms(load_design(path).design)] == ["all"]


def test_a_choice_of_digits_is_a_choice_of_words(folder):
    changed(folder, "show_if: same = yes", "show_if: same = 1")
    assert load_design(changed(folder, '["yes", "no", not sure]', '["0", "1"]'))


def test_a_fault_in_what_a_study_extends_is_told_with_that_file(folder):
    path = folder / "longer.yaml"
    path.write_text("study: longer\nextends: two-models\nminutes: 50\n", encoding="utf-8")
    changed(folder, "base: 5.00", "base: five")
    with pytest.raises(Invalid, match=r"^two-models.yaml:55: pay.base: expected an amount"):
        load_design(path)


def test_what_extends_a_study_has_a_name_of_its_own(folder):
    path = folder / "longer.yaml"
    path.write_text("extends: two-models\nminutes: 50\n", encoding="utf-8")
    with pytest.raises(Invalid, match=r"^longer.yaml:1: study: expected a name of its own, got none"):
        load_design(path)


def test_digits_without_end_are_told_as_no_number(folder):
    line = r"^two-models.yaml:5: minutes: expected a number of at most 9223372036854775807, got '9999"
    with pytest.raises(Invalid, match=line):
        load_design(changed(folder, "minutes: 25", f"minutes: {'9' * 5000}"))


def test_a_study_may_not_extend_itself(folder):
    path = changed(folder, "study: two-models", "study: two-models\nextends: two-models")
    with pytest.raises(Invalid, match="expected a study that does not extend this one, got 'two-models'"):
        load_design(path)


def test_what_is_written_out_is_the_same_study(folder, tmp_path):
    loaded = load_design(folder / EXAMPLE.name)
    written = write_design(tmp_path / "copy", loaded.written, loaded.texts)
    assert load_design(written).sha256 == loaded.sha256


def test_another_order_is_another_study_and_another_comment_is_not(folder):
    before = load_design(folder / EXAMPLE.name).sha256
    assert load_design(changed(folder, "title: ", "# What people see\ntitle: ")).sha256 == before
    assert load_design(changed(folder, "{a: scripted, b: tiny}", "{b: tiny, a: scripted}")).sha256 != before


def test_a_piece_that_stands_twice_is_one(folder):
    lines = (folder / "contexts.txt").read_text(encoding="utf-8").splitlines()
    (folder / "contexts.txt").write_text("\n".join(lines[:2] * 16), encoding="utf-8")
    with pytest.raises(Invalid, match="expected at least 4 different pieces, one for each match of a person, got 1"):
        load_design(folder / EXAMPLE.name)


def test_material_may_be_that_of_a_group(tmp_path):
    path = Path(shutil.copytree(SHIPPED / "taboo-roles", tmp_path / "study")) / "taboo-roles.yaml"
    text = path.read_text(encoding="utf-8")
    for level in ("a", "attacker"):
        path.write_text(text.replace("each: once a person", f"yoked_to: {level}"), encoding="utf-8")
        if level == "a":
            assert load_design(path).design.material.yoked_to == level
        else:
            with pytest.raises(Invalid, match="yoked_to: expected a or b, got 'attacker'"):
                load_design(path)


def test_what_a_design_changes_of_an_ending_is_an_amount(folder):
    ending = load_design(folder / EXAMPLE.name).design.ending("quiz_failed", PROLIFIC)
    assert (ending.base, ending.bonus) == (Decimal("1.00"), "earned")


@pytest.mark.parametrize(
    ("file", "words", "key", "expected"),
    [
        ("instructions.md", "[All about it](https://{goal})", "instructions",
         "placeholders in words that instructions.md shows, not in the address or title of a link, got {goal}"),
        ("consent.md", "Your goal: {goal}", "consent.text",
         "{matches} or {minutes} or {base} or {most} or {currency} in consent.md, got {goal}"),
    ],
)  # fmt: skip
def test_a_placeholder_that_people_would_see_is_refused(folder, file, words, key, expected):
    with (folder / file).open("a", encoding="utf-8") as text:
        text.write(f"\n{words}\n")
    with pytest.raises(Invalid) as refused:
        load_design(folder / EXAMPLE.name)
    assert f"{key}: expected {expected}" in refused.value.message


def test_another_word_in_a_text_is_another_study(folder):
    before = load_design(folder / EXAMPLE.name).sha256
    with (folder / "instructions.md").open("a", encoding="utf-8") as file:
        file.write("Good luck!\n")
    assert load_design(folder / EXAMPLE.name).sha256 != before


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("attempts: 2", "attempts: 1", ("quiz", "attempts")),
        ("    by_objective: {coop: {per_point: 0.05}}\n", "", ("pay", "bonus")),
        ("quiz_failed: {base: 1.00}", "quiz_failed: {base: none}", ("endings", "quiz_failed")),
        ("objective: [self, coop]", "objective: [self, comp]", ("pay", "bonus")),
        ("id: ai_help", "id: prolific_id", ("survey",)),
        ("most_a_person: 5.00", "most_a_person: 4.99", ("pay", "most_a_person")),
        ("do well in the last two games.", "trust my partner.", ("survey", "after each block")),
        ("partner_told: computer", "partner_told: hidden", ("partner_told",)),
    ],
)
def test_what_deserves_a_second_thought_is_told(folder, old, new, key):
    path = changed(folder, old, new)
    if "comp" in new:
        changed(folder, "{coop: {per_point: 0.05}}", "{comp: {per_point: 0.05}}")
        changed(folder, "coop: 10}", "comp: 2}")
        changed(folder, "coop: 11}", "comp: 1}")
        changed(folder, "wrong: [2, 4, 24]", "wrong: [3, 4, 24]")
    assert key in [warned.path for warned in load_design(path).warned]


def test_attention_is_checked_as_often_as_it_is_asked(folder):
    once = changed(folder, "attention: green, shuffle: true", "shuffle: true")
    assert ("survey",) not in [warned.path for warned in load_design(once).warned]
    rules = changed(folder, "attention: 2}", "required: true}")
    changed(folder, "attention < 2, ", "")
    changed(folder, "shuffle: true}", "attention: green}")
    assert ("survey",) in [warned.path for warned in load_design(rules).warned]


def test_points_below_nothing_are_told_once_and_only_where_they_are_paid(folder):
    changed(folder, "{coop: {per_point: 0.05}}", "{comp: {per_point: 0.10}}")
    changed(folder, "coop: 10}", "comp: 2}")
    changed(folder, "coop: 11}", "comp: 1}")
    changed(folder, "wrong: [2, 4, 24]", "wrong: [3, 4, 24]")
    path = changed(folder, "objective: [self, coop]", "objective: [self, comp]")
    told = [warned.text for warned in load_design(path).warned]
    assert told == ["under comp points may be negative, and a floor without an endowment pays nothing"]
    assert load_design(changed(folder, "of: utility", "of: own points")).warned == []


def test_a_goal_that_differs_is_explained(folder):
    text = (folder / "instructions.md").read_text(encoding="utf-8")
    (folder / "instructions.md").write_text(text.replace("{goal}", ""), encoding="utf-8")
    assert [each.path for each in load_design(folder / EXAMPLE.name).warned] == [("instructions",)]


def test_recipients_for_training_are_named_only_where_people_are_asked(folder):
    named = "training: ask, training_recipients: [OpenAI, Tinker]"
    assert load_design(changed(folder, "training: ask", named)).design.consent.training_recipients == (
        "OpenAI",
        "Tinker",
    )
    with pytest.raises(Invalid, match="consent: expected no training_recipients where training is not asked"):
        load_design(changed(folder, named, named.replace("ask", "'no'")))


def test_publication_is_asked_only_where_training_is(folder: Path) -> None:
    assert load_design(folder / "two-models.yaml").design.consent.publication == "no"
    with pytest.raises(Invalid, match="consent: expected training: ask beside publication: ask"):
        load_design(changed(folder, "training: ask", 'training: "no", publication: ask'))
