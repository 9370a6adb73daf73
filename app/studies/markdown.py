"""The texts of a study as HTML: CommonMark, without HTML of its own and without images. Pure.

Only https, http and mailto links are links; others remain plain text. `{name}` stands for a fact of the study, which is
inserted after the text was parsed, so that nothing in it is read as markup. Source:
https://spec.commonmark.org/0.31.2/, read by markdown-it-py.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

MOST_CHARACTERS = 100_000  # in a text that people read: some forty pages
DEEPEST = 20  # levels of lists and quotes; a list and its item are two
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_SCHEMES = ("https://", "http://", "mailto:")
_TEXTS_KEPT = 32
_WORDS = "words"  # a key in what the library passes to the rules below


class TextSection(NamedTuple):
    """A heading and what is under it."""

    heading: str
    body: Markup


class ReadText(NamedTuple):
    """A text: its title, if it begins with one; what is before the first heading; its sections."""

    title: str | None
    lead: Markup
    sections: Sequence[TextSection]


class _Heading(NamedTuple):
    """A heading outside lists and quotes, and the numbers of tokens before it and up to its end."""

    level: int
    text: str
    start: int
    end: int


def read_text(text: str, words: Mapping[str, str], parts: Mapping[str, Markup] | None = None) -> ReadText:
    """A text divided into sections by its second-level headings.

    `words` replace `{name}`; `parts`, which are HTML, replace it only where it is a whole paragraph.
    """
    tokens = _cached_tokens(text)
    title, start = None, 0
    pieces: list[tuple[str, Markup]] = []
    heading = ""
    for each in _headings(tokens):
        if each.level > 2:
            continue
        filled = _fill_placeholders(each.text, words)
        if each.start == 0 and each.level == 1:
            title = filled
        else:
            pieces.append((heading, _html(tokens[start : each.start], words, parts or {})))
            heading = filled
        start = each.end
    pieces.append((heading, _html(tokens[start:], words, parts or {})))
    (_, lead), *sections = pieces
    return ReadText(title, lead, [TextSection(*each) for each in sections])


def told_headings(text: str) -> set[str]:
    """The headings of a text that have text below them, in lower case."""
    tokens = _cached_tokens(text)
    told: set[str] = set()
    above: list[_Heading] = []
    at = 0
    for each in [*_headings(tokens), _Heading(0, "", len(tokens), len(tokens))]:
        if each.start > at:
            told.update(heading.text.casefold() for heading in above)
        above = [heading for heading in above if heading.level < each.level] + [each]
        at = each.end
    return told


def placeholders(text: str) -> list[str]:
    """The names in braces, in their order."""
    return _PLACEHOLDER.findall(text)


def unfilled(text: str) -> list[str]:
    """The names in braces at positions where nothing replaces them.

    These are addresses and titles of links, the language of a code block, and text that is not shown.
    """
    tokens = [each for token in _cached_tokens(text) for each in (token, *(token.children or ()))]
    shown = Counter(name for token in tokens if token.type in _FILLED for name in placeholders(token.content))
    attributes = [unquote(str(value)) for token in tokens for value in token.attrs.values()]
    return [*(Counter(placeholders(text)) - shown), *(name for each in attributes for name in placeholders(each))]


def is_too_deep(text: str) -> bool:
    """Whether lists and quotes are nested more deeply than the parser reads."""
    return any(token.level >= DEEPEST - 1 for token in _cached_tokens(text))


# ---- Reading ---------------------------------------------------------------------


def _markdown_reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False, "maxNesting": DEEPEST, "xhtmlOut": False}).disable("image")
    reader.validateLink = _is_safe  # type: ignore[method-assign, assignment]  # the library's own way to say which links are
    for name, rule in _FILLED.items():
        reader.add_render_rule(name, rule)
    return reader


def _is_safe(address: str) -> bool:
    return address.lower().startswith(_SCHEMES)


@lru_cache(maxsize=_TEXTS_KEPT)
def _cached_tokens(text: str) -> Sequence[Token]:
    """A text's tokens. They are cached and must not be changed."""
    tokens = _READER.parse(text)
    for token in tokens:
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("rel", "noreferrer")
    return tokens


def _headings(tokens: Sequence[Token]) -> Iterator[_Heading]:
    for at, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0:
            yield _Heading(int(token.tag[1:]), _unmarked(tokens[at + 1]), at, at + 3)


def _unmarked(inline: Token) -> str:
    """A line without its markup."""
    return "".join("\n" if each.type in ("softbreak", "hardbreak") else each.content for each in inline.children or ())


# ---- Writing ---------------------------------------------------------------------


def _html(tokens: Sequence[Token], words: Mapping[str, str], parts: Mapping[str, Markup]) -> Markup:
    found = _READER.renderer.render(list(_with_parts(tokens, parts)), _READER.options, {_WORDS: words})
    return Markup(found.strip())  # noqa: S704 - the library escapes what it puts out, and so do the rules below


def _with_parts(tokens: Sequence[Token], parts: Mapping[str, Markup]) -> Iterator[Token]:
    """The tokens, with paragraphs that consist only of a part's name replaced by the part."""
    at = 0
    while at < len(tokens):
        alone = _PLACEHOLDER.fullmatch(tokens[at + 1].content) if tokens[at].type == "paragraph_open" else None
        if alone and alone[1] in parts:
            yield Token("html_block", "", 0, content=str(parts[alone[1]]) + "\n")
            at += 3
        else:
            yield tokens[at]
            at += 1


def _render_text(_self: RendererHTML, tokens: Sequence[Token], at: int, _options: OptionsDict, env: EnvType) -> str:
    return escape(_fill_placeholders(tokens[at].content, env[_WORDS]))


def _code(_self: RendererHTML, tokens: Sequence[Token], at: int, _options: OptionsDict, env: EnvType) -> str:
    return Markup("<code>{}</code>").format(_fill_placeholders(tokens[at].content, env[_WORDS]))


def _block(_self: RendererHTML, tokens: Sequence[Token], at: int, _options: OptionsDict, env: EnvType) -> str:
    return Markup("<pre><code>{}</code></pre>\n").format(_fill_placeholders(tokens[at].content, env[_WORDS]))


def _fill_placeholders(text: str, words: Mapping[str, str]) -> str:
    """The text with each `{name}` replaced by its word; names without one stay."""
    return _PLACEHOLDER.sub(lambda name: words.get(name[1], name[0]), text)


_FILLED = {"text": _render_text, "code_inline": _code, "code_block": _block, "fence": _block}
_READER = _markdown_reader()
