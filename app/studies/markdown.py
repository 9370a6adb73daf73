"""The texts of a study as HTML: a small part of Markdown, everything else shown as it was written. Pure.

Headings, paragraphs, lists, emphasis, code, links (https and mailto) and rules. HTML in a text is text.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

_HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*")
_BULLET = re.compile(r"[-*+]\s+(.*)")
_NUMBER = re.compile(r"\d{1,3}[.)]\s+(.*)")
_RULE = re.compile(r"([-*_])(\s*\1){2,}")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_INLINE = re.compile(
    r"`(?P<code>[^`]+)`"
    r"|\[(?P<label>[^\]]+)\]\((?P<address>(?:https://|mailto:)[^\s)]+)\)"
    r"|<(?P<plain>https://[^\s>]+)>"
    r"|\*\*(?P<strong>\S(?:.*?\S)?)\*\*"
    r"|\*(?P<star>[^\s*](?:[^*]*[^\s*])?)\*"
    r"|(?<!\w)_(?P<underline>[^\s_](?:[^_]*[^\s_])?)_(?!\w)",
    re.DOTALL,
)
_LISTS = {"ul": _BULLET, "ol": _NUMBER}


class TextSection(NamedTuple):
    """A heading and what stands under it."""

    heading: str
    body: Markup


class ReadText(NamedTuple):
    """A text: its title, if it begins with one; what stands before the first heading; its sections."""

    title: str | None
    lead: Markup
    sections: Sequence[TextSection]


class _Block(NamedTuple):
    """`kind` is p, ul, ol, hr or h1 to h6."""

    kind: str
    lines: Sequence[str]


def read_text(text: str, words: Mapping[str, str], parts: Mapping[str, Markup] | None = None) -> ReadText:
    """A text in its sections, which the headings of its second level begin.

    `words` take the place of `{name}`; of `parts`, which are HTML, where a paragraph is nothing else.
    """
    blocks = list(_blocks(text))
    title = None
    if blocks and blocks[0].kind == "h1":
        title = _filled(blocks.pop(0).lines[0], words)
    pieces: list[tuple[str, list[Markup]]] = [("", [])]
    for block in blocks:
        if block.kind in ("h1", "h2"):
            pieces.append((_filled(block.lines[0], words), []))
        else:
            pieces[-1][1].append(_html(block, words, parts or {}))
    (_, lead), *sections = [(heading, Markup("\n").join(found)) for heading, found in pieces]
    return ReadText(title, lead, [TextSection(*each) for each in sections])


def _blocks(text: str) -> Iterator[_Block]:
    kind, lines = "", list[str]()
    for raw in [*text.splitlines(), ""]:
        line = raw.strip()
        starts = next((name for name, form in _LISTS.items() if form.fullmatch(line)), None)
        heading = _HEADING.fullmatch(line)
        is_rule = _RULE.fullmatch(line) is not None
        if lines and (not line or heading or is_rule or (starts and kind != starts)):
            yield _Block(kind, lines)
            kind, lines = "", []
        if not line:
            continue
        if heading:
            yield _Block(f"h{len(heading[1])}", [heading[2]])
        elif is_rule:
            yield _Block("hr", [])
        elif starts:
            kind, item = starts, _LISTS[starts].fullmatch(line)
            lines.append(item[1] if item else line)
        elif kind in _LISTS:
            lines[-1] += f"\n{line}"
        else:
            kind = "p"
            lines.append(line + ("\\" if raw.endswith("  ") else ""))


def _html(block: _Block, words: Mapping[str, str], parts: Mapping[str, Markup]) -> Markup:
    if block.kind == "hr":
        return Markup("<hr>")
    if block.kind in _LISTS:
        items = Markup("").join(_tag("li", _inline(line, words)) for line in block.lines)
        return _tag(block.kind, items)
    text = "\n".join(block.lines)
    alone = _PLACEHOLDER.fullmatch(text)
    if alone and alone[1] in parts:
        return parts[alone[1]]
    return _tag(block.kind, _inline(text, words))


def _tag(name: str, body: Markup) -> Markup:
    return Markup("<{0}>{1}</{0}>").format(name, body)


def _inline(text: str, words: Mapping[str, str]) -> Markup:
    found, at = Markup(""), 0
    for each in _INLINE.finditer(text):
        found += _plain(text[at : each.start()], words) + _marked(each, words)
        at = each.end()
    return found + _plain(text[at:], words)


def _marked(each: re.Match[str], words: Mapping[str, str]) -> Markup:
    if each["code"]:
        return _tag("code", escape(_filled(each["code"], words)))
    if each["label"]:
        return _link(each["address"], _inline(each["label"], words))
    if each["plain"]:
        return _link(each["plain"], escape(each["plain"]))
    if each["strong"]:
        return _tag("strong", _inline(each["strong"], words))
    return _tag("em", _inline(each["star"] or each["underline"], words))


def _link(address: str, label: Markup) -> Markup:
    return Markup('<a href="{}" rel="noreferrer">{}</a>').format(address, label)


def _plain(text: str, words: Mapping[str, str]) -> Markup:
    return Markup("<br>").join(escape(_filled(line, words)) for line in text.split("\\\n"))


def _filled(text: str, words: Mapping[str, str]) -> str:
    """The text with what stands for `{name}`; what has no word stays."""
    return _PLACEHOLDER.sub(lambda name: words.get(name[1], name[0]), text)
