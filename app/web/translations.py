"""The words of pages and their scripts in other languages, from translations/*/LC_MESSAGES/messages.po.

The .po files are read directly, once per process, so nothing has to be compiled and nothing can be out of date.
docs/translating.md says how to maintain them.
"""

from functools import cached_property, lru_cache
from gettext import c2py
from io import BytesIO
from typing import Any

from babel import Locale
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.support import NullTranslations, Translations
from flask import Flask, g
from flask_babel import Babel, Domain, get_locale, gettext

from app.core.config import ENGLISH, TRANSLATIONS
from app.games import titles

_SCRIPTS = "static/js/"
_MANY = 200  # the numbers up to here include every plural form of every language


def N_(text: str) -> str:  # noqa: N802 - the name by which gettext knows it
    """The text unchanged, marked for translators: it is translated where it is shown."""
    return text


# Texts that lower layers give in English, as they know no languages, and that pages show.
FROM_BELOW = (
    N_("House partner"),
    *(N_("resigned"), N_("aborted"), N_("timeout"), N_("abandoned")),
    *(N_("waiting"), N_("playing"), N_("over"), N_("live"), N_("terminal"), N_("selfplay"), N_("import")),
    N_("rehearsal"),
    *(N_("running"), N_("cancelling"), N_("cancelled"), N_("failed"), N_("done"), N_("interrupted"), N_("removed")),
    *(N_("person"), N_("people"), N_("scripted"), N_("local")),
    *(N_("you"), N_("partner")),
    *(N_("given"), N_("missing")),
    *(N_("started"), N_("message"), N_("proposal"), N_("declaration"), N_("violation"), N_("ended")),
    *(
        N_("Counts"),
        N_("Values"),
        N_("Got"),
        N_("Partner got"),
        N_("Lambda"),
        N_("Limit"),
        N_("Book"),
        N_("Hat"),
        N_("Ball"),
    ),
    *(
        N_("fewer than 10 matches"),
        N_("fewer than 10 seeds"),
        N_("fewer than 10 contexts"),
        N_("fewer than 10 people"),
        N_("fewer than 10 pairs of people"),
        N_("too few words"),
        N_("self-play"),
        N_("cross-play"),
        N_("with people"),
        N_("people alone"),
        N_("imported people"),
        N_("McNemar"),
        N_("resampling"),
        N_("won"),
        N_("lost"),
        N_("a base score close to 0"),
        N_("shares that never vary across resamples"),
    ),
    *(N_("generated contexts"), N_("target words"), N_("what each match draws")),  # the material of campaigns
    *(N_("fewer than 10 ratings"), N_("fewer than 10 questions"), N_("fewer than 10 agents")),
    *(N_("imitation"), N_("self-criticism"), N_("realignment"), N_("released"), N_("code")),
    *(
        N_("without a rating"),
        N_("rated outside 1 to 7"),
        N_("empty"),
        N_("said before"),
        N_("not better than the draft"),
        N_("left out by the mixing ratio"),
    ),
    *(N_("Max turns"), N_("Turns left"), N_("Word")),
    *(N_("open"), N_("paused"), N_("closed"), N_("frozen")),  # waves
    *(N_("drafted"), N_("uploaded"), N_("confirmed")),  # batches of payments
    *(N_("new"), N_("assigned"), N_("answered"), N_("closed")),  # reports
)


def game_titles() -> dict[str, str]:
    """The titles of the games in the page's language, by name."""
    return {name: gettext(title) for name, title in titles().items()}


@lru_cache
def read_catalog(language: str) -> Catalog:
    """The catalog of a language that has one."""
    with (TRANSLATIONS / language / "LC_MESSAGES" / "messages.po").open("rb") as file:
        return read_po(file, locale=language)


@lru_cache
def _translations(language: str) -> NullTranslations:
    if language == ENGLISH:
        return NullTranslations()
    compiled = BytesIO()
    write_mo(compiled, read_catalog(language))
    compiled.seek(0)
    return Translations(compiled)


class _Domain(Domain):
    def get_translations(self) -> NullTranslations:
        """The translations of the request, which are looked up once: a page asks for some 700 words.

        Flask-Babel clears this attribute of its own when the language of a request changes.
        """
        kept = g.get("_flask_babel")
        found: NullTranslations | None = getattr(kept, "babel_translations", None)
        if found is None:
            found = _translations(str(get_locale() or ENGLISH))
            if kept is not None:
                kept.babel_translations = found
        return found


class PageTranslations(Babel):
    """Flask-Babel, reading our catalogs."""

    @cached_property
    def domain_instance(self) -> Domain:
        return _Domain()

    def init_app(self, app: Flask, *arguments: Any, **named: Any) -> None:
        """Have templates use our catalogs directly, instead of asking Flask-Babel at every word which ones those
        are.
        """
        super().init_app(app, *arguments, **named)
        ours = self.domain_instance
        app.jinja_env.install_gettext_callables(  # type: ignore[attr-defined]  # of an extension
            gettext=lambda text: ours.get_translations().ugettext(text),
            ngettext=lambda one, many, n: ours.get_translations().ungettext(one, many, n),
            newstyle=True,
        )


@lru_cache
def script_words(language: str) -> dict[str, Any]:
    """The words for static/js/words.js: for each English text its translation, or its forms by CLDR plural category."""
    if language == ENGLISH:
        return {}
    catalog, locale = read_catalog(language), Locale.parse(language)
    form_of = c2py(catalog.plural_expr)
    words: dict[str, Any] = {}
    for message in catalog:
        forms = [message.string] if isinstance(message.string, str) else list(message.string or ())
        if not (all(forms) and any(path.startswith(_SCRIPTS) for path, _ in message.locations)):
            continue  # untranslated texts stay English
        if isinstance(message.id, str):
            words[message.id] = forms[0]
        else:
            words[message.id[0]] = {locale.plural_form(n): forms[form_of(n)] for n in range(_MANY)}
    return words
