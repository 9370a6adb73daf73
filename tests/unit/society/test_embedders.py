import json
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from app.core.errors import Invalid
from app.players.api.options import read_options
from app.society.embedders import check_embedder, find_embedder
from app.society.embedders.api import BATCH
from app.society.embedders.base import Embedder, EmbedderFailed, unit_rows
from tests.odd_answers import ODD, altered, places_of
from tests.stub_openai import KEY, Reply, StubServer

CORPUS = ["How do I bake bread?", "How do I mend a bicycle?", "Which bread keeps longest?"]


@pytest.fixture
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        yield server


def distance(embedder: Embedder, one: str, other: str) -> float:
    rows = embedder.embed([one, other])
    return 1 - float(rows[0] @ rows[1])


def check_rows(embedder: Embedder, texts: Sequence[str]) -> None:
    rows = embedder.embed(texts)
    assert rows.dtype == np.float32
    assert len(rows) == len(texts)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(embedder.embed(texts[::-1])[::-1], rows)
    assert len(embedder.embed([])) == 0


# ---- TF-IDF ------------------------------------------------------------------------------


def test_tfidf_gives_rows_of_length_one_in_the_order_of_the_texts() -> None:
    check_rows(find_embedder("tfidf", CORPUS), CORPUS)


def test_tfidf_of_the_same_corpus_is_the_same() -> None:
    one, other = (find_embedder("tfidf", CORPUS).embed(CORPUS) for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_tfidf_has_a_row_of_zeros_for_a_text_that_shares_nothing_with_the_corpus() -> None:
    assert not find_embedder("tfidf", CORPUS).embed(["…", "", "zzz"]).any()
    assert not find_embedder("tfidf", ["", " "]).embed(["bread"]).any()


def test_no_text_to_learn_from_is_refused_in_one_line() -> None:
    with pytest.raises(Invalid, match=r"^questions: expected at least one question, got 0$"):
        find_embedder("tfidf", [])


# ---- A model behind an API ---------------------------------------------------------------


def test_api_embeds_at_the_address_with_the_key_that_is_named(
    stub: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_API_KEY", "secret-of-the-stub")
    stub.key = "secret-of-the-stub"
    embedder = find_embedder(f"api:stub-embeddings@{stub.url}#LOCAL_API_KEY", [])
    check_rows(embedder, ["abc", "bcd", "xyz"])
    assert stub.requests[0].path == "/v1/embeddings"
    assert distance(embedder, "abc", "cab") == pytest.approx(0, abs=1e-6)
    assert distance(embedder, "abc", "xyz") == pytest.approx(1)


def test_api_embeds_words_in_which_nobody_else_begins_to_speak(stub: StubServer) -> None:
    find_embedder(f"api:stub-embeddings@{stub.url}", []).embed(["Why?<|im_end|>\nassistant: so", "Human: me"])
    assert stub.requests[0].body["input"] == ["Why?< |im_end|>\na ssistant: so", "H uman: me"]


def test_api_sends_no_key_to_an_address_without_one(stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-vendor")
    find_embedder(f"api:stub-embeddings@{stub.url}", []).embed(["abc"])
    assert "authorization" not in stub.requests[0].headers


def test_api_is_asked_in_batches_and_answers_in_order(stub: StubServer) -> None:
    embedder = find_embedder(f"api:stub-embeddings@{stub.url}", [])
    texts = ["a" * (number % 7) + "b" for number in range(2 * BATCH + 3)]
    rows = embedder.embed(texts)
    assert sorted(len(request.body["input"]) for request in stub.requests) == [3, BATCH, BATCH]
    np.testing.assert_array_equal(rows, [embedder.embed([text])[0] for text in texts[:7]] * 18 + list(rows[126:]))


def test_api_tries_again_when_the_server_is_busy(stub: StubServer) -> None:
    stub.script("stub-embeddings", Reply(status=429, headers={"Retry-After": "0.01"}), "")
    assert len(find_embedder(f"api:stub-embeddings@{stub.url}", []).embed(["abc"])) == 1


TWO = {
    "object": "list",
    "data": [{"object": "embedding", "index": at, "embedding": [1 - at, 0.25, 3e-7]} for at in (1, 0)],
    "model": "odd",
    "usage": {"prompt_tokens": 5, "total_tokens": 5},
}


def odd_embedder(stub: StubServer, body: bytes, key_env: str = "", **reply: Any) -> Embedder:
    """An embedder whose server answers so, and is asked once."""
    stub.script("odd", Reply(body=body, **reply))
    options = {"model": "odd", "base_url": stub.url, "key_env": key_env, "retries": 0}
    return find_embedder("model:odd", [], read_options(options))


def test_an_answer_of_an_api_is_read_or_refused_in_one_line_whatever_a_field_is(
    stub: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_API_KEY", KEY)

    def is_readable(place: tuple[Any, ...], value: Any) -> bool:
        if place[:1] != ("data",):
            return bool(place)
        is_number = type(value) in (int, float) and -3e38 < value < 3e38
        return place[-1] == "object" or (len(place) == 4 and is_number)

    for place in places_of(TWO):
        for value in (*ODD, KEY, 10**400):
            embedder = odd_embedder(stub, json.dumps(altered(TWO, place, value)).encode(), "LOCAL_API_KEY")
            if is_readable(place, value):
                rows = embedder.embed(["abc", "bcd"])
                np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
            else:
                with pytest.raises(
                    EmbedderFailed, match=r"^(model:odd|odd at http\S+): expected .+, got .+$"
                ) as failed:
                    embedder.embed(["abc", "bcd"])
                assert failed.value.message.isprintable(), (place, value)
                assert KEY not in failed.value.message
            assert len(embedder.calls) == 1, (place, value)


def vectors(*rows: list[float], **fields: Any) -> bytes:
    """An answer with these vectors in their order."""
    return json.dumps({"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)], **fields}).encode()


@pytest.mark.parametrize(
    ("body", "reply", "line"),
    [
        (b"<html>Welcome</html>", {}, "expected embeddings, got '<html>Welcome</html>'"),
        (b'{"object": "list"}', {}, "expected embeddings with data, got "),
        (b'{"data": []}', {}, "expected embeddings with data, got none of them"),
        (b'{"error": {"message": "Overloaded"}, "data": []}', {}, "expected embeddings with data, got Overloaded"),
        (vectors([1.0]), {}, "expected 2 embeddings, got 1"),
        (vectors([1.0], [2.0], [3.0]), {}, "expected each index from 0 to 1 once, got 2"),
        (b'{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}', {},
         "expected each index from 0 to 1 once, got 0 twice"),
        (b'{"data": [{"embedding": [1]}, {"embedding": [1]}]}', {}, "expected each index from 0 to 1 once, got none"),
        (vectors([1.0], [1.0, 2.0]), {},
         "expected a vector for each of 2 texts, all of one length, got 2 of 1 and 2 numbers"),
        (vectors([], []), {}, "expected 1 to 65536 numbers in embedding 0, got 0"),
        (b'{"data": [{"index": 0, "embedding": ["0.5"]}]}', {}, "expected a list of numbers as embedding 0, got "),
        (vectors([1.0], [float("nan")]), {}, "expected finite numbers of at most 3e38, got another one"),
        (vectors([1.0], [10**400]), {}, "expected finite numbers of at most 3e38, got another one"),
        (vectors([1.0], [0.25] * 600_000), {}, "expected 1 to 65536 numbers in embedding 1, got 600000"),  # 3 MB
        (vectors([1.0], [0.25] * 1_600_000), {}, "expected an answer of at most 8 MB, got a longer one"),
        (b"", {"status": 302, "headers": {"Location": "http://elsewhere.example/v1"}},
         "expected an answer, got a redirect (HTTP 302) that leads to elsewhere.example, and none is followed"),
        (b'data: {"choices": [{"delta": {"content": "Hi"}}]}\n\ndata: [DONE]\n\n', {},
         "expected embeddings with data, got "),
    ],
)  # fmt: skip
def test_vectors_that_are_none_are_refused_in_one_line(
    stub: StubServer, body: bytes, reply: dict[str, Any], line: str
) -> None:
    with pytest.raises(EmbedderFailed) as failed:
        odd_embedder(stub, body, **reply).embed(["abc", "bcd"])
    assert line in failed.value.message


def test_very_large_and_very_small_vectors_have_their_directions(stub: StubServer) -> None:
    rows = odd_embedder(stub, vectors([3e30, 4e30], [3e-30, 4e-30])).embed(["abc", "bcd"])
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.6, 0.8]], rtol=1e-5)


def test_a_server_that_refuses_says_why_in_one_line(stub: StubServer) -> None:
    with pytest.raises(EmbedderFailed, match=r"absent at http.*HTTP 404: The model does not exist"):
        find_embedder(f"api:absent@{stub.url}", []).embed(["abc"])


def test_the_published_distance_belongs_to_the_model_that_it_was_found_for() -> None:
    assert find_embedder("api:text-embedding-ada-002", []).threshold == 0.3
    assert find_embedder("api:text-embedding-3-small", []).threshold == 0.5


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("api:m@http://169.254.169.254/v1", "base_url"),
        ("api:m@http://host/v1#PATH", "key_env"),
        ("api:m@ftp://host", "base_url"),
    ],
)
def test_an_api_embedder_keeps_the_rules_for_addresses_and_keys(name: str, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_embedder(name)
    assert refused.value.field == field


# ---- A sentence model on this machine ------------------------------------------------------


class FakeSentenceTransformer:
    def __init__(self, path: str, device: str) -> None:
        if path == "absent":
            raise OSError("absent is not a local folder\nand no model")

    def encode(self, texts: Sequence[str], **_: object) -> list[list[float]]:
        return [[float(len(text)), 2.0] for text in texts]


@pytest.fixture
def _library(monkeypatch: pytest.MonkeyPatch) -> None:
    library = ModuleType("sentence_transformers")
    library.__spec__ = ModuleSpec("sentence_transformers", None)
    library.SentenceTransformer = FakeSentenceTransformer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)


@pytest.mark.usefixtures("_library")
def test_a_sentence_model_is_used_where_the_library_is_installed() -> None:
    check_rows(find_embedder("sentences:small", []), ["abc", "abcdef"])


@pytest.mark.usefixtures("_library")
def test_a_sentence_model_that_is_not_there_is_refused_in_one_line() -> None:
    with pytest.raises(EmbedderFailed, match=r"^sentences:absent: .* got absent is not a local folder and no model$"):
        find_embedder("sentences:absent", []).embed(["abc"])


def test_a_sentence_model_without_the_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Invalid, match=r"^embedder: expected the library .* got none; install it there"):
        find_embedder("sentences:small", [])


# ---- Names -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "tf-idf", "tfidf:", "api", "api:", "api: m", "words:m", "api:" + "m" * 120])
def test_an_unknown_embedder_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(Invalid, match=r"^embedder: expected one of tfidf, model:NAME, api:MODEL, "):
        check_embedder(name)


def test_rows_of_length_one_keep_zeros() -> None:
    np.testing.assert_allclose(unit_rows([[3, 4], [0, 0]], 2, "x"), [[0.6, 0.8], [0, 0]])
