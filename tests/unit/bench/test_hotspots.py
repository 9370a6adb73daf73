from bench.hotspots import Hotspot, functions, packages

FOLDED = [
    "main (app/web/sockets.py);run (sqlalchemy/engine/base.py);execute (/opt/x/lib/python3.11/sqlite3/db.py) 6",
    "main (app/web/sockets.py);run (sqlalchemy/engine/base.py) 1",
    "main (app/web/sockets.py);main (app/web/sockets.py);<lambda> (<string>) 2",
    "main (app/web/sockets.py) 1",
    "",
]


def test_own_and_cumulative_shares_of_functions_are_of_all_samples() -> None:
    found = {spot.name: spot for spot in functions(FOLDED)}
    assert found["main (app/web/sockets.py)"] == Hotspot("main (app/web/sockets.py)", 0.1, 1.0)
    assert found["run (sqlalchemy/engine/base.py)"] == Hotspot("run (sqlalchemy/engine/base.py)", 0.1, 0.7)
    assert sum(spot.own for spot in found.values()) == 1


def test_the_function_with_the_most_own_samples_comes_first() -> None:
    assert functions(FOLDED)[0] == Hotspot("execute (sqlite3/db.py)", 0.6, 0.6)


def test_own_modules_are_named_one_by_one_and_libraries_as_a_whole() -> None:
    found = {spot.name: (spot.own, spot.cumulative) for spot in packages(FOLDED)}
    assert found == {
        "app.web.sockets": (0.1, 1.0),
        "sqlalchemy": (0.1, 0.7),
        "sqlite3": (0.6, 0.6),
        "<string>": (0.2, 0.2),
    }
