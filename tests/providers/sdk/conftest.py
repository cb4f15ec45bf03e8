"""Official clients are made for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from certificates import make_roots


@pytest.fixture(scope="module", autouse=True)
def few_roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SSL_CERT_FILE", str(make_roots(tmp_path_factory.mktemp("roots") / "roots.pem")))
        yield
