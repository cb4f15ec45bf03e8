"""Which addresses are public: every special range at both its ends and within, and nothing that embeds another."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from special_ranges import SPECIAL_V4, SPECIAL_V6

from millstream.providers.pages.addresses import is_public

PUBLIC = """
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255
169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0
203.0.112.255 203.0.114.0 223.255.255.255 2001:200:: 2001:4860:4860::8888 2003:: 2606:4700::1111 2620:4f:8001::
2a00:1450:4001:80b::200e 3ffd:ffff:: 3fff:1000::
"""


@pytest.mark.parametrize("network", (SPECIAL_V4 + SPECIAL_V6).split())
def test_no_address_of_a_special_range_is_public(network: str) -> None:
    found = ipaddress.ip_network(network)
    size = found.num_addresses
    for place in {0, min(1, size - 1), size // 3, size // 2, size - 1}:
        assert not is_public(str(found[place])), found[place]


@pytest.mark.parametrize("address", PUBLIC.split())
def test_its_neighbours_are_public(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_never_public_within_an_ipv6_one(inner: ipaddress.IPv4Address) -> None:
    number = int(inner)
    for prefix in ("::", "::ffff:0:0", "64:ff9b::", "64:ff9b:1::"):
        assert not is_public(str(ipaddress.IPv6Address(int(ipaddress.IPv6Address(prefix)) + number)))
    for high in (0x2002 << 112 | number << 80, 0x20010000 << 96 | number, 0x20010000 << 96 | (number ^ 0xFFFFFFFF)):
        assert not is_public(str(ipaddress.IPv6Address(high)))


@given(st.ip_addresses())
def test_what_is_public_is_also_global_to_the_standard_library(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    assert not is_public(str(address)) or address.is_global


@pytest.mark.parametrize(
    "text", ["", "localhost", "8.8.8.8:80", "2a00::1%eth0", "2a00::1%1", "010.8.8.8", "8.8.8", " 8.8.8.8", "[2a00::1]"]
)
def test_what_is_no_plain_address_is_not_public(text: str) -> None:
    assert not is_public(text)
