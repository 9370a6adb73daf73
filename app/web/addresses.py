"""The owner of an address, for the purpose of limits by address."""

import ipaddress


def network_of(text: str) -> str:
    """An IPv4 address, or for IPv6 the network that one customer gets; anything else unchanged."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped or ipaddress.ip_network((address, 64), strict=False))
    return str(address)
