"""Which language a page is in, and that what is played stays as it is."""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app.benchmarks.tasks import PRESETS
from app.core.config import known_languages, load_settings
from app.core.errors import Invalid
from app.core.extensions import db, writing
from app.matches import live
from app.matches.stored import load
from app.registry import add_api_model
from app.web.facts import dollars
from tests.benchmarks import make_benchmark
from tests.campaigns import add_local, campaign_of
from tests.experimenter import signed_in
from tests.rounds import make_round
from workers.prepare import new_admin_link

GERMAN = {"Accept-Language": "de-AT,de;q=0.9,en;q=0.4"}
ENGLISH_WORDS, GERMAN_WORDS = "played in plain words", "Zwei kleine Spiele"


@pytest.fixture
def client(make_app: Callable[..., Flask]) -> FlaskClient:
    return make_app(LANGUAGES="en,de").test_client()


def page(client: FlaskClient, path: str = "/", **headers: str) -> str:
    return client.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()}).text


def switch(client: FlaskClient, language: str, back: str = "/about") -> str:
    """Press the button in the footer; gives the address that it leads to."""
    answer = client.post("/language", data={"language": language}, headers={"Referer": f"http://localhost{back}"})
    assert answer.status_code == 303
    return str(answer.headers["Location"])


@pytest.mark.parametrize(
    ("wish", "language"),
    [
        (None, "en"),
        ("de", "de"),
        ("de-CH;q=0.8, fr;q=0.9", "de"),
        ("fr, nl", "en"),
        ("en-GB, de;q=0.5", "en"),
        ("*", "en"),
        ("; ;,,q=", "en"),
    ],
)
def test_a_page_is_in_the_language_that_the_browser_asks_for(
    client: FlaskClient, wish: str | None, language: str
) -> None:
    answer = client.get("/", headers={"Accept-Language": wish} if wish else {})
    assert f'<html lang="{language}">' in answer.text
    assert (GERMAN_WORDS in answer.text) == (language == "de")
    assert "Accept-Language" in answer.headers["Vary"]


def test_the_privacy_page_says_in_both_languages_that_models_learn_from_whoever_agreed(client: FlaskClient) -> None:
    assert "without your yes nothing of it is used for that." in page(client, "/privacy")
    assert "ohne dein Ja " in page(client, "/privacy", Accept_Language="de")


def test_the_switch_in_the_footer_is_remembered_and_leads_back(client: FlaskClient) -> None:
    assert ENGLISH_WORDS in page(client)
    assert switch(client, "de", "/rules/taboo?from=here") == "/rules/taboo?from=here"
    assert GERMAN_WORDS in page(client)
    assert '<html lang="de">' in page(client, "/privacy", Accept_Language="en")
    switch(client, "en")
    assert ENGLISH_WORDS in page(client, Accept_Language="de")


def test_a_round_is_not_called_what_an_iteration_of_a_campaign_is(make_app: Callable[..., Flask]) -> None:
    app = make_app(LANGUAGES="en,de")
    with app.app_context():
        number = make_round(db.engine, "scripted", matches=2)
        text = page(signed_in(app), f"/admin/rounds/{number}", **GERMAN)
    assert "<h1>scripted and scripted</h1>" in text
    assert f"Durchgang {number}. Deal or No Deal" in text


def test_the_switch_is_a_form_that_names_each_language_in_itself(client: FlaskClient) -> None:
    form = re.search(r'<form class="languages".*?</form>', page(client, "/about"), re.DOTALL)
    assert form is not None
    assert re.findall(r'value="(\w+)" lang="(\w+)"( aria-current="true")?>(\w+)<', form[0]) == [
        ("en", "en", ' aria-current="true"', "English"),
        ("de", "de", "", "Deutsch"),
    ]


@pytest.mark.parametrize("language", ["fr", "", "../../de", "DE"])
def test_a_language_that_is_not_offered_changes_nothing(client: FlaskClient, language: str) -> None:
    switch(client, "de")
    switch(client, language)
    assert GERMAN_WORDS in page(client)


@pytest.mark.parametrize(
    "back", ["", "//elsewhere.example", "/\\elsewhere", "@elsewhere.example/about", "/start/taboo"]
)
def test_the_switch_leads_nowhere_else_and_to_no_answer_of_a_form(client: FlaskClient, back: str) -> None:
    assert switch(client, "de", back) in ("/", "/about")


def test_the_switch_needs_the_token_of_its_page(make_app: Callable[..., Flask]) -> None:
    app = make_app()
    app.config["WTF_CSRF_ENABLED"] = True
    client = app.test_client()
    assert client.post("/language", data={"language": "de"}).status_code == 400
    assert ENGLISH_WORDS in page(client)


def test_one_language_alone_is_pinned_and_has_no_switch(make_app: Callable[..., Flask]) -> None:
    client = make_app(LANGUAGES="en").test_client()
    home = page(client, Accept_Language="de")
    assert ENGLISH_WORDS in home
    assert "/language" not in home
    switch(client, "de")
    assert ENGLISH_WORDS in page(client)


def test_the_first_language_is_for_who_asks_for_none_of_them(make_app: Callable[..., Flask]) -> None:
    client = make_app(LANGUAGES="de, en").test_client()
    assert GERMAN_WORDS in page(client, Accept_Language="fr")
    assert GERMAN_WORDS in page(client)
    assert ENGLISH_WORDS in page(client, Accept_Language="en-US")


def test_a_language_that_nobody_has_translated_is_refused_in_one_line() -> None:
    with pytest.raises(Invalid) as caught:
        load_settings({"LANGUAGES": "en,tlh"})
    known = ", ".join(known_languages())
    assert caught.value.message == f"LANGUAGES: expected some of {known}, with commas between, got 'en,tlh'"


def test_errors_are_told_in_the_language_of_the_page(client: FlaskClient) -> None:
    missing = client.get("/nowhere", headers=GERMAN)
    assert missing.status_code == 404
    assert "Diese Seite gibt es nicht." in missing.text
    assert "Dieses Spiel gehört zu einem anderen Browser." in page(client, "/play/" + "A" * 22, Accept_Language="de")


def test_refusals_from_below_are_translated_where_a_visitor_can_meet_them(make_app: Callable[..., Flask]) -> None:
    answer = make_app(GUEST_PLAY=False).test_client().post("/start/taboo", headers=GERMAN)
    assert answer.status_code == 403
    assert "Hier wird auf Einladung gespielt." in answer.text


def test_programs_are_answered_in_english(client: FlaskClient) -> None:
    answer = client.post("/api/matches", json={"game": "chess", "opponent": None}, headers=GERMAN)
    assert answer.json is not None
    assert answer.json["error"]["message"].startswith("game: expected")
    assert client.get("/api/nothing", headers=GERMAN).json["error"]["message"].startswith("The link may be old.")  # type: ignore[index]


def test_a_match_in_german_is_the_same_match(client: FlaskClient) -> None:
    started = client.post("/start/negotiation", data={"objective": "coop"}, headers=GERMAN)
    german = page(client, started.headers["Location"], Accept_Language="de")
    assert "Holt zusammen so viele Punkte, wie ihr könnt" in german
    assert "Bitte schreib auf Englisch." in german
    english = page(client, started.headers["Location"], Accept_Language="en")
    views = [re.findall(r'data-view="([^"]+)"', text) for text in (german, english)]
    assert views[0] == views[1]
    assert "Please write in English." not in english


def test_a_page_holds_the_words_of_its_scripts_once_it_is_not_english(client: FlaskClient) -> None:
    started = client.post("/start/taboo")
    held = re.compile(r'<meta name="words" content="([^"]+)">')
    assert not held.search(page(client, started.headers["Location"]))
    found = held.search(page(client, started.headers["Location"], Accept_Language="de"))
    assert found is not None
    words = json.loads(found[1].replace("&#34;", '"').replace("&#39;", "'"))
    assert words["Send again"] == "Noch einmal senden"
    assert words["%(num)s book"] == {"one": "%(num)s Buch", "other": "%(num)s Bücher"}


def test_numbers_are_written_as_the_language_does(make_app: Callable[..., Flask]) -> None:
    client = make_app().test_client()
    started = client.post("/api/matches", json={"game": "negotiation", "config": {"objective": -0.5}, "opponent": None})
    assert started.json is not None
    client.get(started.json["url"].partition("://")[2].partition("/")[2].join(["/", ""]))
    path = f"/play/{started.json['match']}"
    assert "each of your partner’s counts −0.5 for you" in page(client, path)
    assert "zählt für dich −0,5" in page(client, path, Accept_Language="de")


# ---- Pages for experimenters ---------------------------------------------------


class Reader(HTMLParser):
    """The texts of a page, without what is typed into a terminal or marked as English."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: set[str] = set()
        self._open: list[tuple[str, bool]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        aside = tag in ("code", "pre", "script", "noscript") or (tag != "html" and given.get("lang") == "en")
        self._open.append((tag, aside or "mono" in (given.get("class") or "")))
        self.texts |= {given.get(name) or "" for name in ("aria-label", "placeholder", "title", "aria-valuetext")}

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not any(aside for _, aside in self._open):
            self.texts.add(" ".join(data.split()).strip(" :,."))


# What reads the same in both: names, and words that German has taken over.
SAME = {
    *("Parlor", "English", "Deutsch", "Deal or No Deal", "House partner", "admin", "stub", "api", "full", "full-2"),
    "api, full",
    *("matches.csv", "moves.csv", "events.csv", "generations.csv", "codebook.csv", "inspect.eval", "inspect.json"),
    *("negotiation", "taboo", "negotiation, taboo"),
    *("Name", "live", "Pause", "normal", "Text", "Status", "Organisation", "Seed", "Top-k", "Top-p", "Lambda"),
    *("Beta (β)", "Server", "Token", "Seeds", "Sweep"),
    "Downloads",
    *("UTC", "scripted", "Sampling", "Prompt", "Extra", "Ball", "cat", "Deal or No Deal, live", "https://host/v1"),
    *("effort", "switch", "thinking", "budget", "reasoning", "template"),  # as which reasoning is sent
    *("off", "json_schema", "named", "bare", "any_json"),  # and structured output
    *("max_tokens", "max_completion_tokens", '{"top_k": 40}', "Training", "Batch", "tiny", "tiny-base", "compact"),
    *("Iteration", "Alignment", "Alignments", "Material", "sft", "Benchmark", "Benchmarks", "Benchmark 1", "Tokens"),
    *("spag", "CSV", "JSON", "API", "Budget", "Budget, USD"),
    *("everyday-reasoning", "everyday-reasoning-letters", ", ".join(PRESETS["spag"])),
    *("published", "code"),  # presets of trainings, by the names that a command line takes
}


def test_the_pages_for_experimenters_are_whole_in_german(make_app: Callable[..., Flask]) -> None:
    app = make_app(GUEST_MATCHES_PER_MINUTE=0)
    client = signed_in(app)
    matches = [
        client.post(f"/start/{game}").headers["Location"].rpartition("/")[2] for game in ("negotiation", "taboo")
    ]
    with app.app_context(), writing() as session:
        number = add_api_model(session, "stub", "Partner Zero", ["taboo"], {"model": "x", "key_env": ""}).id
        for match, text in zip(matches, ("[message] Hello there.", "cat"), strict=True):
            seat = load(session, match).match.to_move
            assert seat is not None
            live.submit(session, live.MoveSubmission(match, seat, "[propose]"), instant=False)
            live.submit(session, live.MoveSubmission(match, seat, text), instant=False)
        secret = load(session, matches[1]).match.state.word
    with app.app_context():
        add_local(db.engine, "base-1")
        campaign = campaign_of(db.engine, "base-1", "loop")
        benchmark = make_benchmark(db.engine, "base-1")
    paths = ["/admin/", "/admin/matches", "/admin/matches?status=waiting", "/admin/models", "/admin/models/new",
             f"/admin/models/{number}", "/admin/models/1", "/account", "/admin/nothing", "/admin/jobs",
             "/admin/jobs/new", "/admin/campaigns", "/admin/campaigns/new", "/admin/campaigns/new?game=taboo",
             "/admin/benchmarks", "/admin/benchmarks/new", f"/admin/benchmarks/{benchmark}",
             f"/admin/campaigns/{campaign}", "/admin/models/1/lineage",
             *(f"/admin/matches/{match}" for match in matches)]  # fmt: skip
    for path in paths:
        pages = [client.get(path, headers={"Accept-Language": language}).text for language in ("en", "de")]
        english, german = (Reader(page).texts for page in pages)
        same = {text for text in english & german if re.search(r"[^\W\d_]{2}", text)}
        names = {"Partner Zero", "Partner 1", "base-1", "loop", "a test", "scripted-agent", "scripted-observer"}
        names |= {"Scripted agent", "Scripted observer"}  # what models are called is the registry's
        assert same - SAME - names - {secret, *matches, *(match[:8] for match in matches)} == set(), path


def test_days_and_figures_are_written_as_the_language_does(make_app: Callable[..., Flask]) -> None:
    client = signed_in(make_app())
    assert re.search(r"<dd><time [^>]+>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d</time>", page(client, "/admin/models/1"))
    assert re.search(
        r"<dd><time [^>]+>\d\d\.\d\d\.\d{4} \d\d:\d\d:\d\d</time>",
        page(client, "/admin/models/1", Accept_Language="de"),
    )


@pytest.mark.parametrize(
    ("language", "amounts"),
    [
        ("en", ["$0.00", "$0.0350", "$1,234.50", "$0.000215"]),
        ("de", ["0,00\xa0$", "0,0350\xa0$", "1.234,50\xa0$", "0,000215\xa0$"]),
    ],
)
def test_dollars_are_written_as_the_language_does(app: Flask, language: str, amounts: list[str]) -> None:
    with app.test_request_context(headers={"Accept-Language": language}):
        assert [*map(dollars, (0, 0.035, 1234.5)), dollars(0.000215, "00####")] == amounts


def test_signing_in_keeps_the_language(make_app: Callable[..., Flask]) -> None:
    app = make_app()
    client = app.test_client()
    switch(client, "de")
    client.post("/enter/" + new_admin_link(app).rpartition("/")[2])
    assert "Übersicht" in page(client, "/admin/")
