"""What becomes of the texts that a study's author writes."""

import re
from itertools import count

import pytest
from markupsafe import Markup

from app.studies.markdown import is_too_deep, read_text, told_headings, unfilled
from tests.effort import growth


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
        ("one  \ntwo", "<p>one<br>\ntwo</p>"),
        ("a *b* **c** _d_ `e` snake_case_name 2 * 3 * 4",
         "<p>a <em>b</em> <strong>c</strong> <em>d</em> <code>e</code> snake_case_name 2 * 3 * 4</p>"),
        ("- one\n- two\n  more", "<ul>\n<li>one</li>\n<li>two\nmore</li>\n</ul>"),
        ("Before\n1. one\n2. two\n\nafter",
         "<p>Before</p>\n<ol>\n<li>one</li>\n<li>two</li>\n</ol>\n<p>after</p>"),
        ("- one\n  - inside\n- two", "<ul>\n<li>one\n<ul>\n<li>inside</li>\n</ul>\n</li>\n<li>two</li>\n</ul>"),
        ("> said", "<blockquote>\n<p>said</p>\n</blockquote>"),
        ("one\n\n---\n\ntwo", "<p>one</p>\n<hr>\n<p>two</p>"),
        ("[us](https://example.org/?a=1&b=2)",
         '<p><a href="https://example.org/?a=1&amp;b=2" rel="noreferrer">us</a></p>'),
        ("[us][1]\n\n[1]: mailto:a@example.org", '<p><a href="mailto:a@example.org" rel="noreferrer">us</a></p>'),
        ("![us](https://example.org/i.png)",
         '<p>!<a href="https://example.org/i.png" rel="noreferrer">us</a></p>'),
        ("[us](http://example.org/{base})",
         '<p><a href="http://example.org/%7Bbase%7D" rel="noreferrer">us</a></p>'),
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
        "[x](JavaScript&colon;alert(1))",
        "[x]( java\tscript:alert(1))",
        "[x]\n\n[x]: javascript:alert(1)",
        "<javascript:alert(1)>",
        "[x](data:text/html,<script>)",
        "[x](vbscript:x)",
        "[x](//evil.example)",
        "[x](/admin/)",
        "![x](https://a.example/i.png)",
        "<div onclick=alert(1)>",
        "```<script>\n<script>\n```",
        "    <script>",
        "&lt;script&gt;",
        '[x](https://a.example/"onclick="alert)',
        '<https://a.example/"><img src=x>',
        "**<b>**",
        "# \n<i>",
    ],
)
def test_nothing_in_a_text_becomes_html_of_its_own(text: str) -> None:
    shown = html(text)
    for tag in (
        "<script",
        "<img",
        "<b>",
        "<i>",
        "<div",
        '"onclick',
        'href="/',
        'href="j',
        'href="J',
        'href="d',
        'href="v',
    ):
        assert tag not in shown
    assert re.search(r'href="(?!https://)', shown) is None


def test_what_a_placeholder_stands_for_is_no_markdown() -> None:
    assert html("{who} plays", who="*a* [b](https://c.example) <i>") == (
        "<p>*a* [b](https://c.example) &lt;i&gt; plays</p>"
    )
    assert read_text("# Hello {who}\n\n## For *{who}*\n\ntext", {"who": "*a*"})[::2] == (
        "Hello *a*",
        [("For *a*", "<p>text</p>")],
    )


def test_a_text_that_is_read_again_with_other_words_has_those() -> None:
    text = "`{n}` of {n}\n\n    {n}"
    assert html(text, n="1") == "<p><code>1</code> of 1</p>\n<pre><code>1\n</code></pre>"
    assert html(text, n="2") == "<p><code>2</code> of 2</p>\n<pre><code>2\n</code></pre>"


def test_placeholders_are_filled_and_what_fills_them_is_escaped() -> None:
    assert html("{matches} games, **{most}**, {other}", matches="<4>", most="$5") == (
        "<p>&lt;4&gt; games, <strong>$5</strong>, {other}</p>"
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{a} **{b}** `{c}`\n\n    {d}\n\n# {e}\n\n> - {f}\n\n```\n{g}\n```\n\n[{h}](https://example.org)", []),
        ("[x](https://{a})", ["a"]),
        ("{a} [x](https://example.org/?a={a})", ["a"]),
        ("<https://example.org/{a}>", ["a"]),
        ('[x](https://example.org "{a}")', ["a"]),
        ("[x][1]\n\n[1]: https://example.org/{a}", ["a"]),
        ("[1]: https://example.org/{a}", ["a"]),
        ("```{a}\ntext\n```", ["a"]),
    ],
)
def test_names_that_nothing_takes_the_place_of_are_found(text: str, names: list[str]) -> None:
    assert sorted(set(unfilled(text))) == names


def test_a_part_takes_the_place_of_a_paragraph_only() -> None:
    parts = {"goal": Markup("<div>Goal</div>")}
    found = read_text("{goal}\n\nRemember: {goal}.", {"goal": "score"}, parts)
    assert found.lead == "<div>Goal</div>\n<p>Remember: score.</p>"


# What a reader that looks for an end from each beginning takes long for. `bench/parsers.py` has more of them.
NASTY = ["[", "[a](b", "*a **b ", "`a``b", ">a\n", "- a\n  - b\n"]


@pytest.mark.parametrize("piece", NASTY)
def test_a_text_takes_no_longer_for_each_character_however_long_it_is(piece: str) -> None:
    numbers = count()

    def read(size: int) -> None:
        text = f"{next(numbers)} {piece * (size // len(piece))}"  # nothing of a text before is known
        read_text(text, {"a": "b"})
        told_headings(text)

    assert growth(read, 2000, 8000) <= 6.25


def test_what_is_nested_without_end_ends_in_a_text() -> None:
    for text in ("> " * 5000 + "a", "- " * 5000 + "a", "[" * 5000 + "a" + "](https://b.example)" * 5000, "*a " * 5000):
        assert isinstance(html(text), str)
    assert is_too_deep("> " * 20 + "a")
    assert not is_too_deep("> " * 15 + "a")
    assert html("> " * 15 + "a").count("a</p>") == 1


def test_a_heading_is_told_of_if_something_is_written_under_it_or_under_one_of_its_own() -> None:
    text = "# All\n\n## Risks\n\n### Data\n\nNone.\n\n## Purpose\n\n## Nothing\n\n```\n# Code\n```\n\nEnd\n---\n"
    assert told_headings(text) == {"all", "risks", "data", "nothing"}
