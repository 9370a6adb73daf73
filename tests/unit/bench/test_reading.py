"""`python -m bench.reading` on dialogues of our own."""

from pathlib import Path

from bench.reading import HELD_OUT, TUNING, dialogues, measure, table

FORM = "<input> {} </input> <dialogue> {} </dialogue> <output> {} </output> <partner_input> {} </partner_input>"
ONE, TWO = "2 1 1 2 3 2", "2 2 1 3 3 1"
DEAL = "item0=0 item1=1 item2=0 item0=2 item1=0 item2=3"
MIRRORED = "item0=2 item1=0 item2=3 item0=0 item1=1 item2=0"


def line(own: str, partner: str, first: str, output: str, *texts: str) -> str:
    names = (first, "THEM" if first == "YOU" else "YOU")
    turns = [f"{names[at % 2]}: {text}" for at, text in enumerate((*texts, "<selection>"))]
    return FORM.format(own, " <eos> ".join(turns), output, partner)


def written(folder: Path, *lines: str) -> str:
    path = folder / "talk.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


CLEAR = ("i want 1 hat , you can have the rest", "sounds good , deal")
VAGUE = ("what do you like", "a bit of this and a bit of that")


def test_a_clear_deal_is_read_and_closed_and_a_vague_one_is_not(tmp_path: Path) -> None:
    lines = [line(ONE, TWO, "YOU", DEAL, *talk) for talk in (CLEAR, VAGUE)]
    no_deal = line(ONE, TWO, "YOU", " ".join(["<no_agreement>"] * 6), "no deal then")
    found = measure(written(tmp_path, *lines, no_deal))
    parts = [part for part in found.values() if part]
    assert sum(part["views"] for part in parts) == 4
    assert sum(part["read"] for part in parts) == 2
    assert 2 <= sum(part["closed"] for part in parts) < 4
    assert all(part in table(found) for part in (TUNING, HELD_OUT))


def test_both_perspectives_of_a_dialogue_are_in_the_same_part(tmp_path: Path) -> None:
    for number in range(30):
        talk = (f"{CLEAR[0]} {number}", CLEAR[1])
        [one] = dialogues(written(tmp_path, line(ONE, TWO, "YOU", DEAL, *talk)))
        [other] = dialogues(written(tmp_path, line(TWO, ONE, "THEM", MIRRORED, *talk)))
        assert one.part == other.part
