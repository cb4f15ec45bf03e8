"""One gateway for each module of clients, as a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from certificates import make_roots
from served import Served, serving


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("gateway")) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def few_roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SSL_CERT_FILE", str(make_roots(tmp_path_factory.mktemp("roots") / "roots.pem")))
        yield
