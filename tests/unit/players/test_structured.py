"""How servers are told a schema: the form by the address, and what a row may say."""

from typing import Any

import pytest

from app.core.errors import Invalid
from app.players.api.options import read_options
from app.players.api.server_errors import read_error
from app.players.api.structured import response_format

SCHEMA = '{"title": "rating", "type": "object"}'
READ = {"title": "rating", "type": "object"}


@pytest.mark.parametrize(
    ("address", "form", "sent"),
    [
        ("https://api.openai.com/v1", "named", {"name": "rating", "strict": True, "schema": READ}),
        ("http://127.0.0.1:8000/v1", "named", {"name": "rating", "strict": True, "schema": READ}),
        ("https://api.together.xyz/v1", "bare", READ),
        ("https://api.deepseek.com", "any_json", None),
        ("https://notdeepseek.com", "named", {"name": "rating", "strict": True, "schema": READ}),
    ],
)
def test_the_form_follows_from_the_address(address: str, form: str, sent: Any) -> None:
    options = read_options({"model": "m", "base_url": address})
    assert (options.structured_output, options.structured_form) == ("off", form)
    found = response_format(SCHEMA, form)
    assert found.get("json_schema", found.get("schema")) == sent


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"structured_output": "yes"}, "structured_output: expected off or json_schema, got 'yes'"),
        ({"structured_form": "x"}, "structured_form: expected named or bare or any_json, got 'x'"),
        (
            {"structured_output": "json_schema", "extra": {"response_format": {"type": "text"}}},
            "extra: expected no field that the option structured_output sends, got 'response_format'",
        ),
    ],
)
def test_what_a_row_may_not_say_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_options({"model": "m", "base_url": "http://x/v1", **options})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        {"message": "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."},
        {"message": "not supported", "param": "response_format"},
        {"message": "Invalid schema", "param": "response_format.json_schema.strict"},
        {"message": "This model does not support structured outputs."},
    ],
)
def test_a_refused_schema_is_found_in_the_errors_of_servers(error: dict[str, Any]) -> None:
    found = read_error(400, {"error": error})
    assert (found.outcome, found.field) == ("ask_again_differently", "response_format")
