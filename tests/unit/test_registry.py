"""What a row of the registry says by itself: where its key may go, whether it has to be tried, how it is called."""

from typing import Any

import pytest

from app import registry
from app.core.errors import Invalid
from app.models import LanguageModel
from app.players.base import PlayerSpec

SHIPPED = min(registry.SHIPPED)
URL = "https://models.example.org/v1"


def row(kind: str = "api", name: str = "mine", **values: Any) -> LanguageModel:
    return LanguageModel(**{"kind": kind, "name": name, "options": {}, "prompt_style": "full", **values})


@pytest.mark.parametrize(
    ("options", "host"),
    [
        ({"model": "m", "base_url": URL, "key_env": "MY_API_KEY"}, "models.example.org"),
        ({"model": "m", "base_url": URL, "key_env": "OPENAI_API_KEY"}, "models.example.org"),
        ({"model": "m", "key_env": "OPENAI_API_KEY"}, None),  # the environment says where it goes
        ({"model": "m", "base_url": URL, "key_env": ""}, None),
    ],
)
def test_a_key_is_bound_to_the_host_it_was_added_with(options: dict[str, Any], host: str | None) -> None:
    assert registry.key_host(options) == host


def test_only_what_is_not_known_to_work_has_to_be_tried_before_people_are_offered_it() -> None:
    scripted, shipped = row("scripted", registry.BASELINE), row("local", SHIPPED)
    shipped.options = {"path": str(registry.MODELS / shipped.name)}
    assert [registry.needs_test(each) for each in (scripted, shipped, row())] == [False, False, True]
    assert [registry.may_be_offered(each) for each in (scripted, shipped, row())] == [True, True, False]


def test_a_model_of_the_name_of_a_shipped_one_that_lies_elsewhere_is_not_shipped() -> None:
    assert not registry.is_shipped(row("local", SHIPPED, options={"path": f"checkpoints/{SHIPPED}"}))
    assert not registry.is_shipped(row("local", "copy", options={"path": str(registry.MODELS / SHIPPED)}))


def test_a_row_says_what_its_player_is_made_of() -> None:
    options = {"model": "m", "base_url": URL, "key_env": ""}
    spec = registry.player_spec(row(options=options, prompt_style="compact"))
    assert spec == PlayerSpec("api", "mine", options, "compact")
    read = registry.read_options(spec)
    assert read is not None
    assert registry.read_options(PlayerSpec("scripted", "scripted", {}, "full")) is None


def test_options_that_no_model_could_be_called_with_are_refused() -> None:
    with pytest.raises(Invalid):
        registry.read_options(PlayerSpec("api", "mine", {"model": ""}, "full"))
