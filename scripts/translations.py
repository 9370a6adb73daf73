"""Brings the catalogs in translations/ up to date with the pages: `make translations`.

    python -m scripts.translations [LANGUAGE ...]

New strings arrive untranslated and those that no page has any more go; then it says what is left to translate.
Naming a language that has no catalog begins one.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator

from babel import Locale, UnknownLocaleError
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from app.campaigns.presets import PRESETS
from app.core.config import ENGLISH, ROOT, TRANSLATIONS, known_languages
from app.finetuning.backends import all_backends
from app.games import GAMES
from app.job_kinds import modules_below
from app.jobs.spec import JobSpec, SpecPart, fields_of, parts_of
from training.methods import all_methods

# Where strings are, and by which function names they are known; static/js/words.js has t and tn.
SOURCES: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("app", "**.py", "python", {}),
    ("static/js", "**.js", "javascript", {}),
    ("templates", "**.html", "jinja2", {"silent": "false", "newstyle_gettext": "true"}),
)
KEYWORDS = {
    **dict.fromkeys(("_", "gettext", "lazy_gettext", "N_", "Phrase", "t"), None),
    **dict.fromkeys(("fact", "JobTable", "Section"), (2,)),
    **dict.fromkeys(("ngettext", "tn"), (1, 2)),
}

_US = "the authors of Parlor"
ABOUT = {"project": "Parlor", "version": "1", "msgid_bugs_address": _US, "last_translator": _US, "language_team": _US}


def extracted() -> Catalog:
    """Every string that pages, their scripts and their answers have, with the files it is in."""
    found = Catalog()
    for folder, pattern, method, options in SOURCES:
        for path, _, text, comments, context in extract_from_dir(
            ROOT / folder, [(pattern, method)], {pattern: options}, KEYWORDS, ("Translators:",), strip_comment_tags=True
        ):
            found.add(text, None, [(f"{folder}/{path}", 0)], auto_comments=comments, context=context)
    for place, texts in described():
        for text in texts:
            found.add(text, None, [(place, 0)])
    return found


def described() -> Iterator[tuple[str, Iterable[str]]]:
    """What is described once, for pages and commands alike: where, and the texts."""
    yield "training/methods", training_texts()
    for backend in all_backends().values():
        yield "app/finetuning/backends", (backend.title, backend.summary)
    yield "app/games", game_texts()
    for spec in job_specs():
        yield spec.__module__.replace(".", "/"), spec_texts(spec)
    for preset in PRESETS.values():
        yield "app/campaigns", (preset.title, preset.summary)


def job_specs() -> list[type[JobSpec]]:
    """What can be asked of each kind of job, and of datasets that are cut: the classes in files `spec.py`."""
    modules = modules_below(ROOT / "app", "app", "spec")
    classes = [each for module in modules for each in vars(module).values() if isinstance(each, type)]
    specs = [each for each in dict.fromkeys(classes) if issubclass(each, JobSpec) and each is not JobSpec]
    return [each for each in specs if not each.__name__.startswith("_")]  # those only share code


def game_texts() -> Iterator[str]:
    """What pages show of the descriptions of games."""
    for game in GAMES.values():
        yield from (game.title, *game.roles, *game.outcomes)
        for field in game.fields.values():
            for texts in (field, field.get("other", {})):
                yield from (texts[name] for name in ("title", "description", "label") if name in texts)
            yield from field.get("labels", {}).values()
        if (kind := game.material) is not None:
            yield from (kind.title, kind.file_hint, kind.text_label, kind.text_hint)
        if game.rewards is not None:
            yield game.rewards.summary
        yield from game.metrics.texts()


def training_texts() -> Iterator[str]:
    """What forms and pages show of the methods of training."""
    for method in all_methods().values():
        yield from (method.title, method.summary, *(field["title"] for field in method.fields.values()))
        for field in [each for backend in all_backends().values() for each in backend.fields(method.name).values()]:
            yield from (field[name] for name in ("title", "description", "unset") if name in field)


_SHOWN = ("title", "description", "unset", "empty", "hint", "heading", "folded")  # of what is said of a field


def spec_texts(spec: type[SpecPart]) -> Iterator[str]:
    """What forms show of the fields of a job."""
    for field in fields_of(spec).values():
        yield from (field[name] for name in _SHOWN if field.get(name))
        yield from field.get("labels", {}).values()
    for part in parts_of(spec).values():
        yield from spec_texts(part)


def unfinished(catalog: Catalog) -> Iterator[Message]:
    """What a translator still has to look at."""
    for message in catalog:
        texts = message.string if isinstance(message.string, tuple | list) else (message.string,)
        if message.id and (message.fuzzy or not all(texts)):
            yield message


def main() -> None:
    parser = argparse.ArgumentParser(description="Bring the catalogs in translations/ up to date with the pages.")
    parser.add_argument("languages", nargs="*", metavar="LANGUAGE", help="such as fr or pt_BR; default: all there are")
    wanted = parser.parse_args().languages or [each for each in known_languages() if each != ENGLISH]
    template = extracted()
    for language in wanted:
        try:
            Locale.parse(language)
        except (ValueError, UnknownLocaleError):
            sys.exit(f"error: expected the code of a language such as fr or pt_BR, got {language!r}")
        path = TRANSLATIONS / language / "LC_MESSAGES" / "messages.po"
        if path.exists():
            with path.open("rb") as file:
                catalog = read_po(file, locale=language)
            catalog.update(template, no_fuzzy_matching=True, update_creation_date=False)
        else:
            path.parent.mkdir(parents=True)
            catalog = Catalog(
                language, header_comment="# docs/translating.md says how this file is kept.", fuzzy=False, **ABOUT
            )
            catalog.update(template)
        with path.open("wb") as file:
            write_po(file, catalog, width=120, ignore_obsolete=True, sort_by_file=True, include_lineno=False)
        left = list(unfinished(catalog))
        print(f"{path.relative_to(ROOT)}: {len(catalog)} texts, {len(left)} to translate")
        for message in left:
            print(f"  {message.id if isinstance(message.id, str) else message.id[0]}")


if __name__ == "__main__":
    main()
