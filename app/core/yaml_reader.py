"""Strict YAML: each value knows its line, so that errors tell authors where to look.

It refuses duplicate keys, empty values, anchors and aliases, and anything but text, finite numbers, truth values, lists
and mappings.
"""

import contextlib
import math
import re
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer, ComposerError
from yaml.constructor import SafeConstructor

from app.core.documents import Document, Line, dotted
from app.core.errors import Invalid, Verbatim, shown
from app.core.files import file_problem
from app.core.validation import KeyPath, is_storable

_MOST_BYTES = 1 << 20
_MOST_DEPTH = 20
_MOST_VALUES = 20_000  # keys, and values of keys and lists: some forty times as many as a large study has
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
# As people read numbers: not 010, which YAML takes for 8, nor 1:30 (90), 1_000 or 0x1F.
_PLAIN_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DIRECTIVE = re.compile(r"(?:^|[\n\r\x85\u2028\u2029])%")  # after any of YAML's line breaks
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")  # of surrogates
_LARGEST_WHOLE = 2**63 - 1
_LIST, _MAPPING = "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"
_SCALARS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool")}


def read_yaml(path: Path) -> Document:
    """The mapping in a file. Raises Invalid, with the line, for anything but strict YAML, and for a missing file."""
    name = path.name or str(path)
    return parse_yaml(read_text_file(path, "a text file that can be read", name), name)


def read_text_file(path: Path, expected: str, subject: object) -> str:
    """The text in a small file. Raises Invalid, with what was expected, if it is missing or not text."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise Invalid(None, expected="a file of at most 1 MB", got=Verbatim("a larger one"), subject=subject)
        return content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(None, expected=expected, got=Verbatim(file_problem(error)), subject=subject) from None


def parse_yaml(text: str, source: str) -> Document:
    """The mapping in a text. Raises Invalid, with the line, for anything but strict YAML."""
    node = _read_by_libyaml(text) or _read_by_python(text, source)
    lines: dict[KeyPath, Line] = {}
    value = None if node is None else _read_node(SafeConstructor(), node, (), lines, source)
    if not isinstance(value, dict):
        got = Verbatim("an empty file" if value is None else shown(value))
        raise Invalid(None, expected="keys with their values (key: value)", got=got, subject=source)
    return Document(source, value, lines)


def _read_by_libyaml(text: str) -> yaml.Node | None:
    """The nodes of a text, read in a fifth of the time; None for an empty or refused text, or without libyaml.

    Also None for a text that may have directives, because libyaml compares each of them with all others.
    """
    if yaml.__with_libyaml__ and not _DIRECTIVE.search(text):
        with contextlib.suppress(yaml.YAMLError, ValueError):
            return _LibyamlLoader(text).get_single_node()
    return None


def _read_by_python(text: str, source: str) -> yaml.Node | None:
    """The nodes of a text; None for an empty text. Raises Invalid, with the line, for anything but strict YAML."""
    try:
        loader = _PythonLoader(text)
    except yaml.reader.ReaderError as error:
        place = f"{source}:{text.count(chr(10), 0, error.position) + 1}"
        got = Verbatim(f"the character U+{ord(text[error.position]):04X}")
        raise Invalid(None, expected="text", got=got, subject=place) from None
    try:
        return loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{source}:{mark.line + 1}" if mark else source
        raise Invalid(None, expected="YAML", got=Verbatim(str(error.problem)), subject=place) from None
    except (ValueError, OverflowError):  # an escape such as "\UFFFFFFFF"
        place, none = f"{source}:{loader.line + 1}", Verbatim("the code of a character that is none")
        raise Invalid(None, expected="YAML", got=none, subject=place) from None
    finally:
        loader.dispose()


class _StrictComposer(Composer):
    """Refuses aliases, so that a design states each thing where it belongs, and input too deep or too long for a
    design.
    """

    depth = 0
    values = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[attr-defined]  # of the parser that it is put together with
        if getattr(event, "anchor", None) is not None:
            problem = "an anchor (&) or an alias (*), which this file may not have"
            raise ComposerError(None, None, problem, event.start_mark)
        if self.depth == _MOST_DEPTH:
            raise ComposerError(None, None, f"more than {_MOST_DEPTH} levels of keys and lists", event.start_mark)
        self.values += 1
        if self.values > _MOST_VALUES:
            raise ComposerError(None, None, f"more than {_MOST_VALUES} keys and values", event.start_mark)
        self.depth += 1
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _PythonLoader(_StrictComposer, yaml.SafeLoader):
    """PyYAML's own reader, whose errors say where and why."""


if yaml.__with_libyaml__:  # true wherever PyYAML has a wheel

    class _LibyamlLoader(_StrictComposer, yaml.CSafeLoader):
        """The same nodes, made from libyaml's events."""

        def __init__(self, text: str) -> None:
            yaml.CSafeLoader.__init__(self, text)
            Composer.__init__(self)


def _scalar(constructor: SafeConstructor, node: yaml.ScalarNode, place: str) -> Any:
    """Text, a number or a truth value. Raises Invalid for text that only looks like one, or cannot be stored."""
    try:
        is_plain = node.tag not in _NUMBERS or _PLAIN_NUMBER.fullmatch(node.value)
        value = constructor.construct_object(node) if is_plain else math.nan
    except (ValueError, KeyError):  # thousands of digits, or a tag that the text does not fit, such as !!bool maybe
        value = math.nan
    if isinstance(value, str) and not is_storable(value := _joined_pairs(value)):
        raise Invalid(None, expected="text", got=Verbatim("a character that is none"), subject=place)
    if isinstance(value, float | int) and not -_LARGEST_WHOLE <= value <= _LARGEST_WHOLE:
        too_large = node.tag in _NUMBERS and _PLAIN_NUMBER.fullmatch(node.value)
        expected = f"a number of at most {_LARGEST_WHOLE}" if too_large else "a number in digits, or text in quotes"
        raise Invalid(None, expected=expected, got=Verbatim(shown(node.value)), subject=place)
    return value


def _joined_pairs(text: str) -> str:
    """The text with each surrogate pair as the character that it stands for: JSON escapes an emoji as two codes."""
    return _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)


def _read_node(
    constructor: SafeConstructor, node: yaml.Node, path: KeyPath, lines: dict[KeyPath, Line], source: str
) -> Any:
    """The value of a node; the lines of everything in it are added to `lines`."""
    lines.setdefault(path, Line(source, node.start_mark.line + 1))
    place = f"{source}:{node.start_mark.line + 1}" + (f": {dotted(path)}" if path else "")
    if isinstance(node, yaml.MappingNode) and node.tag == _MAPPING:
        return _mapping(constructor, node, path, lines, source)
    if isinstance(node, yaml.SequenceNode) and node.tag == _LIST:
        return [_read_node(constructor, each, (*path, at), lines, source) for at, each in enumerate(node.value)]
    if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
        return _scalar(constructor, node, place)
    if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
        at_key = f"{source}:{lines[path].number}: {dotted(path)}"  # readers disagree on where nothing begins
        raise Invalid(None, expected="a value", got=Verbatim("none"), remedy="leave the key out", subject=at_key)
    if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:timestamp":
        raise Invalid(
            None, expected="text", got=Verbatim(f"the date {node.value}"), remedy="put it in quotes", subject=place
        )
    raise Invalid(None, expected="text, a number, a list or keys", got=Verbatim(node.tag), subject=place)


def _mapping(
    constructor: SafeConstructor, node: yaml.MappingNode, path: KeyPath, lines: dict[KeyPath, Line], source: str
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = _joined_pairs(key_node.value) if isinstance(key_node, yaml.ScalarNode) else None
        if key is None or key_node.tag == "tag:yaml.org,2002:merge":
            got = Verbatim("<<" if key else "a list or keys")
            raise Invalid(None, expected="a key that is text", got=got, subject=f"{source}:{line}")
        if key in found:
            place = f"{source}:{line}: {dotted((*path, key))}"
            first = lines[(*path, key)].number
            raise Invalid(None, expected="each key once", got=Verbatim(f"it in line {first}, too"), subject=place)
        lines[(*path, key)] = Line(source, line)
        found[key] = _read_node(constructor, value_node, (*path, key), lines, source)
    return found
