"""A setting that cannot be stops the start with one line that names it, and shows no secret."""

from pathlib import Path

import pytest

from app.core.config import load_settings
from app.core.errors import Invalid


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("PORT", "abc", "PORT: expected a valid integer"),
        ("PORT", 99999, "PORT: expected less than or equal to 65535, got 99999"),
        ("DATABASE_URL", "nonsense", "DATABASE_URL: expected a URL like postgresql://"),
        ("DATABASE_URL", "postgresql://u:s3cret@h:port/x", "DATABASE_URL: expected a URL like"),
        ("DATABASE_URL", "mysql+foo://u:s3cret@h/x", "DATABASE_URL: expected a URL like"),
        ("REDIS_URL", "reds://:s3cret@h:1/0", "REDIS_URL: expected a URL that begins with redis://"),
        ("WORKER_QUEUES", "turns,trains", "WORKER_QUEUES: expected some of turns, batch, train, with commas"),
        (
            "PROLIFIC_KEYS_URL",
            "http://api.prolific.com/keys",
            "PROLIFIC_KEYS_URL: expected a URL that begins with https://",
        ),
        ("READING_WORDS_PER_MINUTE", -1, "READING_WORDS_PER_MINUTE: expected greater than or equal to 0, got -1"),
    ],
)
def test_a_bad_setting_is_one_line(name: str, value: object, says: str) -> None:
    with pytest.raises(Invalid) as caught:
        load_settings({name: value})
    assert caught.value.message.startswith(says)
    assert "s3cret" not in caught.value.message
    assert "\n" not in caught.value.message


def test_a_setting_may_lie_in_a_file_and_the_environment_goes_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "DATABASE_URL").write_text("postgresql://u:p@h/x\n")
    (tmp_path / "REDIS_URL").write_text("redis://:p@h:1/0")
    monkeypatch.setenv("SETTINGS_FOLDER", str(tmp_path))
    monkeypatch.delenv("DATABASE_URL")
    monkeypatch.setenv("REDIS_URL", "redis://:q@h:1/0")
    settings = load_settings()
    assert (settings.database_url, settings.redis_url) == ("postgresql+psycopg://u:p@h/x", "redis://:q@h:1/0")
    with pytest.raises(Invalid, match="SETTINGS_FOLDER: expected a folder"):
        load_settings({"SETTINGS_FOLDER": str(tmp_path / "nowhere")})


def test_workers_are_started_for_all_queues_or_for_those_that_are_named() -> None:
    assert load_settings().worker_queues == ("turns", "batch", "train")
    assert load_settings({"WORKER_QUEUES": "turns, train"}).worker_queues == ("turns", "train")
    assert load_settings({"WORKER_QUEUES": "none"}).worker_queues == ()


@pytest.mark.parametrize("url", ["postgres://u:p@h/x", "postgresql://u:p@h/x", "postgresql+psycopg://u:p@h/x"])
def test_every_postgresql_url_means_psycopg_3(url: str) -> None:
    assert load_settings({"DATABASE_URL": url}).database_url == "postgresql+psycopg://u:p@h/x"
