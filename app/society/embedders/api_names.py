"""Reads which model behind an API embeds, and checks what may be sent to it. Loads no client code."""

from app.core.config import load_settings
from app.players.api.addresses import check_host, check_key_variable
from app.players.api.options import ApiOptions, read_options


def named_options(text: str) -> ApiOptions:
    """The options of MODEL, MODEL@ADDRESS or MODEL@ADDRESS#VARIABLE. Raises Invalid for anything else.

    Without an address the model is at the vendor or at OPENAI_BASE_URL, with the key in OPENAI_API_KEY. An address gets
    no key except the one in the variable named with it.
    """
    model, _, where = text.partition("@")
    address, _, variable = where.partition("#")
    return read_options({"model": model, **({"base_url": address, "key_env": variable} if address else {})})


def api_options(text: str) -> ApiOptions:
    """The same options. Raises Invalid also for an address or a variable that the settings do not allow."""
    options = named_options(text)
    settings = load_settings()
    check_host(options.base_url, settings.api_hosts)
    check_key_variable(options.key_env, settings.key_variables)
    return options
