"""`python -m bench.judging` on dialogues of our own, with rates worked out by hand."""

import csv
from pathlib import Path

import pytest

from bench.judging import COLUMNS, kappa, main, rates
from tests.unit.bench.test_reading import CLEAR, DEAL, ONE, TWO, VAGUE, line, written


def filled_in(path: Path, copy: Path, judged: dict[str, str]) -> Path:
    """A judge's copy: what is to be filled in, by how the talk begins."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with copy.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for row in rows:
            splits = next(each for begin, each in judged.items() if row["talk"].startswith(f"A: {begin}"))
            writer.writerow({**row, "splits": splits})
    return copy


def test_deals_are_drawn_judged_and_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = f"people={written(tmp_path, *(line(ONE, TWO, 'YOU', DEAL, *talk) for talk in (CLEAR, VAGUE)))}"
    out = tmp_path / "deals.csv"
    main(["draw", people, "--out", str(out)])
    with out.open(encoding="utf-8", newline="") as file:
        rows = {row["talk"].splitlines()[0]: row for row in csv.DictReader(file)}
    assert "0 1 0" not in rows[f"A: {CLEAR[0]}"].values()  # what was agreed would be read into the talk
    assert rows[f"A: {CLEAR[0]}"]["books hats balls"] == "2 1 3"
    # The second judge hears a split in the vague talk, too, where the reader hears none.
    first = filled_in(out, tmp_path / "first.csv", {CLEAR[0]: "0 1 0", VAGUE[0]: "-"})
    second = filled_in(out, tmp_path / "second.csv", {CLEAR[0]: "1 1 3; 0 1 0", VAGUE[0]: "0 1 0;  2 0 0"})
    third = filled_in(out, tmp_path / "third.csv", {CLEAR[0]: "", VAGUE[0]: "-"})
    main(["score", people, str(first), str(second)])
    said = capsys.readouterr().out
    assert "| people | last | 1 | 100.0% (of 1) | 100.0% (of 1) |" in said
    assert "| people | last | 2 | 100.0% (of 1) | 50.0% (of 2) |" in said
    assert "| people | last | 2 | 50.0% | 0.33 |" in said
    assert "| people | named | 2 | 100.0% (of 1) | 50.0% (of 2) |" in said  # that of the deal came before the last
    main(["score", people, str(first), str(third)])
    assert "| people | named | 1 | 100.0% | 1.00 |" in capsys.readouterr().out  # of the one that both judged


def test_what_is_no_judgement_is_refused_by_its_line(tmp_path: Path) -> None:
    people = f"people={written(tmp_path, line(ONE, TWO, 'YOU', DEAL, *CLEAR))}"
    out = tmp_path / "deals.csv"
    main(["draw", people, "--out", str(out)])
    wrong = filled_in(out, tmp_path / "wrong.csv", {"": "0 1 0; one hat"})
    with pytest.raises(
        SystemExit, match=r"wrong\.csv, line 2: splits: expected such as 1 0 2; 0 0 2, - or nothing, got 0 1 0; one hat"
    ):
        main(["score", people, str(wrong), str(wrong)])


def test_rates_and_kappa_are_those_of_arithmetic_by_hand() -> None:
    pairs = [("a", "a"), ("a", "b"), ("-", "a"), ("b", "-"), ("-", "-")]
    assert rates(pairs, "-") == (1, 3, 3)  # read: a, a, b; judged: a, b, a
    # Six of eight alike; 5/8 · 5/8 + 3/8 · 3/8 by chance: (0.75 − 0.53125) / 0.46875.
    assert kappa([("y", "y")] * 4 + [("n", "n")] * 2 + [("y", "n"), ("n", "y")]) == pytest.approx(0.21875 / 0.46875)
