"""What becomes of the texts that a study's author writes."""

import pytest
from markupsafe import Markup

from app.studies.markdown import read_text


def html(text: str, **words: str) -> str:
    """The text without sections."""
    return str(read_text(text, words).lead)


def test_a_text_has_a_title_a_lead_and_sections() -> None:
    found = read_text(
        "# Taking part\n\nHello.\n\n## Purpose\n\nTo learn.\n\n### More\n\nDetails.\n\n## Risks #\nNone.", {}
    )
    assert (found.title, found.lead) == ("Taking part", "<p>Hello.</p>")
    assert [tuple(each) for each in found.sections] == [
        ("Purpose", "<p>To learn.</p>\n<h3>More</h3>\n<p>Details.</p>"),
        ("Risks", "<p>None.</p>"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\ntwo", "<p>one\ntwo</p>"),
        ("one  \ntwo", "<p>one<br>two</p>"),
        ("a *b* **c** _d_ `e` snake_case_name 2 * 3 * 4",
         "<p>a <em>b</em> <strong>c</strong> <em>d</em> <code>e</code> snake_case_name 2 * 3 * 4</p>"),
        ("- one\n- two\n  more", "<ul><li>one</li><li>two\nmore</li></ul>"),
        ("Before\n1. one\n2) two\n\nafter", "<p>Before</p>\n<ol><li>one</li><li>two</li></ol>\n<p>after</p>"),
        ("one\n\n---\n\ntwo", "<p>one</p>\n<hr>\n<p>two</p>"),
        ("[us](https://example.org/?a=1&b=2)",
         '<p><a href="https://example.org/?a=1&amp;b=2" rel="noreferrer">us</a></p>'),
        ("<https://example.org>", '<p><a href="https://example.org" rel="noreferrer">https://example.org</a></p>'),
    ],
)  # fmt: skip
def test_what_is_marked_up(text: str, expected: str) -> None:
    assert html(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "[x](javascript:alert(1))",
        '[x](https://a.example/"onclick="alert)',
        '<https://a.example/"><img src=x>',
        "**<b>**",
        "# \n<i>",
    ],
)
def test_nothing_in_a_text_becomes_html_of_its_own(text: str) -> None:
    for tag in ("<script", "<img", "<b>", "<i>", 'javascript:alert(1)"', '"onclick'):
        assert tag not in html(text)


def test_placeholders_are_filled_and_what_fills_them_is_escaped() -> None:
    assert html("{matches} games, **{most}**, {other}", matches="<4>", most="$5") == (
        "<p>&lt;4&gt; games, <strong>$5</strong>, {other}</p>"
    )


def test_a_part_takes_the_place_of_a_paragraph_only() -> None:
    parts = {"goal": Markup("<div>Goal</div>")}
    found = read_text("{goal}\n\nRemember: {goal}.", {"goal": "score"}, parts)
    assert found.lead == "<div>Goal</div>\n<p>Remember: score.</p>"
