"""The address of a shared cache is kept as it is, wherever a cache's folder may be named."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.configuration.configuration import settings_of
from millstream.configuration.declared_options import absolute_value, words_kept
from millstream.configuration.options import SENDING, SendingOptions
from millstream.engine.server_address import ServerAddress
from millstream.interfaces.cache.files import cache_at
from millstream.providers.access import ConfigurationError
from millstream.wiring.engine import Engine
from millstream.wiring.settings import Settings

ADDRESS = "redis://cache.example:7000/2"
SERVER = ServerAddress("cache.example", 7000, 2)


def test_settings_have_the_server_and_the_users_cache_folder_beside_it() -> None:
    plain = Settings()
    for settings in (settings_of(SendingOptions(cache=ADDRESS)), Engine(cache=ADDRESS).settings):
        assert (settings.server, settings.cache) == (SERVER, None)
        assert settings.cache_folder() == plain.cache_folder()
        assert f"cache {ADDRESS}" in repr(settings)
    assert plain.server is None


def test_a_password_in_an_address_is_refused_in_python_too() -> None:
    with pytest.raises(ConfigurationError, match="MILLSTREAM_CACHE_PASSWORD") as raised:
        Engine(cache="redis://:hidden@cache.example")
    assert "hidden" not in str(raised.value)


def test_no_folder_is_made_of_an_address(tmp_path: Path) -> None:
    assert absolute_value(SENDING["cache"], ADDRESS, tmp_path) == ADDRESS
    assert absolute_value(SENDING["cache"], "folder", tmp_path) == str(tmp_path / "folder")
    assert words_kept(SendingOptions, {"cache": ADDRESS}) == ["--cache", ADDRESS]
    assert cache_at(ADDRESS) == cache_at(None)
