"""`python -m bench.claims_report` on archives of matches that were written by hand."""

import json
from pathlib import Path

import pytest

from bench import claims, claims_report
from bench.claims import CONDITIONS, GREEDY, PLAYED, pack, round_name

ITEMS = ("book", "hat", "ball")
COUNTS, VALUES = (2, 1, 3), ((0, 4, 2), (2, 0, 2))  # seat 0 wants the hat and balls, seat 1 books and balls
HALVES = ((0, 1, 1), (2, 0, 2))  # worth 6 and 8; the best joint score is 7 a seat
SAID = "I take the hat and one ball, and you get both books and two balls."


def write_match(folder: Path, number: int, shares: tuple[tuple[int, ...], ...], scores: tuple[int, int]) -> None:
    def by_item(numbers: tuple[int, ...]) -> dict[str, int]:
        return dict(zip(ITEMS, numbers, strict=True))

    result = {"counts": by_item(COUNTS)}
    for seat in (0, 1):
        result |= {f"p{seat}_values": by_item(VALUES[seat]), f"p{seat}_allocation": by_item(shares[seat])}
        result |= {f"p{seat}_score": scores[seat]}
    (folder / "results").mkdir(parents=True, exist_ok=True)
    (folder / "text_logs").mkdir(exist_ok=True)
    (folder / "results" / f"{number:03}.json").write_text(json.dumps(result), "utf-8")
    text = f"Player 0: [message] {SAID}\nPlayer 1: [propose] (…)\nPlayer 0: [propose] (…)\n"
    (folder / "text_logs" / f"{number:03}_full.txt").write_text(text, "utf-8")


def write_campaign(home: Path, kept: Path, seed: int, deals_of_last: int) -> None:
    """Four matches a round, in which seat 0 always keeps to what it said: the base agrees in none, the last in some."""
    for which, deals in (("base", 0), ("last", deals_of_last)):
        for condition in (PLAYED, GREEDY):
            for number in range(4):
                agreed = number < deals
                shares = HALVES if agreed else (HALVES[0], (2, 1, 3))
                write_match(home / round_name(which, condition, "test"), number, shares, (6, 8) if agreed else (0, 0))
    pack(home, "*-on-test", kept / f"campaign-{seed}-test.tar.xz")
    figures = {
        which: dict.fromkeys(
            CONDITIONS,
            {"deals": deals / 4, "points": 7 * deals / 4, "own_points": 0.0, "agreed_points": 7.0, "agreed_pareto": 1.0}
            | {"last_offer_deals": 1.0, "last_offer_points": 7.0},
        )
        for which, deals in (("base", 0), ("last", deals_of_last))
    }
    result = {"seed": seed, "processor_minutes": 25.0} | figures
    (kept / f"campaign-{seed}-test.json").write_text(json.dumps(result), "utf-8")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two campaigns, whose final models agree in two and in four of four matches."""
    folder = tmp_path / "kept"
    folder.mkdir()
    for module in (claims, claims_report):
        monkeypatch.setattr(module, "MEASURED", folder)
    write_campaign(tmp_path / "rounds-9", folder, 9, 2)
    write_campaign(tmp_path / "rounds-10", folder, 10, 4)
    return folder


def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    monkeypatch.setattr("sys.argv", ["claims_report"])
    claims_report.main()
    parts = capsys.readouterr().out.split("**")[1:]
    return {title: table.split("\n") for title, table in zip(parts[::2], parts[1::2], strict=True)}


@pytest.mark.usefixtures("kept")
def test_points_stand_beside_what_others_would_have_got(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    points = printed(capsys, monkeypatch)["Points"]
    [gain] = [line for line in points if line.startswith("| last minus base | at temperature 1")]
    [headroom] = [line for line in points if line.startswith("| share of the headroom | at temperature 1")]
    assert "| 0.750 (" in gain
    assert "| 5.250 (" in gain
    assert "| 0.750 (" in headroom  # half of 7 points and all of them
    assert "| a random complementary split |  | 1.000 | 5.000 | 5.000 |  |" in points
    assert "| the demand rule |  | 1.000 | 5.000 | 5.000 |  |" in points  # seat 0 gets the balls, 6 points, seat 1 4
    assert "| best joint score |  | 1.000 | 7.000 | 7.000 |  |" in points


@pytest.mark.usefixtures("kept")
def test_the_talk_is_measured_as_in_the_product(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = printed(capsys, monkeypatch)["Talk"]
    rows = {line.split(" | ")[0].removeprefix("| "): line.split(" | ")[1:] for line in talk if line.startswith("| ")}
    # Seat 1 proposes first: what the base asks for was never said; seat 0 keeps to its words.
    assert [each.split(" ")[0] for each in rows["first proposals of the last split named"]] == ["0.000", "0.750"] * 2
    assert [each.split(" ")[0] for each in rows["second proposals of the last split named"]] == ["1.000"] * 4
    assert rows["deals never said in the talk"][1].startswith("0.000")


def test_points_that_the_product_gave_otherwise_are_counted(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "| campaign | 32 | 0 |" in printed(capsys, monkeypatch)["Scored by other code"]
    write_match(tmp_path / "wrong" / "round", 1, HALVES, (6, 7))
    pack(tmp_path / "wrong", "*", kept / "campaign-9-with-10-on-test.tar.xz")
    assert "| campaign-with | 1 | 1 |" in printed(capsys, monkeypatch)["Scored by other code"]


def test_without_campaigns_it_says_what_makes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (claims, claims_report):
        monkeypatch.setattr(module, "MEASURED", tmp_path)
    monkeypatch.setattr("sys.argv", ["claims_report", "--measured-on", "development"])
    with pytest.raises(
        SystemExit, match=r"expected campaigns on development contexts in .*, got none; python -m bench"
    ):
        claims_report.main()
