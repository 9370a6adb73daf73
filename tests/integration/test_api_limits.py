"""What many calls of one model share, and what becomes of calls that fail: against a real HTTP server."""

import asyncio
import email.utils
import random
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable

import pytest

from app.core.failures import BUSY, DENIED, REFUSED, UNSUITED
from app.games import find_game
from app.games.base import View
from app.players.api import client as api_client
from app.players.api import player as api_player
from app.players.base import Generation, PlayerFailed, PlayerSpec
from tests.stack import PATIENCE
from tests.stub_openai import GARBAGE, HALF, Reply, Step, StubServer, hanging, rate_limited

PROMPT = {"style": "full", "template": "full-1"}
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def player(stub: StubServer, model: str = "m", **options) -> api_player.ApiPlayer:
    return api_player.make(
        PlayerSpec("api", "tested", {"model": model, "base_url": stub.url, "key_env": "", **options})
    )


def view() -> View:
    game = find_game("negotiation")
    return game.view(game.initial(game.config({"first": 0}), random.Random(1)), 0)


async def together(asked: api_player.ApiPlayer, times: int) -> list[Generation]:
    return await asyncio.gather(*(asked.reply(view(), PROMPT) for _ in range(times)))


def ask(asked: api_player.ApiPlayer) -> Generation:
    return asyncio.run(asked.reply(view(), PROMPT))


def failure(asked: api_player.ApiPlayer) -> PlayerFailed:
    with pytest.raises(PlayerFailed) as caught:
        ask(asked)
    return caught.value


# ---- Trying again -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "options"),
    [
        (rate_limited(), {}),
        (Reply("busy", status=408), {}),
        (Reply("locked", status=409), {}),
        (Reply("oh", status=500), {}),
        (Reply("away", status=503), {}),
        (Reply("I say so", status=400, headers={"x-should-retry": "true"}), {}),
        (GARBAGE, {}),
        (Reply(body=b""), {}),
        (Reply(body=b'{"error": {"message": "overloaded"}}'), {}),
        (HALF, {}),
        (hanging(3600), {"timeout": 0.5}),
    ],
)
def test_what_may_pass_is_tried_again(stub: StubServer, bad: Reply, options: dict) -> None:
    stub.script("m", bad, "[message] hi")
    generation = ask(player(stub, **options))
    assert (generation.text, generation.retries) == ("[message] hi", 1)


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (Reply("This prompt is too long", status=400), REFUSED),
        (Reply("too long", status=413), REFUSED),
        (Reply("what?", status=422), UNSUITED),
        (Reply("no", status=401), DENIED),
        (Reply("no", status=403), DENIED),
        (Reply("where?", status=404), DENIED),
        (Reply(status=429, body=b'{"error": {"message": "Pay first", "code": "insufficient_quota"}}'), DENIED),
        (Reply("not again", status=500, headers={"X-Should-Retry": "false"}), BUSY),
        (rate_limited(121), BUSY),
    ],
)
def test_what_will_not_pass_is_asked_once_and_says_what_may_help(stub: StubServer, bad: Reply, kind: str) -> None:
    stub.script("m", bad)
    failed = failure(player(stub))
    assert (failed.kind, failed.generation.retries) == (kind, 0)
    assert len(stub.requests) == 1


@pytest.mark.parametrize("bad", [rate_limited(), Reply("oh", status=500), GARBAGE, HALF])
def test_a_server_that_stays_away_is_busy(stub: StubServer, bad: Step) -> None:
    stub.script("m", bad)
    failed = failure(player(stub, retries=1))
    assert (failed.kind, failed.generation.retries) == (BUSY, 1)
    assert len(stub.requests) == 2


def test_a_missing_key_is_denied(stub: StubServer) -> None:
    assert failure(player(stub, key_env="NO_SUCH_KEY")).kind == DENIED


def test_the_pause_is_by_chance_under_a_bound_that_doubles() -> None:
    for retries, most in enumerate((0.5, 1, 2, 4, 8, 8)):
        pauses = [api_client.pause(retries, random.Random(seed)) for seed in range(200)]
        assert 0 <= min(pauses) < 0.1 * most
        assert 0.9 * most < max(pauses) <= most


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "9", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": email.utils.formatdate(1030, usegmt=True)}, 30),
        ({"retry-after": email.utils.formatdate(900, usegmt=True)}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Mon, 99 Foo 2026"}, None),
    ],
)
def test_the_pause_that_a_server_orders(headers: dict[str, str], seconds: float | None) -> None:
    assert api_client.ordered_pause(headers, now=1000) == seconds


@pytest.mark.parametrize("form", ["seconds", "milliseconds", "date"])
def test_retry_after_is_honoured_in_each_form(stub: StubServer, form: str) -> None:
    at = time.time() + 2
    headers = {
        "seconds": {"Retry-After": "1.2"},
        "milliseconds": {"Retry-After-Ms": "1200", "Retry-After": "3600"},
        "date": {"Retry-After": email.utils.formatdate(at, usegmt=True)},
    }[form]
    stub.script("m", Reply("slower", status=429, headers=headers), "[message] hi")
    assert ask(player(stub)).retries == 1
    if form == "date":
        assert int(at) <= time.time()
    else:
        assert stub.requests[1].at - stub.requests[0].at >= 1.2


# ---- Together ------------------------------------------------------------------------


def test_two_minutes_are_the_longest_that_a_server_can_have_a_call_wait(
    stub: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited, sleep = list[float](), asyncio.sleep

    def record(seconds: float) -> Awaitable[None]:
        waited.append(seconds)
        return sleep(0)

    monkeypatch.setattr(asyncio, "sleep", record)
    stub.script("m", Reply("later", status=408, headers={"Retry-After": "120"}), "[message] hi")
    assert ask(player(stub)).retries == 1
    assert 120 in waited
    stub.script("n", Reply("later", status=408, headers={"Retry-After": "121"}), "[message] hi")
    assert failure(player(stub, "n")).generation.retries == 0


def test_retry_after_makes_everybody_wait(stub: StubServer) -> None:
    stub.script("m", rate_limited(1), "[message] hi")

    async def one_is_told() -> list[Generation]:
        told = asyncio.ensure_future(player(stub).reply(view(), PROMPT))
        while not stub.requests:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        return [*await together(player(stub), 5), await told]

    replies = asyncio.run(one_is_told())
    assert [reply.retries for reply in replies] == [0, 0, 0, 0, 0, 1]
    assert len(stub.requests) == 7
    assert min(request.at for request in stub.requests[1:]) - stub.requests[0].at >= 1


def test_retry_after_holds_those_who_wait_for_the_place_that_it_frees(stub: StubServer) -> None:
    stub.script("m", rate_limited(1), "[message] hi")
    asyncio.run(together(player(stub, in_flight=1), 3))
    assert len(stub.requests) == 4
    assert min(request.at for request in stub.requests[1:]) - stub.requests[0].at >= 1


def test_another_model_at_the_same_address_does_not_wait(stub: StubServer) -> None:
    stub.script("m", rate_limited(100))
    stub.script("other", "[message] hi")

    async def told_and_other() -> Generation:
        told = asyncio.ensure_future(player(stub).reply(view(), PROMPT))
        while not stub.requests:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        answer = await player(stub, "other").reply(view(), PROMPT)
        told.cancel()
        return answer

    assert asyncio.run(told_and_other()).text == "[message] hi"
    assert len(stub.requests_of("m")) == 1  # it still waits


def test_no_more_requests_are_in_flight_than_the_row_allows(stub: StubServer) -> None:
    lock, four = threading.Lock(), threading.Barrier(4)
    now, most = [0], [0]

    def slow(_messages: list[dict[str, str]]) -> str:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        four.wait(PATIENCE)  # never answers fewer than four at once
        time.sleep(0.05)  # for a fifth to come in
        with lock:
            now[0] -= 1
        return "[message] hi"

    stub.script("m", slow)
    replies = asyncio.run(together(player(stub, in_flight=4), 20))
    assert [reply.text for reply in replies] == ["[message] hi"] * 20
    assert most[0] == 4


def test_the_latency_is_the_servers_and_not_that_of_the_queue(stub: StubServer) -> None:
    stub.script("m", Reply("[message] hi", delay=0.2))
    began = time.monotonic()
    replies = asyncio.run(together(player(stub, in_flight=1), 5))
    assert all(reply.latency >= 0.2 for reply in replies)
    # One after the other: with the time in the queue, the five would add up to three times as much as passed.
    assert sum(reply.latency for reply in replies) <= time.monotonic() - began


def test_no_more_tokens_a_minute_are_asked_for_than_the_row_allows(stub: StubServer) -> None:
    stub.script("m", "[message] hi")
    used = ask(player(stub)).prompt_tokens or 0
    stub.requests.clear()
    began = time.monotonic()
    # Three seconds' worth at once, which is twelve requests, and then nearly four a second.
    asyncio.run(together(player(stub, tokens_per_minute=4 * 60 * used), 20))
    assert time.monotonic() - began > 1.5


def test_a_reply_that_is_called_off_gives_its_place_away(stub: StubServer) -> None:
    stub.script("m", hanging(3600), "[message] hi")

    async def called_off() -> Generation:
        asked = player(stub, in_flight=1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asked.reply(view(), PROMPT), 0.3)
        return await asyncio.wait_for(asked.reply(view(), PROMPT), PATIENCE)

    assert asyncio.run(called_off()).text == "[message] hi"


# ---- The way there ---------------------------------------------------------------------


def test_a_proxy_of_the_environment_is_used(stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    stub.script("m", "[message] hi")
    monkeypatch.setenv("HTTP_PROXY", f"http://user:secret@127.0.0.1:{stub.port}")
    asked = api_player.make(
        PlayerSpec("api", "x", {"model": "m", "base_url": "http://model.invalid/v1", "key_env": ""})
    )
    assert ask(asked).text == "[message] hi"
    assert stub.requests[0].path == "http://model.invalid/v1/chat/completions"
    assert stub.requests[0].headers["proxy-authorization"] == "Basic dXNlcjpzZWNyZXQ="


def test_a_host_without_proxy_is_asked_itself(stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    stub.script("m", "[message] hi")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert ask(player(stub)).text == "[message] hi"
    assert stub.requests[0].path == "/v1/chat/completions"


def test_a_program_that_ends_leaves_nothing_open_behind(stub: StubServer) -> None:
    stub.script("m", "[message] hi")
    code = (
        "import asyncio, sys; from tests.integration.test_api_limits import *\n"
        "made = PlayerSpec('api', 'x', {'model': 'm', 'base_url': sys.argv[1], 'key_env': ''})\n"
        "print(ask(api_player.make(made)).text, ask(api_player.make(made)).text)"
    )
    command = [sys.executable, "-X", "dev", "-W", "ignore::DeprecationWarning", "-c", code, stub.url]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.stdout.strip() == "[message] hi [message] hi"
    assert "nclosed" not in ran.stderr, ran.stderr
