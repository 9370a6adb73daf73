"""Who is behind an address, as far as limits by address go."""

import ipaddress


def network_of(text: str) -> str:
    """An address, or of IPv6 the network that one customer is given; what is no address, as it is."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped or ipaddress.ip_network((address, 64), strict=False))
    return str(address)
