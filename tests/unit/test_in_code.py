"""Texts that are written for terminals and pages: what stands between back-ticks is code on a page."""

import pytest

from app.web.labels import in_code


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nothing of the kind", "nothing of the kind"),
        ("`flask model list` shows them", "<code>flask model list</code> shows them"),
        ("a `b` c `d`", "a <code>b</code> c <code>d</code>"),
        ("got `, which opens nothing", "got `, which opens nothing"),
        ("`a` and `", "<code>a</code> and `"),
        ("got <b>`<i>`", "got &lt;b&gt;<code>&lt;i&gt;</code>"),
        ("", ""),
    ],
)
def test_what_stands_between_back_ticks_is_code(text: str, shown: str) -> None:
    assert str(in_code(text)) == shown
