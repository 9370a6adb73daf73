"""What files of studies cost that nobody would write but somebody may send, and how they are refused."""

import json
import shutil

import pytest

from app.core.config import ROOT
from app.core.errors import Invalid, either
from app.core.yaml_reader import parse_yaml, read_yaml
from app.studies.design import StudyDesign
from app.studies.design_files import load_design, read_part
from app.web.admin.study_editor import line_of
from tests.effort import growth

EXAMPLE = ROOT / "data" / "studies" / "two-models" / "two-models.yaml"
_MORE_THAN_LINEAR = 6.25  # of four times the input: 2.5 at each doubling


def refusal(text: str) -> str:
    with pytest.raises(Invalid) as caught:
        read_part(StudyDesign, parse_yaml(text, "x.yaml"))
    return caught.value.message


@pytest.mark.parametrize(
    "item",
    ["conditions: {{{}}}", "endings: {{{}}}", "pay: {{bonus: {{by_objective: {{{}}}}}}}", "quiz: {{questions: [{}]}}"],
)
def test_telling_what_is_wrong_with_many_keys_takes_no_longer_for_each(item):
    def refused(count: int) -> None:
        refusal(item.format(", ".join(f"k{number}: 1" for number in range(count))))

    assert growth(refused, 500, 2000) <= _MORE_THAN_LINEAR


def test_a_file_with_more_keys_than_any_study_is_refused_with_the_line():
    text = "".join(f"k{number}: 1\n" for number in range(80_000))
    assert refusal(text) == "x.yaml:10000: expected YAML, got more than 20000 keys and values"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("0x" + "f" * 10_000, "expected a number in digits, or text in quotes, got '0x"),
        ("1" + ":59" * 100_000, "expected a number in digits, or text in quotes, got '1:59"),
        ("1" * 5000, "expected a number of at most 9223372036854775807, got '1111"),
        ("1.0e+999", "expected a number of at most 9223372036854775807, got '1.0e+999'"),
        ("010", "expected a number in digits, or text in quotes, got '010'"),
        ("1:30", "expected a number in digits, or text in quotes, got '1:30'"),
        ("1_000", "expected a number in digits, or text in quotes, got '1_000'"),
        (".nan", "expected a number in digits, or text in quotes, got '.nan'"),
        ("-.inf", "expected a number in digits, or text in quotes, got '-.inf'"),
        ("9223372036854775808", "expected a number of at most 9223372036854775807, got '9223372036854775808'"),
        ('"\\0"', "expected text, got a character that is none"),
        ('"\\ud800"', "expected text, got a character that is none"),
        ("a\0b", "expected text, got the character U+0000"),
        ("a\a", "expected text, got the character U+0007"),
        ("[" * 5000, "expected YAML, got more than 20 levels of keys and lists"),
        ("&a [*a, *a]", "expected YAML, got an anchor (&) or an alias (*), which this file may not have"),
        ("!!bool maybe", "expected a number in digits, or text in quotes, got 'maybe'"),
        ("!!float ''", "expected a number in digits, or text in quotes, got ''"),
        ("!!int '-'", "expected a number in digits, or text in quotes, got '-'"),
        ('"\\UFFFFFFFF"', "expected YAML, got the code of a character that is none"),
        ('"\\U00110000"', "expected YAML, got the code of a character that is none"),
        ("!!python/object/apply:os.system [id]", "expected text, a number, a list or keys"),
    ],
    ids=lambda value: value[:12],
)  # fmt: skip
def test_a_value_that_is_no_value_is_told_in_one_line(value, message):
    told = refusal(f"minutes: {value}\n")
    assert message in told
    assert told.startswith("x.yaml:1: ")
    assert len(told) < 250


def test_json_may_escape_an_emoji_as_two_codes():
    assert parse_yaml(json.dumps({"name \N{PARTY POPPER}": "party \N{PARTY POPPER}"}), "x.json").value == {
        "name \N{PARTY POPPER}": "party \N{PARTY POPPER}"
    }


@pytest.mark.parametrize("text", ["minutes: {a:\n}\n", "minutes:\n  a:\n\n\nb: 1\n"], ids=["in braces", "before a gap"])
def test_a_value_that_is_missing_is_missed_in_the_line_of_its_key(text):
    line = text[: text.index("a:")].count("\n") + 1
    assert refusal(text) == f"x.yaml:{line}: minutes.a: expected a value, got none; leave the key out"


def test_a_file_that_never_ends_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "x.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 34)
    with pytest.raises(Invalid, match="a file of at most 1 MB"):
        read_yaml(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("objective: [self, coop]", f"objective: [{', '.join(map(str, range(300)))}]", "at most 240 items"),
        ("matches: 1", "matches: 50", "plan: expected at most 200 matches a person, got 300"),
    ],
    ids=["levels", "matches"],
)
def test_a_plan_has_bounds(tmp_path, old, new, message):
    folder = shutil.copytree(EXAMPLE.parent, tmp_path / "study")
    text = EXAMPLE.read_text(encoding="utf-8").replace("{a: scripted, b: tiny}", "{a: scripted, b: tiny, c: other}")
    assert old in text
    (folder / EXAMPLE.name).write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(Invalid, match=message):
        load_design(folder / EXAMPLE.name)


def test_a_line_with_many_spaces_is_looked_through_once():
    text = "survey:\n" + " " * 100_000 + "x\n" + "- " * 50_000 + "x\n"
    assert line_of(text, ("survey", "end")) == 1
    assert line_of("survey:\n  -  end:\n", ("survey", "end")) == 2


def test_of_very_many_choices_the_first_are_told():
    told = str(either(f"q{number}" for number in range(5000)))
    assert told.startswith("q0 or q1 or ")
    assert told.endswith("q40 or …")


def test_a_text_that_no_database_takes_is_refused(tmp_path):
    folder = shutil.copytree(EXAMPLE.parent, tmp_path / "study")
    (folder / "debrief.md").write_bytes(b"Thank\0you.\n")
    with pytest.raises(Invalid, match=r"a text file debrief.md beside the study, got one with a character"):
        load_design(folder / EXAMPLE.name)


def test_studies_that_extend_each_other_without_end_are_refused(tmp_path):
    for number in range(1200):
        (tmp_path / f"s{number}.yaml").write_text(f"study: s{number}\nextends: s{number + 1}\n", encoding="utf-8")
    with pytest.raises(Invalid, match="at most 10 studies that extend each other"):
        load_design(tmp_path / "s0.yaml")
