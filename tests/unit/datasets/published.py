"""Writes an output folder as the published self-play does, plainly and without any code of Parlor."""

import json
from pathlib import Path

SYSTEM = "Divide {counts} between you. To you they are worth {values}."
NOTICE = "[propose] A proposal was made. Answer with your own.\n"
ITEMS = ("book", "hat", "ball")
WORTH = "{who} are worth {} points, hats are worth {} points, and balls are worth {} points.\n"


def game(moves, *, first=0, counts=(1, 2, 3), values=((1, 3, 1), (4, 0, 2)), tries=(), tails=(), tokens=7, **recorded):
    """One game: its moves in turn; `tries` (before move, text, error) and `tails` (after move, text) by their place.

    `recorded` overrides what the results file says.
    """
    return {
        "moves": [((first + at) % 2, text) for at, text in enumerate(moves)],
        "counts": counts,
        "values": values,
        "tries": tries,
        "tails": dict(tails),
        "tokens": tokens,
        "recorded": recorded,
    }


def numbers(text):
    digits = "".join(letter if letter.isdecimal() else " " for letter in text).split()
    return dict(zip(ITEMS, map(int, digits), strict=True))


def scores(one):
    """Allocations and scores of the published rule, objective self."""
    allocations = [None, None]
    for seat, text in one["moves"]:
        if text.startswith("[propose]"):
            allocations[seat] = numbers(text)
    deal = None not in allocations and all(
        allocations[0][item] + allocations[1][item] == count for item, count in zip(ITEMS, one["counts"], strict=True)
    )
    points = [
        sum(allocations[seat][item] * value for item, value in zip(ITEMS, one["values"][seat], strict=True))
        if deal
        else 0
        for seat in (0, 1)
    ]
    return allocations, points, deal


def write(folder: Path, games) -> Path:
    for part in ("json_logs", "results", "text_logs"):
        (folder / part).mkdir(parents=True)
    lines = ([], [])
    for index, one in enumerate(games):
        number = f"{index:03d}"
        allocations, points, deal = scores(one)
        result = {
            "counts": dict(zip(ITEMS, one["counts"], strict=True)),
            "p0_values": dict(zip(ITEMS, one["values"][0], strict=True)),
            "p1_values": dict(zip(ITEMS, one["values"][1], strict=True)),
            "p0_allocation": allocations[0],
            "p1_allocation": allocations[1],
            "p0_score": points[0],
            "p1_score": points[1],
            "message_count": len(one["moves"]),
            "token_count": one["tokens"],
            "is_valid_deal": deal,
        } | one["recorded"]
        (folder / "results" / f"{number}.json").write_text(json.dumps(result))
        for seat in (0, 1):
            system = SYSTEM.format(counts=one["counts"], values=one["values"][seat])
            log = [{"role": "system", "content": system}]
            written = WORTH.format(*one["values"][seat], who="Books") + "\n\n"
            for at, (mover, text) in enumerate(one["moves"]):
                heard = NOTICE if text.startswith("[propose]") else text
                log.append(
                    {"role": "assistant", "content": text} if mover == seat else {"role": "user", "content": heard}
                )
                if mover == seat:
                    for before, tried, error in one["tries"]:
                        written += f"{tried}\nError: {error}\n" if before == at else ""
                    written += text + one["tails"].get(at, "") + "\n" if text != "[ABORT]" else ""
            (folder / "json_logs" / f"{number}_p{seat}.json").write_text(json.dumps(log))
            (folder / "text_logs" / f"{number}_p{seat}.txt").write_text(written, newline="")
            lines[seat].append(f"{result[f'p{seat}_score']} \n")
        full = "Item counts: there are {} books, {} hats, and {} balls.\n".format(*one["counts"])
        for seat in (0, 1):
            full += f"Player {seat} values: " + WORTH.format(*one["values"][seat], who="books")
        full += "\n\n" + "".join(f"Player {mover}: {text}\n" for mover, text in one["moves"])
        full += "".join(f"Player {seat} FINAL SCORE: {points[seat]} \n" for seat in (0, 1))
        (folder / "text_logs" / f"{number}_full.txt").write_text(full, newline="")
    for seat in (0, 1):
        (folder / f"p{seat}_scores").write_text("".join(lines[seat]))
    return folder


def read(folder: Path):
    """Everything in a folder: parsed where it is JSON, else as text."""
    return {
        str(path.relative_to(folder)): json.loads(path.read_text())
        if path.suffix == ".json"
        else path.read_bytes().decode()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
