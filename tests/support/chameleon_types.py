"""The types of what tests of Chameleon's conversations are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from millstream.bench.chameleon.asked import Asked
from millstream.bench.chameleon.dataset import Dataset
from millstream.engine.admission import Stop

Line = dict[str, Any]
Lines = Callable[..., list[Line]]
Making = Callable[..., Dataset]
Asking = Callable[..., Asked]
Running = Callable[..., list[Stop]]


def ids(records: Iterable[Line]) -> list[str]:
    return [record["id"] for record in records]
