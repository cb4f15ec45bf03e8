"""The address of a shared cache."""

from __future__ import annotations

import pytest

from millstream.engine.server_address import ServerAddress, address_of, is_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("redis://cache.example", ServerAddress("cache.example")),
        ("redis://127.0.0.1:7000/3", ServerAddress("127.0.0.1", 7000, 3)),
        ("rediss://cache.example:6380/", ServerAddress("cache.example", 6380, 0, True)),
        ("redis://[::1]:7000", ServerAddress("::1", 7000)),
    ],
)
def test_an_address_is_read_and_written(text: str, address: ServerAddress) -> None:
    assert is_address(text)
    assert address_of(text) == address
    assert address_of(str(address)) == address


@pytest.mark.parametrize(
    "text",
    [
        "redis://user:hidden@cache.example",
        "redis://:hidden@cache.example:6379/0",
        "redis://cache.example?password=hidden",
        "redis://cache.example/0?password=hidden",
        "redis://:hidden/0",
        "redis://cache.example:99999",
        "redis://",
    ],
)
def test_what_is_no_address_is_refused_and_no_secret_in_it_repeated(text: str) -> None:
    with pytest.raises(ValueError) as raised:
        address_of(text)
    assert "hidden" not in str(raised.value)
    assert ("MILLSTREAM_CACHE_PASSWORD" in str(raised.value)) == ("@" in text)


@pytest.mark.parametrize("text", ["folder", "/tmp/redis", "http://cache.example", "redis:/x"])
def test_a_folder_is_no_address(text: str) -> None:
    assert not is_address(text)
