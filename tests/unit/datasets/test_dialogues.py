"""Human dialogues on Deal or No Deal, in both published forms: paired, replayed, and scored anew from the choices."""

import json
import re

import pytest

from app.core.errors import Invalid
from app.datasets.importers.dialogues import Dialogues
from app.datasets.records import check
from app.matches import engine
from app.matches.events import Aborted, Event

PLAIN = """\
1 0 4 2 1 2 YOU: hats for me <eos> THEM: deal <eos> YOU: <selection> item0=0 item1=4 item2=0 <eos> reward=8 agree 1 4 4 1 1 2
1 4 4 1 1 2 THEM: hats for me <eos> YOU: deal <eos> THEM: <selection> item0=1 item1=0 item2=1 <eos> reward=6 agree 1 0 4 2 1 2
1 6 3 0 2 2 YOU: all mine <eos> THEM: <selection> item0=1 item1=3 item2=2 <eos> reward=10 disagree 1 2 3 2 2 1
2 0 1 4 3 2 YOU: ok? <eos> THEM:! <eos> YOU: <selection> item0=0 item1=1 item2=0 <eos> reward=4 disagree 2 1 1 8 3 0
2 1 1 8 3 0 THEM: ok? <eos> YOU:! <eos> THEM: <selection> item0=0 item1=1 item2=0 <eos> reward=8 disagree 2 0 1 4 3 2
1 6 2 0 4 1 THEM: hello <eos> YOU: <selection> no agreement <eos> reward=no agreement agree 1 8 2 1 4 0
1 0 2 4 2 1 THEM: both? <eos> YOU: ok <eos> THEM: <selection> no agreement <eos> reward=no agreement disagree 1 8 2 0 2 1
1 8 2 0 2 1 YOU: both? <eos> THEM: ok <eos> YOU: <selection> item0=1 item1=0 item2=2 <eos> reward=10 disagree 1 0 2 4 2 1
1 6 2 0 4 1 THEM: hello <eos> YOU: <selection> disconnect <eos> reward=disconnect agree 1 8 2 1 4 0
1 6 2 0 4 1 YOU: book? <eos> THEM: <selection> item0=1 item1=0 item2=0 <eos> reward=6 agree 1 8 2 1 4 0
"""  # noqa: E501
TAGGED = """\
<input> 1 6 3 0 2 2 </input> <dialogue> YOU: hi <eos> THEM: <selection> </dialogue> <output> <disagree> <disagree> <disagree> <disagree> <disagree> <disagree> </output> <partner_input> 1 2 3 2 2 1 </partner_input>
<input> 3 3 3 0 1 1 </input> <dialogue> YOU: hi <eos> THEM: <selection> </dialogue> <output> item0=2 item1=0 item2=1 item0=1 item1=3 item2=0 </output> <partner_input> 3 2 3 1 1 1 </partner_input>

<input> 3 2 3 1 1 1 </input> <dialogue> THEM: hi <eos> YOU: <selection> </dialogue> <output> item0=1 item1=3 item2=0 item0=2 item1=0 item2=1 </output> <partner_input> 3 3 3 0 1 1 </partner_input>
<input> 3 3 3 0 1 1 </input> <dialogue> YOU: hi <eos> THEM: <selection> </dialogue> <output> item0=2 item1=1 item2=1 item0=1 item1=3 item2=0 </output> <partner_input> 3 2 3 1 1 1 </partner_input>
<input> 1 2 2 3 2 1 </input> <dialogue> YOU: no <eos> THEM: <selection> </dialogue> <output> <no_agreement> <no_agreement> <no_agreement> <no_agreement> <no_agreement> <no_agreement> </output> <partner_input> 1 0 2 5 2 0 </partner_input>
<input> 1 2 2 3 2 1 </input> <dialogue> YOU: no <eos> THEM: <selection> </dialogue> <output> <disconnect> <disconnect> <disconnect> <disconnect> <disconnect> <disconnect> </output> <partner_input> 1 0 2 5 2 0 </partner_input>
"""  # noqa: E501


def put(path, text):
    path.write_text(text)
    return path


def proposals(match):
    return [
        (event.seat, *event.data["allocation"]) for event in match.events if getattr(event, "kind", "") == "proposal"
    ]


def test_plain_lines_are_paired_and_scored_from_the_choices(tmp_path):
    matches = list(Dialogues(put(tmp_path / "data.txt", PLAIN)))
    assert [match.facts["lines"] for match in matches] == [[1, 2], [3], [4, 5], [6], [7, 8], [9], [10]]
    assert [(match.outcome.reason, match.outcome.utilities) for match in matches] == [
        ("deal", (8, 6)),
        ("no deal", (0, 0)),
        ("no deal", (0, 0)),
        ("no deal", (0, 0)),
        ("no deal", (0, 0)),
        ("aborted", (0, 0)),
        ("deal", (6, 2)),
    ]
    assert [proposals(match) for match in matches] == [
        [(0, 0, 4, 0), (1, 1, 0, 1)],
        [(0, 1, 3, 2)],
        [(0, 0, 1, 0), (1, 0, 1, 0)],
        [],
        [(1, 1, 0, 2)],
        [],
        [(1, 0, 2, 4), (0, 1, 0, 0)],
    ]
    assert [match.facts["rewards"] for match in matches[:2]] == [["8", "6"], ["10"]]
    assert [match.index for match in matches] == list(range(7))


def test_tagged_lines_have_both_choices_or_none(tmp_path):
    matches = list(Dialogues(put(tmp_path / "data.txt", TAGGED)))
    assert [(match.facts["lines"], match.outcome.reason, match.outcome.utilities) for match in matches] == [
        ([1], "no deal", (0, 0)),
        ([2, 4], "deal", (7, 5)),
        ([5], "no deal", (0, 0)),
        ([6], "no deal", (0, 0)),
        ([7], "aborted", (0, 0)),
    ]


def test_turns_become_messages_of_people_and_who_spoke_first_moves_first(tmp_path):
    matches = list(Dialogues(put(tmp_path / "data.txt", PLAIN)))
    assert {seat.kind for match in matches for seat in match.seats} == {"person"}
    assert [match.config["first"] for match in matches] == [0, 0, 0, 1, 1, 1, 0]
    talk = [event for event in matches[2].events if isinstance(event, Event) and event.kind == "message"]
    assert [(event.seat, event.text) for event in talk] == [(0, "[message] ok?"), (1, "[message] !")]


def hugging_face(line):
    """A tagged line as the object that says the same."""
    tags = ("input", "dialogue", "output", "partner_input")
    own, dialogue, output, partner = re.fullmatch(" ".join(f"<{tag}> (.*) </{tag}>" for tag in tags), line).groups()
    sides = [[int(number) for number in six.split()] for six in (own, partner)]
    own, partner = ({"count": six[0::2], "value": six[1::2]} for six in sides)
    return {"input": own, "dialogue": dialogue, "output": output, "partner_input": partner}


def in_lists(row):
    sides = {
        name: [{"count": count, "value": value} for count, value in zip(*row[name].values(), strict=True)]
        for name in ("input", "partner_input")
    }
    return {**sides, "dialogue": row["dialogue"].split(" <eos> "), "output": row["output"].split(" ")}


def test_the_form_of_hugging_face_is_read_as_the_tagged_lines_are(tmp_path):
    tagged = list(Dialogues(put(tmp_path / "data.txt", TAGGED.replace("\n\n", "\n"))))
    assert [match.outcome.reason for match in tagged] == ["no deal", "deal", "no deal", "no deal", "aborted"]
    rows = [hugging_face(line) for line in TAGGED.splitlines() if line]
    listed = [in_lists(row) for row in rows]
    words = [{**row, "dialogue": row["dialogue"].split(" ")} for row in rows]
    viewer = {"features": [], "rows": [{"row_idx": 7, "row": row, "truncated_cells": []} for row in rows]}
    for text in (
        "\n".join(map(json.dumps, rows)), json.dumps(rows), json.dumps(rows, indent=1), json.dumps(viewer),
        json.dumps(viewer["rows"]),
        f"\ufeff{json.dumps(viewer, indent=2)}", "\n".join(map(json.dumps, listed)), json.dumps(words),
    ):  # fmt: skip
        assert list(Dialogues(put(tmp_path / "data.json", text))) == tagged
    mixed = TAGGED.splitlines()
    mixed[3] = f" {json.dumps(rows[2])} "  # both sides of a dialogue, each in another form
    assert [match.facts for match in Dialogues(put(tmp_path / "data.txt", "\n".join(mixed)))] == [
        match.facts for match in Dialogues(put(tmp_path / "data.txt", TAGGED))
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"output": None}, "row 2, output: expected a text, got None"),
        ({"input": {"count": [1, 2], "value": [1, 2]}}, "row 2, input: expected count and value of three items, got"),
        ({"partner_input": {}}, "row 2, partner_input: expected count and value of three items, got {}"),
        (
            {"input": {"count": [3, 3, "1"], "value": [3, 0, 1]}},
            "row 2: expected the same counts for both, got [3, 3, '1",
        ),
        ({"partner_input": {"count": [3, 3, 1], "value": [True, 0, 1]}}, "row 2: counts, values: expected three whole"),
        ({"output": "item0=4 item1=0 item2=1 item0=1 item1=3 item2=0"}, "row 2: expected choices of at most (3, 3, 1)"),
        ({"dialogue": "hello <eos> THEM: <selection>"}, "row 2, turn 0: expected YOU: or THEM: and words, got 'hello'"),
    ],
)
def test_a_malformed_object_is_named(tmp_path, change, message):
    row = hugging_face(TAGGED.splitlines()[1])
    path = put(tmp_path / "data.json", json.dumps([row, {**row, **change}]))
    with pytest.raises(Invalid) as refusal:
        check(Dialogues(path))
    assert refusal.value.message.startswith(f"{path}, {message}")
    assert "\n" not in refusal.value.message


def test_an_object_that_is_no_dialogue_says_what_it_has(tmp_path):
    row = hugging_face(TAGGED.splitlines()[1])
    cut = {"rows": [{"row": row, "truncated_cells": ["dialogue"]}]}
    for text, message in (
        (
            '{"messages": []}',
            "line 1: expected an object with {input, dialogue, output, partner_input}, got {messages}",
        ),
        ("[[]]", "row 1: expected an object with {input, dialogue, output, partner_input}, got []"),
        (json.dumps(row) + '\n{"input": 1', "line 2: expected JSON, got invalid JSON at column 12"),
        ('{\n"input": 1', "expected dialogues, got no JSON at line 2, column 11"),
        (json.dumps(cut), "row 1: expected whole cells, got ['dialogue'] cut off"),
    ):
        path = put(tmp_path / "data.json", text)
        with pytest.raises(Invalid) as refusal:
            check(Dialogues(path))
        assert message in refusal.value.message


def test_every_log_replays_to_its_end(tmp_path):
    for text in (PLAIN, TAGGED):
        for match in Dialogues(put(tmp_path / "data.txt", text)):
            replayed = engine.replay(match.events)
            assert replayed.over
            assert isinstance(replayed.stopped, Aborted) is (match.outcome.reason == "aborted")


def test_long_and_one_sided_talk_is_kept_as_it_was(tmp_path):
    turns = " <eos> ".join(["YOU: and another thing"] * 70)
    line = f"1 0 4 2 1 2 {turns} <eos> YOU: <selection> item0=0 item1=4 item2=0 <eos> reward=8 agree 1 4 4 1 1 2\n"
    (match,) = Dialogues(put(tmp_path / "data.txt", line))
    assert len(match.events) == 1 + 70 + 2 + 1
    assert match.outcome.utilities == (8, 6)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("hello", "expected a dialogue as six numbers, turns, reward=…, got 'hello'"),
        ("<input> 1 2", "expected a dialogue as <input> … <dialogue> … <output> … <partner_input> …"),
        ("1 0 4 2 1 2 YOU: hi <eos> ME: deal <eos> reward=8 agree 1 4 4 1 1 2", "turn 1: expected YOU: or THEM:"),
        (
            "1 0 4 2 1 2 YOU: <selection> item0=0 item1=5 item2=0 <eos> reward=8 agree 1 4 4 1 1 2",
            "expected choices of at most (1, 4, 1), got (0, 5, 0)",
        ),
        (
            "1 0 4 2 1 2 YOU: <selection> all <eos> reward=8 agree 1 4 4 1 1 2",
            "expected a choice as item0=… item1=… item2=…, got 'all'",
        ),
        (
            "1 0 4 2 1 2 YOU: <selection> item0=0 item1=4 item2=0 <eos> reward=8 agree 2 4 4 1 1 2",
            "expected the same counts for both, got [1, 4, 1] and [2, 4, 1]",
        ),
        (
            "1 0 4 2 1 2 YOU: <selection> item0=0 item1=4 item2=0 <eos> reward=8 agree 1 4 4 4 1 2",
            "expected values of seat 1 that make 10 points over all items, got 22",
        ),
        (TAGGED.splitlines()[1].replace("item0=2 ", ""), "output: expected six choices"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, line, message):
    path = put(tmp_path / "data.txt", PLAIN + line + "\n")
    with pytest.raises(Invalid) as refusal:
        check(Dialogues(path))
    assert refusal.value.message.startswith(f"{path}, line 11")
    assert message in refusal.value.message


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "bytes.txt").write_bytes(b"\xff\n")
    (tmp_path / "empty.txt").write_text("\n")
    for name, message in (
        ("none.txt", "expected a file of dialogues, got no such file"),
        ("bytes.txt", "line 1: expected a dialogue, got bytes that are not UTF-8"),
        ("empty.txt", "expected a dialogue a line, got an empty file"),
    ):
        with pytest.raises(Invalid, match=message):
            check(Dialogues(tmp_path / name))
