"""Where calls of API models go, and where no key and no call ever goes, whatever a row, a server or a name says."""

import asyncio
import random
import resource
import socket
import zlib
from typing import Any

import pytest

from app.core.errors import Invalid
from app.core.failures import DENIED
from app.games import find_game
from app.players.api import client as api_client
from app.players.api import player as api_player
from app.players.api.addresses import check_host, check_key_variable
from app.players.api.options import read_options
from app.players.base import PlayerFailed, PlayerSpec
from tests.stub_openai import KEY, Reply, StubServer

PROMPT = {"style": "full", "template": "full-1"}


pytestmark = pytest.mark.usefixtures("vendor_environment")


def ask(**options: Any) -> str:
    """What came of one call: its text, or why there was none."""
    player = api_player.make(PlayerSpec("api", "tested", {"model": "m", "retries": 2, **options}))
    game = find_game("taboo")
    view = game.view(game.initial(game.config({"word": "cat"}), random.Random(1)), 0)
    try:
        return asyncio.run(player.reply(view, PROMPT)).text or ""
    except PlayerFailed as caught:
        failed = caught
    assert failed.kind == DENIED
    assert "\n" not in failed.message
    assert KEY not in failed.message
    return failed.message


# ---- Addresses -----------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254", "169.254.170.2:80", "[fe80::1]", "[fe80::1%25eth0]", "[fd00:ec2::254]", "100.100.100.200",
        "168.63.129.16", "metadata.google.internal", "Metadata.Google.Internal.", "2852039166", "0xa9fea9fe",
        "0251.0376.0251.0376", "169.254.43518", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[2002:a9fe:a9fe::]",
        "[64:ff9b::a9fe:a9fe]", "224.0.0.1",
    ],
)  # fmt: skip
def test_an_address_of_a_link_or_of_a_metadata_service_is_refused_however_it_is_written(host: str) -> None:
    with pytest.raises(Invalid, match="base_url: expected the address of a model's server"):
        check_host(f"http://{host}/v1")
    assert "metadata address" in ask(base_url=f"http://{host}/v1")


@pytest.mark.parametrize("host", ["api.openai.com", "127.0.0.1:8000", "[::1]:8000", "10.0.0.7", "vllm:8000", "8.8.8.8"])
def test_other_addresses_are_taken(host: str) -> None:
    check_host(f"http://{host}/v1")


def test_a_name_that_leads_to_a_metadata_service_by_the_time_of_the_call_is_not_called(
    stub: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    leads_to = ["127.0.0.1"]
    real = socket.getaddrinfo

    def look_up(host: Any, port: Any, *more: Any, **named: Any) -> Any:
        return real(leads_to[-1] if host == "model.example" else host, port, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    stub.script("m", "hello")
    base_url = f"http://model.example:{stub.port}/v1"
    assert ask(base_url=base_url) == "hello"
    for address in ("169.254.169.254", "fe80::1"):
        leads_to.append(address)
        assert f"got {address}, a link-local or cloud metadata address" in ask(base_url=base_url)
    assert len(stub.requests) == 1


def test_api_hosts_hold_at_the_time_of_the_call(stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    stub.script("m", "hello")
    monkeypatch.setenv("API_HOSTS", "api.openai.com")
    assert "expected a host that API_HOSTS allows (api.openai.com), got '127.0.0.1'" in ask(base_url=stub.url)
    assert stub.requests == []
    monkeypatch.setenv("API_HOSTS", "api.openai.com,127.0.0.1")
    assert ask(base_url=stub.url) == "hello"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(stub: StubServer, status: int) -> None:
    with StubServer() as other:
        other.script("m", "from elsewhere")
        stub.script("m", Reply(status=status, headers={"Location": f"{other.url}/chat/completions?key={KEY}"}))
        message = ask(base_url=stub.url)
        assert other.requests == []
    assert f"got a redirect (HTTP {status}) that leads to 127.0.0.1, and none is followed" in message
    assert len(stub.requests) == 1


# ---- Keys ----------------------------------------------------------------------


def test_a_key_that_is_bound_to_another_host_is_not_sent(stub: StubServer) -> None:
    stub.script("m", "hello")
    message = ask(base_url=stub.url, key_host="api.openai.com")
    assert "expected api.openai.com, the host that the key in OPENAI_API_KEY was bound to" in message
    assert stub.requests == []
    assert ask(base_url=stub.url, key_host="127.0.0.1") == "hello"
    assert ask(base_url=stub.url, key_host="api.openai.com", key_env="") == "hello"  # without a key there is no harm
    assert "authorization" not in stub.requests[-1].headers


def test_the_workers_own_base_url_goes_with_their_own_key(stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    stub.script("m", "hello")
    monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
    assert ask() == "hello"
    assert read_options({"model": "m"}).key_host is None


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "OPENAI_KEY_2", "MISTRAL_API_KEY", ""])
def test_variables_of_keys_are_taken(variable: str) -> None:
    check_key_variable(variable, ("*_API_KEY", "OPENAI_*"))


@pytest.mark.parametrize("variable", ["HOME", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "API_KEYS", "MY_OPENAI_SECRET"])
def test_other_variables_are_refused_with_the_setting_that_allows_them(variable: str) -> None:
    with pytest.raises(
        Invalid, match=rf"KEY_VARIABLES allows \(\*_API_KEY, OPENAI_\*\), got {variable}; rename the variable"
    ):
        check_key_variable(variable, ("*_API_KEY", "OPENAI_*"))


# ---- Answers -------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_without_end_is_not_read_to_its_end(stub: StubServer, status: int) -> None:
    stub.script("m", Reply(status=status, body=b"[" + b" " * (api_client.MOST_ANSWER + 100_000)))
    assert "expected an answer of at most 8 MB, got a longer one" in ask(base_url=stub.url)
    assert len(stub.requests) == 1  # and it is not asked for again


def test_a_small_answer_that_unpacks_into_a_huge_one_is_not_unpacked_whole(stub: StubServer) -> None:
    packer = zlib.compressobj(wbits=31)
    packed = b"".join(packer.compress(b" " * 1_000_000) for _ in range(400)) + packer.flush()
    stub.script("m", Reply(body=packed, headers={"Content-Encoding": "gzip"}))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "got a longer one" in ask(base_url=stub.url)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB
