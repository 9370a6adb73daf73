"""Words of the shipped examples that nobody has replaced by their own are found before people read them."""

import re
import time
from pathlib import Path

import pytest

from app.core.config import ROOT
from app.studies.design_files import load_design
from app.studies.placeholders import in_design, in_wave
from tests.waves import changed, loaded_study

SHIPPED = sorted((ROOT / "data" / "studies").glob("*/*.yaml"))
# What somebody who reads the examples takes for a blank, whatever the product knows.
LOOKS_BLANK = re.compile(
    r"\b(?:write|insert|enter) your\b|@example|[\w.]+example\.\w+|\[[A-Za-z]|<[a-z]|\bTODO\b|__", re.IGNORECASE
)
OF_YAML = re.compile(r"\[[^\]]*[,\]]")  # a list, which is no blank


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_placeholder_of_an_example_is_found(path: Path) -> None:
    loaded = load_design(path)
    found = list(in_design(loaded.design, loaded.texts))
    assert {".".join(map(str, each.path)) for each in found} == {"contact.name", "contact.mail", "privacy.controller"}
    for file in path.parent.iterdir():
        for line in file.read_text(encoding="utf-8").splitlines():
            plain = OF_YAML.sub("", line) if file.suffix == ".yaml" else line
            if LOOKS_BLANK.search(plain):
                assert any(each.words in line for each in found), f"{file.name}: {line}"


@pytest.mark.parametrize("name", ["two-models", "taboo-roles"])
def test_an_example_that_is_filled_in_has_none(name: str) -> None:
    loaded = loaded_study(name)
    assert list(in_design(loaded.design, loaded.texts)) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ask [your name] about it.", "[your name]"),
        ("By [Insert the date of the approval] at the latest.", "[Insert the date of the approval]"),
        ("[Describe the risks]", "[Describe the risks]"),
        ("Wenden Sie sich an [hier Ihren Namen eintragen].", "[hier Ihren Namen eintragen]"),
        ("Hier Ihren Namen eintragen.", "Hier Ihren Namen eintragen"),
        ("Write to <your e-mail>.", "<your e-mail>"),
        ("Write to ethics@uni.example.org, please.", "ethics@uni.example.org"),
        ("See [our page](https://example.com/study).", "https://example.com"),
        ("Lorem ipsum dolor sit amet", "Lorem ipsum"),
        ("TODO: say how long it takes", "TODO"),
        ("Write your university here, and its address.", "Write your university here"),
    ],
)
def test_a_blank_in_a_text_is_named_with_its_file(text: str, words: str) -> None:
    loaded = loaded_study()
    for name, key in (
        ("consent.md", "consent.text"),
        ("debrief.md", "consent.debrief"),
        ("instructions.md", "instructions"),
    ):
        texts = {**loaded.texts, name: f"{loaded.texts[name]}\n\n{text}\n"}
        [found] = in_design(loaded.design, texts)
        assert (".".join(map(str, found.path)), found.file, found.words) == (key, name, words)


@pytest.mark.parametrize(
    "text",
    [
        "Write [message] Hello, or [propose] (1 book, 0 hats, 2 balls).",
        "Read [the privacy notice](https://uni-bonn.de/privacy) or [this one][1].\n\n[1]: https://uni-bonn.de",
        "Write your message here, in the field below. Your name is not asked for.",
        "You play {matches} games. For example. Examples are below <https://osf.io/abc12>.",
        "A todo list is not needed; xxx is a kiss.",
    ],
)
def test_what_people_are_meant_to_read_is_left_alone(text: str) -> None:
    loaded = loaded_study()
    assert list(in_design(loaded.design, {**loaded.texts, "instructions.md": text})) == []


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"contact": {"name": "Your name"}}, "contact.name 'Your name'"),
        ({"contact": {"ethics": "[IRB number]", "ethics_mail": "irb@uni.test"}}, "contact.ethics '[IRB number]'"),
        ({"contact": {"mail": "someone@example.com"}}, "contact.mail 'someone@example.com'"),
        ({"privacy": {"controller": "Ihre Universität"}}, "privacy.controller 'Ihre Universität'"),
        ({"privacy": {"recipients": ["[institution]"]}}, "privacy.recipients.0 '[institution]'"),
        ({"title": "[Title of the study]"}, "title '[Title of the study]'"),
    ],
)
def test_a_blank_in_a_key_is_named(keys: dict[str, object], words: str) -> None:
    loaded = changed(loaded_study(), **keys)
    assert [str(each) for each in in_design(loaded.design, loaded.texts)] == [words]


def test_blanks_in_a_wave_are_its_codes_ids_and_addresses() -> None:
    settings = {
        "codes": {"completed": "CODE", "technical": "COMPLETION-CODE", "withdrawn": "XXXX", "full": "C7RX94LM"},
        "provider": {
            "prolific": {"study_id": "STUDY_ID"},
            "link": {"id_parameter": "id", "return_to": "https://uni.example.edu/?c={id}"},
        },
    }
    assert [str(each) for each in in_wave(settings)] == [
        "codes.completed 'CODE'",
        "codes.technical 'COMPLETION-CODE'",
        "codes.withdrawn 'XXXX'",
        "provider.prolific.study_id 'STUDY_ID'",
        "provider.link.return_to 'https://uni.example.edu'",
    ]


@pytest.mark.parametrize("part", ["[your ", "@a.", "<your ", "aaaa", "hier die ", "@", "write your name ", "/x-", "X"])
def test_looking_for_blanks_costs_no_more_for_each_character_of_a_longer_text(part: str) -> None:
    loaded = loaded_study()

    def seconds(count: int) -> float:
        texts = {**loaded.texts, "instructions.md": part * (count // len(part))}
        best = 9.0
        for _ in range(3):
            before = time.process_time()
            list(in_design(loaded.design, texts))
            best = min(best, time.process_time() - before)
        return best

    assert seconds(200_000) < 8 * seconds(50_000) + 0.05
