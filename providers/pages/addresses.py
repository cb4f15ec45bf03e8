"""Which IP addresses are public: those that no registry sets apart, and nothing that embeds another address.

Pure. Owns the list of special ranges; knows no name, no URL and no socket.
"""

from __future__ import annotations

import ipaddress

# IANA's registries of special-purpose addresses, the reachable ones included: no web page lives in them. The standard
# library's `is_global` is true for some that embed private addresses, and for some of these.
_SPECIAL_V4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # behind a carrier's translation
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # inside one cloud, the host of every machine
            "169.254.0.0/16",  # link-local, the clouds' metadata with it
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # multicast tunnels
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",  # private
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, broadcast
        ),
    )
)
# Only this eighth of IPv6 is assigned to hosts. Outside of it are loopback, IPv4-mapped and -compatible addresses,
# NAT64 (64:ff9b::/96, 64:ff9b:1::/48), discard-only, segment routing, unique local, link-local, site-local and
# multicast.
_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")
_SPECIAL_V6 = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4: embeds any IPv4 address
            "2620:4f:8000::/48",  # AS112
            "3ffe::/16",  # 6bone, given back
            "3fff::/20",  # documentation
        ),
    )
)


def is_public(address: str) -> bool:
    """Returns whether a page may be fetched from this IP address; False for other texts and addresses with a zone."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv4Address):
        return not any(ip in network for network in _SPECIAL_V4)
    if ip.scope_id is not None:
        return False
    return ip in _UNICAST_V6 and not any(ip in network for network in _SPECIAL_V6)
