"""`python -m bench.parsers [--json]`: what the worst input that somebody may send costs each parser.

For each parser that people without rights, participants or experimenters reach: the seconds of CPU for the largest
input that is accepted, of the shape that costs most, and how many times as much twice an input costs. Where it is
done says what the event loop feels of it. What is counted, such as the keys of a file, comes in as many pieces as are
accepted, each as long as there is room for.
"""

import gc
import io
import json
import math
import random
import sys
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from itertools import count, islice, product
from string import ascii_lowercase
from typing import Any, NamedTuple

from babel import negotiate_locale
from engineio.payload import Payload
from itsdangerous import BadSignature, URLSafeSerializer
from socketio.exceptions import ConnectionError as Refused
from werkzeug.datastructures import FileStorage
from werkzeug.exceptions import HTTPException
from werkzeug.test import EnvironBuilder

from app.core.csv_reader import read_csv
from app.core.errors import AppError
from app.core.yaml_reader import parse_yaml
from app.games import GAMES
from app.matches.lenient import read_leniently
from app.matches.safety import unsafe
from app.rounds.material import material_of_text
from app.society.priors import parse_priors
from app.society.questions import parse_questions
from app.society.ratings import ALIGNMENT_FORM, read_rating
from app.studies.design import StudyDesign
from app.studies.design_files import read_part
from app.studies.expressions import read_comparison
from app.studies.markdown import MOST_CHARACTERS, is_too_deep, read_text, told_headings
from app.web.admin.game_fields import MOST_UPLOADED as MOST_MATERIAL
from app.web.admin.study_uploads import MOST_BYTES, MOST_FILES, read_upload
from app.web.admin.uploaded_texts import MOST_UPLOADED
from app.web.body_limits import SMALL, TEXTS, UploadRequest
from app.web.sockets.packets import BadPacket, TextPacket, check
from training.reasoning import left_open, split_reasoning, without_block_at_end
from workers.web_worker import MOST_HEAD

_LOOP, _THREAD, _PROCESS = "event loop", "a thread", "a process"
MOST_MOVE = 2_000  # characters, the default of the setting MOVE_CHARACTERS
MOST_GROWTH = 2.5  # factor in cost for twice the input
CHEAP = 0.01  # seconds for the largest input, below which growth does not matter
_LINE = 4094  # bytes, gunicorn's limit_request_line
_TRIES = 5
_LONG_ENOUGH, _MOST_AT_A_TIME = 0.01, 200  # seconds measured at a time, and the number of inputs in them
_DIFFERENT = count()
Shape = Callable[[int], Any]


class Parser(NamedTuple):
    """A parser, the size in bytes of the largest input it accepts, where it runs, and inputs of a given approximate
    size.
    """

    name: str
    most: int
    where: str
    read: Callable[[Any], object]
    shapes: Mapping[str, Shape]


class Cost(NamedTuple):
    """The seconds of the costliest shape, and over all shapes the highest factor by which doubling an input raises its
    cost.
    """

    parser: Parser
    shape: str
    seconds: float
    ratio: float | None  # None if none of them costs more than CHEAP


def repeated(piece: str, before: str = "", after: str = "") -> Shape:
    """Text that repeats a piece as often as it fits."""
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


def counted(most: int, largest: int, form: str, before: str = "", after: str = "") -> Shape:
    """Text of `most` pieces in the largest input and fewer in a smaller one; `{1}` takes the remaining room."""

    def make(size: int) -> str:
        number_of = max(1, most * size // largest)
        room = max(0, (size - len(before) - len(after)) // number_of - len(form.format(number_of, "")))
        return before + "".join(form.format(number, "x" * room) for number in range(number_of)) + after

    return make


# ---- What reads ------------------------------------------------------------------


def _markdown(text: str) -> None:
    text = f"{text}\n{next(_DIFFERENT)}"  # texts read before are cached
    read_text(text, {"goal": "win"})
    told_headings(text)
    is_too_deep(text)


def _study(text: str) -> None:
    read_part(StudyDesign, parse_yaml(text, "study.yaml"))


def _request(**given: Any) -> UploadRequest:
    request = UploadRequest(EnvironBuilder(method="POST", **given).get_environ())
    request.max_form_memory_size = TEXTS
    return request


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
    for packet in text.split("\x1e"):
        check(packet)
    for packet in Payload(encoded_payload=text).packets:
        TextPacket(encoded_packet=packet.data)


def _languages(text: str) -> None:
    wanted = _request(headers={"Accept-Language": text}).accept_languages
    negotiate_locale([each for each, weight in wanted if weight > 0], ("en", "de"))


def _archive(content: bytes) -> None:
    read_upload([FileStorage(io.BytesIO(content), "study.zip")])


def _table(text: str) -> None:
    read_csv(text.encode(), "list.csv", ("order", "participant", "arm"))


def _asked(text: str) -> None:
    parse_questions(text.encode(), "questions.txt")


def _remembered(text: str) -> None:
    parse_priors(text.encode(), "priors.json")


def _rated(text: str) -> None:
    read_rating(text, ALIGNMENT_FORM)


def _played(text: str) -> None:
    for game in GAMES.values():
        if game.material is not None:
            with suppress(AppError):
                material_of_text(game.material, text, "a file")


def _moved(text: str) -> None:
    for game in GAMES.values():
        state = game.initial(game.config({}), random.Random(1))
        for seat in (0, 1):
            for move in (text, f"[message] {text}", f"[propose] {text}"):
                game.parse(state, seat, f"{move[: len(text)]}{next(_DIFFERENT)}")  # judgements are cached, too


def _unwrapped(text: str) -> None:
    for game in GAMES.values():
        state = game.initial(game.config({}), random.Random(1))
        for seat in (0, 1):
            read_leniently(game, state, seat, text)


def _reasoned(text: str) -> None:
    split_reasoning(text)
    left_open(text)
    without_block_at_end(text)


_FILE = 1_000_000  # bytes in a file of a study


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
    "most keys": counted(9_990, _FILE, "k{0}: {1}\n"),
    "most keys in places": counted(9_900, _FILE, "  k{0}: [{1}]\n", before="conditions:\n"),
    "most items": counted(19_900, _FILE, "- {1}\n", before="minutes:\n"),
    "most questions": counted(2_800, _FILE, "  - {{id: q{0}, ask: {1}, scale: 5}}\n", before="survey:\n end:\n"),
    "most levels": counted(1_000, _FILE, "k{0}: " + "[" * 17 + "{1}" + "]" * 17 + "\n"),
    "most quotes": counted(9_990, _FILE, 'k{0}: "' + "\\t" * 30 + '{1}"\n'),
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
    "most parts": counted(999, TEXTS, _PART.replace('"a"', '"a{0}"') + "{1}\r\n", after="--b--\r\n"),
    "most files": counted(999, TEXTS, _PART.replace('"a"', '"a{0}"; filename="f"') + "{1}\r\n", after="--b--\r\n"),
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
    **{name: _in_event(shape) for name, shape in JSONS.items()},
    "most packets": counted(15, SMALL, '42["a","{1}"]\x1e', after="3"),
    "packets": repeated("4\x1e"),
    "events": repeated('42["a"]\x1e'),
    "one": repeated("a", before="4"),
    "ends": repeated("\x1e"),
}


def _wide(size: int) -> str:
    """A table with as many columns as allowed, and as many rows as then fit."""
    columns = 500
    rows = min(999_000 // columns, size // 1_100)
    return ",".join(f"c{at}" for at in range(columns)) + "\n" + (",".join("1" * columns) + "\n") * rows


TABLES = {
    "rows": numbered("{0},a\n", before="order,arm\n"),
    "people": numbered("p{0},a\n", before="participant,arm\n"),
    "columns": lambda size: numbered("c{0},", after="arm\n")(size // 2) + "1\n" * (size // 4),
    "values": repeated("1,", before="order,arm\n"),
    "quotes": repeated('"', before="order,arm\n"),
    "one field": repeated("a", before="order,arm\n"),
    "empty rows": repeated("\n", before="order,arm\n"),
    "the same": repeated("1,a\n", before="order,arm\n"),
    "most cells": counted(499_990, TEXTS, "1,\n", before="order,arm\n"),
    "most columns": _wide,
    "quoted": repeated('"1","a"\n', before="order,arm\n"),
}
WORDS = {
    **{piece: repeated(piece) for piece in ("a", "a.", "a-", "1", "1.1", "@", "a@", "(at)", "kill ", " ", "-")},
    "years": repeated("1234-1234 "),
}
MOVES = {
    **WORDS,
    **{piece: repeated(piece) for piece in ("a b ", "I get 1 book. ", "it's a ", "a-b", "1 ", "[message] ")},
}
RATINGS = {
    **WORDS,
    **{
        piece: repeated(piece)
        for piece in (
            *(
                "Rating ",
                "Rating: 6\n",
                "Reason: ",
                "I give it a 6. ",
                "6/7 ",
                "6, ",
                "3, no, ",
                "1 to ",
                "1 = a, ",
                "评分6",
            ),
            *(
                "1.\n",
                "\n",
                "(",
                "<a",
                "{",
                "[",
                '{"a":',
                "|",
                "| a | 5 |\n",
                "<think>",
                "</think>",
                "~~",
                "> a\n",
                "½",
            ),
        )
    },
    "ratings in JSON": numbered('"k{0}":1,', before="{", after='"rating":1}'),
    "reasons": repeated("Rating: 6\nReason: 5/7\n"),
    "a rating at the end": repeated("It is kind. ", after="Rating: 6"),
}
WRAPPED = {
    **{
        piece: repeated(piece) for piece in ('"', "**a** ", "`", "```\n", "Assistant: \n", "**[message] a\n", "« ", "~")
    },
    "invisible": repeated("\u200b", after="a"),
    "invisible at the end": repeated("\u200b", before="a"),
    "blanks in a fence": repeated(" ", before="```\n", after="a"),
    "blanks behind a fence": repeated(" ", before="```", after="a"),
}
REASONED = {
    **{piece: repeated(piece, after="a") for piece in (" ", "\n", "<think>", "</think>", "<think> </think> ", "<")},
    "blanks behind a mark": repeated(" ", before="<think>", after="a"),
    **{
        piece: repeated(piece, after="a")
        for piece in (
            "<|start|>",
            "<|start|>a",
            "<|channel|>",
            f"<|start|>{'a' * 64}<|channel|>{'a' * 216}<|constrain|>{'a' * 64}",
            "<|channel|>a<|message|>",
            "<|channel|>final<|message|><|end|>",
        )
    },
    "blanks behind a channel": repeated(" ", before="<|channel|>analysis<|message|>", after="a"),
    "bare channels": repeated("analysis ", after="a"),
}
LANGUAGES = {
    "names": numbered("a{0},"),
    "one name": repeated("a,"),
    "weights": repeated("a;q=0.1,"),
    "broken weights": repeated(";q="),
    "signs": repeated(","),
    "quotes": repeated('"'),
    "spaces": repeated(" ", before="a"),
    "parts": repeated("-a"),
}
QUESTIONS = {
    "lines": numbered("q{0}\n"),
    "empty lines": repeated("\n"),
    "list": numbered('"q{0}",', before="[", after='"q"]'),
    "brackets": repeated("["),
    "characters": repeated("ü"),
}
_MEMORY = '{{"question":"q{0}","answer":"a"}},'
MEMORIES = {
    "pairs": numbered(_MEMORY, before='{"good":[', after='{"question":"q","answer":"a"}]}'),
    "labels": numbered('"good":[],', before="{", after='"bad":[]}'),
    "brackets": repeated("["),
}
MATERIALS = {
    "words": numbered("a{0}\n"),
    "letters": lambda size: "\n".join(map("".join, islice(product(ascii_lowercase, repeat=4), size // 5))),
    "contexts": repeated("1 4 2 2 1 2\n1 0 2 1 1 8\n"),
    "empty lines": repeated("\n"),
    "digits": repeated("1"),
    "hyphens": repeated("a-"),
}
RULES = {
    "spaces": repeated(" ", before="a =", after="\n\nx"),
    "letters": repeated("a"),
    "signs": repeated("<", before="a"),
}


def _entries(size: int) -> bytes:
    """An archive with many entries, of about `size` bytes."""
    return _packed([(f"{number}.md", b"") for number in range(max(2, size // 110))])


def _most_entries(size: int) -> bytes:
    """An archive with the most files accepted and many ignored ones, most of which only its directory names."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(MOST_FILES):
            archive.writestr(f"{number}.yaml", b"a" * (MOST_BYTES * size // TEXTS // MOST_FILES))
        archive.writestr(".a", b"")
        first = archive.filelist[-1]
        for number in range((size - 20_000) // 60):
            entry = copy(first)
            entry.filename = f".{number}"
            archive.filelist.append(entry)
    return whole.getvalue()


def _bomb(size: int) -> bytes:
    return _packed([("a.yaml", b"study: a\n" + bytes(min(size * 900, 4_900_000)))])


def _packed(files: Sequence[tuple[str, bytes]]) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return whole.getvalue()


ARCHIVES = {"entries": _entries, "most entries": _most_entries, "a bomb": _bomb}
_FRAME = 1_000_000  # max_http_buffer_size of Socket.IO
PARSERS = (
    Parser("query string", _LINE, _LOOP, _query, PAIRS),
    Parser("cookies", MOST_HEAD, _LOOP, _cookies, COOKIES),
    Parser("languages of a browser", MOST_HEAD, _LOOP, _languages, LANGUAGES),
    Parser("signed links and session", MOST_HEAD, _LOOP, _signed, TOKENS),
    Parser("small form, urlencoded", SMALL, _LOOP, _form, PAIRS),
    Parser("small form, multipart", SMALL, _LOOP, _multipart, PARTS),
    Parser("form, urlencoded", TEXTS, _THREAD, _form, PAIRS),
    Parser("form, multipart", TEXTS, _THREAD, _multipart, PARTS),
    Parser("JSON of the API", SMALL, _LOOP, _json, JSONS),
    Parser("Socket.IO frame", _FRAME, _LOOP, _frame, FRAMES),
    Parser("Engine.IO polling", SMALL, _LOOP, _polled, POLLS),
    Parser("move", MOST_MOVE, _THREAD, _moved, MOVES),
    Parser("rule of a survey", 300, _PROCESS, read_comparison, RULES),
    Parser("file of a study (YAML)", _FILE, _PROCESS, _study, YAML),
    Parser("text of a study (Markdown)", MOST_CHARACTERS, _THREAD, _markdown, MARKDOWN),
    Parser("archive of a study (zip)", TEXTS, _THREAD, _archive, ARCHIVES),
    Parser("table (CSV)", TEXTS, _THREAD, _table, TABLES),
    Parser("questions of a society", MOST_UPLOADED, _LOOP, _asked, QUESTIONS),
    Parser("first memories of a society", MOST_UPLOADED, _LOOP, _remembered, MEMORIES),
    Parser("material of games", MOST_MATERIAL, _THREAD, _played, MATERIALS),
    Parser("rating of a critic or an observer", 20_000, "a worker", _rated, RATINGS),
    Parser("safety of a model’s text", 20_000, "a worker", unsafe, WORDS),
    Parser("wrapping around a model’s move", 20_000, "a worker", _unwrapped, WRAPPED),
    Parser("reasoning in a model’s text", 200_000, "a worker", _reasoned, REASONED),
)
_REFUSALS = (AppError, BadPacket, BadSignature, Refused, ValueError, RecursionError, HTTPException)


# ---- Measuring -------------------------------------------------------------------


def seconds(parser: Parser, shape: Shape, size: int, times: int = 1) -> float:
    """The CPU time of a new input of about that size; with several, the mean."""
    given = [shape(size - next(_DIFFERENT) % 7) for _ in range(times)]
    began = time.process_time()
    for each in given:
        with suppress(*_REFUSALS):
            parser.read(each)
    return (time.process_time() - began) / times


def growth(
    parser: Parser,
    shape: Shape,
    size: int,
    tries: int = _TRIES,
    enough: float = 0.0,
    long_enough: float = _LONG_ENOUGH,
) -> tuple[float, float]:
    """The seconds of an input, and the factor by which doubling it raises the cost, each the lowest of several tries.

    An input is measured in turn with one a quarter its size, which halves the effect of noise on the factor, and often
    enough at a time that each takes `long_enough` seconds to stand out from noise. Costs that are negligible, or grow
    no faster than `enough`, are not measured again.
    """
    least = seconds(parser, shape, size // 4)
    times = 1 + min(_MOST_AT_A_TIME, int(long_enough / max(least, 1e-6)))
    whole = quarter = math.inf
    gc.collect()
    gc.disable()  # it scans the whole process at moments unrelated to what is read
    try:
        for _ in range(tries):
            quarter = min(quarter, seconds(parser, shape, size // 4, times))
            whole = min(whole, seconds(parser, shape, size, times))
            if whole < CHEAP or whole <= enough**2 * quarter:
                break
    finally:
        gc.enable()
    return whole, math.sqrt(whole / quarter)


def cost(parser: Parser) -> Cost:
    """The cost of the worst shape at the largest input, and how the costs of all shapes grow."""
    found = {name: growth(parser, shape, parser.most) for name, shape in parser.shapes.items()}
    worst = max(found, key=lambda name: found[name][0])
    spent = min(seconds(parser, parser.shapes[worst], parser.most) for _ in range(_TRIES))
    ratios = [ratio for whole, ratio in found.values() if whole >= CHEAP]
    return Cost(parser, worst, spent, max(ratios, default=None))


def markdown(found: Sequence[Cost]) -> str:
    """The table for docs/results.md."""
    rows = [("parser", "largest input, kB", "costs most", "seconds", "twice the input costs", "runs in"), ("---",) * 6]
    for each in found:
        shape = each.shape.replace("|", r"\|")
        most, ratio = f"{each.parser.most / 1000:g}", "" if each.ratio is None else f"{each.ratio:.1f} times"
        rows.append((each.parser.name, most, shape, f"{each.seconds:.3f}", ratio, each.parser.where))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    costs = [cost(parser) for parser in PARSERS]
    if "--json" in sys.argv:
        print(json.dumps([{"parser": each.parser.name, **each._asdict()} for each in costs], default=str))
    else:
        print(markdown(costs))
