"""Where calls of API models may go, and which variables may hold their keys.

Whoever may add a model chooses an address and the name of a variable. Without limits, that could send any secret in the
workers' environment to any server, and requests to servers that only this machine can reach. Addresses that give a
machine its own credentials (link-local ones and those of clouds' metadata services) are never called: they are checked
for in the given address, and again in each address that is connected to, so that a name that resolves differently by
then does not help. Source: OWASP, “Server-Side Request Forgery Prevention Cheat Sheet”.
"""

import ipaddress
import socket
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from app.core.errors import Invalid, Phrase, Verbatim, shown
from training.addresses import Address, check_address, is_forbidden

_NAMES = frozenset({"metadata", "metadata.google.internal", "metadata.goog", "instance-data"})


def host_of(base_url: str) -> str:
    """The host in an address, in lower case and without a trailing dot."""
    return (urlsplit(base_url).hostname or "").rstrip(".")


def is_within(host: str, domain: str) -> bool:
    """Whether a host is that domain or one of its subdomains."""
    return host == domain or host.endswith(f".{domain}")


def check_host(base_url: str, hosts: Sequence[str] = ()) -> None:
    """Raises Invalid for an address that no model may have. `hosts` are the only ones allowed; none: any."""
    host = host_of(base_url)
    if host in _NAMES or is_forbidden(_literal(host)):
        raise Invalid(
            "base_url",
            expected=Phrase("the address of a model's server"),
            got=Phrase(
                "%(host)s, a link-local or cloud metadata address, where no model is",
                host=shown(host),
            ),
        )
    if hosts and host not in hosts:
        raise Invalid(
            "base_url",
            expected=Phrase("a host that API_HOSTS allows (%(names)s)", names=", ".join(hosts)),
            got=host,
            remedy=Phrase("the operator of Parlor can add it to that setting"),
        )


def check_key_variable(variable: str, patterns: Sequence[str]) -> None:
    """Raises Invalid for a variable that may not hold a model's key; `*` in a pattern matches anything."""
    if variable and not any(fnmatchcase(variable, pattern) for pattern in patterns):
        raise Invalid(
            "key_env",
            expected=Phrase("a variable that KEY_VARIABLES allows (%(names)s)", names=", ".join(patterns)),
            got=Verbatim(variable),
            remedy=Phrase("rename the variable where the workers run, or add its name to that setting"),
        )


def open_socket(info: tuple[Any, ...]) -> socket.socket:
    """A socket for one resolved address, called by aiohttp. Raises ForbiddenAddress."""
    family, kind, protocol, _, address = info
    check_address(str(address[0]))
    return socket.socket(family, kind, protocol)


def _literal(host: str) -> Address | None:
    """The IP address that a host stands for, in any notation; None for a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))  # 2852039166, 0xa9fea9fe, 169.254.43518
    except (OSError, UnicodeError):
        return None
