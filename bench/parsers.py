"""`python -m bench.parsers [--json]`: what the worst input that somebody may send costs each parser.

For each parser that people without rights, participants or experimenters reach: the seconds of CPU for the largest
input that is accepted, of the shape that costs most, and how many times as much it costs as half of it. Where it is
done says what the event loop feels of it.
"""

import io
import json
import math
import sys
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple

from engineio.payload import Payload
from itsdangerous import BadSignature, URLSafeSerializer
from socketio.exceptions import ConnectionError as Refused
from werkzeug.datastructures import FileStorage
from werkzeug.exceptions import HTTPException
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from app.csv_reader import read_csv
from app.errors import AppError
from app.matches.safety import unsafe
from app.studies.design import StudyDesign
from app.studies.design_files import read_part
from app.studies.expressions import read_comparison
from app.studies.markdown import MOST_CHARACTERS, is_too_deep, read_text, told_headings
from app.studies.yaml_reader import parse_yaml
from app.web.admin.study_uploads import read_upload
from app.web.body_limits import ANSWERS, SMALL, TEXTS
from app.web.packets import BadPacket, TextPacket, check

_LOOP, _THREAD, _PROCESS = "event loop", "a thread", "a process"
MOST_GROWTH = 2.5  # times the cost of half the input
_LEAST = 0.002  # seconds; what takes less is not told apart from noise
_DIFFERENT = count()
Shape = Callable[[int], Any]


class Parser(NamedTuple):
    """A parser, the bytes of the largest input that it accepts, where it runs, and inputs of about so many bytes."""

    name: str
    most: int
    where: str
    read: Callable[[Any], object]
    shapes: Mapping[str, Shape]


class Cost(NamedTuple):
    """Seconds of the shape that costs most, and how many times as many as for half of it, at the most of all shapes."""

    parser: Parser
    shape: str
    seconds: float
    ratio: float


def repeated(piece: str, before: str = "", after: str = "") -> Shape:
    """Text of a piece, as often as it fits."""
    return lambda size: before + piece * ((size - len(before) - len(after)) // len(piece)) + after


def numbered(form: str, before: str = "", after: str = "") -> Shape:
    """Text of pieces that differ in their number."""

    def make(size: int) -> str:
        pieces: list[str] = []
        length = len(before) + len(after)
        for number in count():
            length += len(piece := form.format(number))
            if length > size:
                return before + "".join(pieces) + after
            pieces.append(piece)
        raise AssertionError

    return make


# ---- What reads ------------------------------------------------------------------


def _markdown(text: str) -> None:
    read_text(text, {"goal": "win"})
    told_headings(text)
    is_too_deep(text)


def _study(text: str) -> None:
    read_part(StudyDesign, parse_yaml(text, "study.yaml"))


def _request(**given: Any) -> Request:
    return Request(EnvironBuilder(method="POST", **given).get_environ())


def _query(text: str) -> None:
    dict(_request(query_string=text).args.lists())


def _form(text: str) -> None:
    dict(_request(data=text, content_type="application/x-www-form-urlencoded").form.lists())


def _multipart(text: str) -> None:
    _request(data=text.encode(), content_type="multipart/form-data; boundary=b").form.to_dict()


def _cookies(text: str) -> None:
    _request(headers={"Cookie": text}).cookies.to_dict()


def _signed(text: str) -> None:
    URLSafeSerializer("key").loads(text)


def _json(text: str) -> None:
    _request(data=text, content_type="application/json").get_json()


def _frame(text: str) -> None:
    check(text)
    TextPacket(encoded_packet=text[1:])


def _polled(text: str) -> None:
    for packet in Payload(encoded_payload=text).packets:
        check(packet.encode())


def _archive(content: bytes) -> None:
    read_upload([FileStorage(io.BytesIO(content), "study.zip")])


def _table(text: str) -> None:
    read_csv(text.encode(), "list.csv", ("order", "participant", "arm"))


# ---- What is sent ----------------------------------------------------------------

_MARKS = (
    "[",
    "![",
    "[a](b",
    "[a][",
    '[a](b "',
    "*a ",
    "*a **b ",
    "a**b",
    "_a_",
    "`a``b",
    "&a",
    "<http://a",
    "<!--",
    "> ",
    ">a\n",
    "- ",
    "- a\n  - b\n",
    "[a]: b 'c\n",
    "\\",
    "* * ",
    "```\n~~~\n",
    "{a}",
    "# a\n",
    "a  \n",
    "|a",
    "1. a\n\n",
    "a\n",
    " ",
)
MARKDOWN = {
    **{repr(mark): repeated(mark) for mark in _MARKS},
    "quotes with lines": repeated("b\n", before="> " * 9 + "a\n"),
    "references": numbered("[{0}]: http://a\n\n[{0}]\n\n"),
    "nested links": lambda size: "[" * (size // 5) + "](b)" * (size // 5),
}
YAML = {
    "keys": numbered("k{0}: 1\n"),
    "keys of conditions": numbered("k{0}: 1, ", before="conditions: {", after="}\n"),
    "endings": numbered("k{0}: [1], ", before="endings: {", after="}\n"),
    "items": repeated("1, ", before="minutes: [", after="]"),
    "questions": numbered("    - {{id: q{0}, ask: x, scale: 5}}\n", before="survey:\n  end:\n"),
    "long text": repeated("a b\n  ", before="title: "),
    "escapes": repeated("\\u0041", before='title: "', after='"'),
    "hours": repeated(":59", before="minutes: 1"),
    "digits": repeated("1", before="minutes: "),
    "brackets": repeated("[", before="minutes: "),
    "anchors": numbered("k{0}: &a{0} 1\n"),
    "comments": repeated("# a\n"),
    "spaces": repeated(" ", before="study:\n", after="x"),
    "directives": numbered("%TAG !e{0}! tag:e,2000:\n", after="---\na: 1\n"),
}
PAIRS = {
    "names": numbered("a{0}=1&"),
    "one name": repeated("a=1&"),
    "percents": repeated("%41"),
    "broken percents": repeated("%"),
    "signs": repeated("&"),
    "plus": repeated("+", before="a="),
    "equals": repeated("="),
}
_PART = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n'
PARTS = {
    "parts": numbered('--b\r\nContent-Disposition: form-data; name="a{0}"\r\n\r\nx\r\n', after="--b--\r\n"),
    "lines": repeated("\r", before=_PART, after="\r\n--b--\r\n"),
    "almost ends": repeated("\r\n--", before=_PART, after="\r\n--b--\r\n"),
    "headers": numbered("X-{0}: 1\r\n", before="--b\r\n", after="\r\n\r\n--b--\r\n"),
    "parameters": numbered("; a{0}=1", before="--b\r\nContent-Disposition: form-data", after="\r\n\r\n\r\n--b--\r\n"),
    "no boundary": repeated("a\r\n"),
}
COOKIES = {
    "names": numbered("a{0}=1; "),
    "one name": repeated("a=1; "),
    "signs": repeated(";"),
    "quotes": repeated('a="'),
    "escapes": repeated("\\041", before='a="', after='"'),
    "spaces": repeated(" ", before="a"),
    "equals": repeated("="),
}
TOKENS = {"letters": repeated("a"), "dots": repeated("."), "signs": repeated("-"), "packed": repeated("a", before=".")}
JSONS = {
    "lists": repeated("[],", before="[", after="0]"),
    "brackets": repeated("["),
    "mappings": repeated('{"a":'),
    "names": numbered('"k{0}":1,', before="{", after='"a":1}'),
    "digits": repeated("1"),
    "numbers": repeated("1e9,", before="[", after="0]"),
    "text": repeated("a", before='"', after='"'),
    "escapes": repeated("\\u0041", before='"', after='"'),
    "halves": repeated("\\ud800", before='"', after='"'),
}


def _in_event(shape: Shape) -> Shape:
    return lambda size: f'42["move",{shape(size)}]'


FRAMES = {
    **{name: _in_event(shape) for name, shape in JSONS.items()},
    "an id": repeated("1", before="42"),
    "a namespace": repeated("a", before="42/"),
    "queries": repeated("?", before="42/"),
    "attachments": repeated("1", before="45", after="-[]"),
    "a name": repeated("a", before='42["', after='"]'),
}
POLLS = {
    "packets": repeated("4\x1e"),
    "events": repeated('42["a"]\x1e'),
    "one": repeated("a", before="4"),
    "ends": repeated("\x1e"),
}
TABLES = {
    "rows": numbered("{0},a\n", before="order,arm\n"),
    "people": numbered("p{0},a\n", before="participant,arm\n"),
    "columns": lambda size: numbered("c{0},", after="arm\n")(size // 2) + "1\n" * (size // 4),
    "values": repeated("1,", before="order,arm\n"),
    "quotes": repeated('"', before="order,arm\n"),
    "one field": repeated("a", before="order,arm\n"),
    "empty rows": repeated("\n", before="order,arm\n"),
    "the same": repeated("1,a\n", before="order,arm\n"),
}
WORDS = {
    **{piece: repeated(piece) for piece in ("a", "a.", "a-", "1", "1.1", "@", "a@", "(at)", "kill ", " ", "-")},
    "years": repeated("1234-1234 "),
}
RULES = {
    "spaces": repeated(" ", before="a =", after="\n\nx"),
    "letters": repeated("a"),
    "signs": repeated("<", before="a"),
}


def _entries(size: int) -> bytes:
    """An archive with many entries, about as long as `size`."""
    return _packed([(f"{number}.md", b"") for number in range(max(2, size // 110))])


def _bomb(size: int) -> bytes:
    return _packed([("a.yaml", b"study: a\n" + bytes(min(size * 900, 4_900_000)))])


def _packed(files: Sequence[tuple[str, bytes]]) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return whole.getvalue()


_PACKET = 1_000_000  # max_http_buffer_size of Socket.IO
_FILE = 1_000_000  # of a study
PARSERS = (
    Parser("query string", 8_000, _LOOP, _query, PAIRS),
    Parser("cookies", 8_000, _LOOP, _cookies, COOKIES),
    Parser("signed links and session", 8_000, _LOOP, _signed, TOKENS),
    Parser("form, urlencoded", ANSWERS, _THREAD, _form, PAIRS),
    Parser("form, multipart", TEXTS, _THREAD, _multipart, PARTS),
    Parser("JSON of the API", SMALL, _LOOP, _json, JSONS),
    Parser("Socket.IO frame", _PACKET, _LOOP, _frame, FRAMES),
    Parser("Engine.IO polling", _PACKET, _LOOP, _polled, POLLS),
    Parser("rule of a survey", 300, _PROCESS, read_comparison, RULES),
    Parser("file of a study (YAML)", _FILE, _PROCESS, _study, YAML),
    Parser("text of a study (Markdown)", MOST_CHARACTERS, _THREAD, _markdown, MARKDOWN),
    Parser("archive of a study (zip)", TEXTS, _THREAD, _archive, {"entries": _entries, "a bomb": _bomb}),
    Parser("table (CSV)", TEXTS, _THREAD, _table, TABLES),
    Parser("safety of a model’s text", 20_000, "a worker", unsafe, WORDS),
)
_REFUSALS = (AppError, BadPacket, BadSignature, Refused, ValueError, RecursionError, HTTPException)


# ---- Measuring -------------------------------------------------------------------


def seconds(parser: Parser, shape: Shape, size: int) -> float:
    """The CPU time of an input of about that size, of which nothing is known from before."""
    given = shape(size - next(_DIFFERENT) % 7)
    began = time.process_time()
    with suppress(*_REFUSALS):
        parser.read(given)
    return time.process_time() - began


def growth(
    parser: Parser, shape: Shape, size: int, times: int, least: float = _LEAST, most: float = MOST_GROWTH
) -> float:
    """How many times as much an input costs as one of a part of its size; what is too much is asked again, twice.

    A machine that others use answers once too late, but what grows faster than its input does so each time.
    """
    found = math.inf
    for _ in range(3):
        whole, part = seconds(parser, shape, size), seconds(parser, shape, size // times)
        found = min(found, max(whole, least) / max(part, least))
        if found <= most:
            break
    return found


def cost(parser: Parser) -> Cost:
    """What the worst shape costs at the largest input, and how the costs of all grow."""
    found = {name: seconds(parser, shape, parser.most) for name, shape in parser.shapes.items()}
    worst = max(found, key=found.__getitem__)
    return Cost(
        parser, worst, found[worst], max(growth(parser, shape, parser.most, 2) for shape in parser.shapes.values())
    )


def markdown(found: Sequence[Cost]) -> str:
    """The table for docs/results.md."""
    rows = [("parser", "largest input, kB", "costs most", "seconds", "twice the input costs", "runs in"), ("---",) * 6]
    for each in found:
        shape = each.shape.replace("|", r"\|")
        most, ratio = f"{each.parser.most / 1000:g}", f"{each.ratio:.1f} times"
        rows.append((each.parser.name, most, shape, f"{each.seconds:.3f}", ratio, each.parser.where))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    costs = [cost(parser) for parser in PARSERS]
    if "--json" in sys.argv:
        print(json.dumps([{"parser": each.parser.name, **each._asdict()} for each in costs], default=str))
    else:
        print(markdown(costs))
