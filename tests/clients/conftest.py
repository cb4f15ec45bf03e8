"""One gateway for each module of clients, as a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from served import Served, serving


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("gateway")) as running:
        yield running
