"""Addresses that give a machine its own credentials, and similar ones: neither Parlor nor a training calls them.

Each address is checked when it is connected to, so that a name that by then resolves elsewhere does not get through.
Source: OWASP, “Server-Side Request Forgery Prevention Cheat Sheet”.
"""

import ipaddress
import socket
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

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
            "224.0.0.0/4",  # multicast, which nobody answers
            "ff00::/8",
            "255.255.255.255/32",
        ),
    )
)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class ForbiddenAddress(OSError):
    """An attempt to connect to an address at which no model can be."""


def check_address(address: str) -> None:
    """Raises ForbiddenAddress for a resolved address at which no model can be."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        found = None
    if is_forbidden(found):
        raise ForbiddenAddress(
            f"expected the address of a model's server, got {address}, a link-local or cloud metadata address,"
            " where no model is"
        )


def is_forbidden(address: Address | None) -> bool:
    """Whether no model can be at an address; None, which stands for a name, is not forbidden."""
    if address is None:
        return False
    inner: Address | None = None
    if isinstance(address, ipaddress.IPv6Address):
        embedded = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
        inner = address.ipv4_mapped or address.sixtofour or embedded
    return any(address in network for network in _NETWORKS) or is_forbidden(inner)


def checked_addresses(host: str, port: int) -> list[str]:
    """The addresses of a host, each allowed. Raises ForbiddenAddress, and OSError for a name that does not resolve."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise OSError(f"expected an address of {host}, got {error}") from None
    addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
    for address in addresses:
        check_address(address)
    return addresses


def proxy_of(base_url: str) -> str | None:
    """The environment's proxy for an address. Asked once: aiohttp's own `trust_env` would ask at every request."""
    address = urlsplit(base_url)
    proxies = getproxies()
    proxy = proxies.get(address.scheme.lower()) or proxies.get("all")
    if not proxy or proxy_bypass(address.netloc):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"
