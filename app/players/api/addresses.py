"""Where calls of API models may go, and which variables may hold their keys.

Whoever may add a model chooses an address and the name of a variable. Without limits that would send any secret of the
workers' environment to any server, and requests to servers that only this machine can reach. Addresses that give a
machine its own credentials (link-local ones and those of clouds' metadata services) are never called: they are looked
for in what was given, and again in each address that is connected to, so that a name that leads elsewhere by then is of
no use.
Source: OWASP, “Server-Side Request Forgery Prevention Cheat Sheet”.
"""

import ipaddress
import socket
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from app.core.errors import Invalid, Phrase, Verbatim, shown

_NETWORKS = tuple(
    map(
        ipaddress.ip_network,
        (
            "169.254.0.0/16",  # link-local; most clouds' metadata at 169.254.169.254
            "fe80::/10",
            "fd00:ec2::254/128",  # AWS
            "fd20:ce::254/128",  # Google
            "100.100.100.200/32",  # Alibaba
            "168.63.129.16/32",  # Azure's host
            "192.0.0.192/32",  # Oracle
            "224.0.0.0/4",  # nobody answers a call to many
            "ff00::/8",
            "255.255.255.255/32",
        ),
    )
)
_NAMES = frozenset({"metadata", "metadata.google.internal", "metadata.goog", "instance-data"})
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
NEVER = "an address of a link or of a cloud's metadata service, which no model is at"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class ForbiddenAddress(OSError):
    """A connection was about to be made to where no model is."""


def host_of(base_url: str) -> str:
    """The host in an address, in lower case and without the dot that a name may end with."""
    return (urlsplit(base_url).hostname or "").rstrip(".")


def is_within(host: str, domain: str) -> bool:
    """Whether a host is that domain or one of its hosts."""
    return host == domain or host.endswith(f".{domain}")


def check_host(base_url: str, hosts: Sequence[str] = ()) -> None:
    """Raises Invalid for an address where no model may be. `hosts` are the only ones allowed; none: any."""
    host = host_of(base_url)
    if host in _NAMES or _is_forbidden(_literal(host)):
        raise Invalid(
            "base_url",
            expected=Phrase("the address of a model's server"),
            got=Phrase(
                "%(host)s, an address of a link or of a cloud's metadata service, which no model is at",
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
    """Raises Invalid for a variable that may hold no key of a model; `*` in a pattern is anything."""
    if variable and not any(fnmatchcase(variable, pattern) for pattern in patterns):
        raise Invalid(
            "key_env",
            expected=Phrase("a variable that KEY_VARIABLES allows (%(names)s)", names=", ".join(patterns)),
            got=Verbatim(variable),
            remedy=Phrase("give the key such a name where the workers run, or add its own to that setting"),
        )


def open_socket(info: tuple[Any, ...]) -> socket.socket:
    """A socket for one resolved address, as aiohttp asks for it. Raises ForbiddenAddress."""
    family, kind, protocol, _, address = info
    check_address(str(address[0]))
    return socket.socket(family, kind, protocol)


def check_address(address: str) -> None:
    """Raises ForbiddenAddress for a resolved address where no model is."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        found = None
    if _is_forbidden(found):
        raise ForbiddenAddress(f"expected the address of a model's server, got {address}, {NEVER}")


def _literal(host: str) -> Address | None:
    """The address that a host is, in any of the ways in which one can be written; None for a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))  # 2852039166, 0xa9fea9fe, 169.254.43518
    except (OSError, UnicodeError):
        return None


def _is_forbidden(address: Address | None) -> bool:
    if address is None:
        return False
    inner: Address | None = None
    if isinstance(address, ipaddress.IPv6Address):
        embedded = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
        inner = address.ipv4_mapped or address.sixtofour or embedded
    return any(address in network for network in _NETWORKS) or _is_forbidden(inner)
