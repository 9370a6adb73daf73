"""Texts before which answers end, in the options of a registry row."""

import json

import pytest

from app.core.errors import Invalid
from app.players.api import options as api
from app.players.local import options as local

STOP = ["\n", "User:"]


def test_a_row_has_them_as_a_list_or_as_its_json() -> None:
    for raw in (STOP, json.dumps(STOP)):
        assert local.read_options({"path": "x", "sha256": "0" * 64, "stop": raw}).stop == ("\n", "User:")
        assert api.read_options({"model": "m", "stop": raw}).stop == ("\n", "User:")
    assert api.read_options({"model": "m"}).stop == ()


@pytest.mark.parametrize("raw", ["User:", '{"a": 1}', [""], ["x" * 101], [1], ["a", "b", "c", "d", "e"], ["\0"], 7])
def test_anything_else_is_refused_in_one_line(raw: object) -> None:
    expected = "stop: expected a JSON list of at most 4 texts of 1 to 100 characters, such as"
    with pytest.raises(Invalid) as error:
        api.read_options({"model": "m", "stop": raw})
    assert str(error.value).startswith(expected)


def test_they_are_sent_once() -> None:
    with pytest.raises(Invalid, match=r"extra: expected fields that have no option of their own, got stop"):
        api.read_options({"model": "m", "stop": STOP, "extra": {"stop": STOP}})
    assert api.read_options({"model": "m", "extra": {"stop": STOP}}).extra == {"stop": STOP}
