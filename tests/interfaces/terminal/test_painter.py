"""A display in a notebook: one line that is written again, with remarks above it."""

from __future__ import annotations

import io
import sys
from functools import reduce

import pytest

from millstream.interfaces.terminal.painter import Painter


class KernelStream(io.StringIO):
    """What a kernel gives a cell as stderr: no terminal, and known by the package of its class."""

    __module__ = "ipykernel.iostream"


def seen(written: str) -> list[str]:
    """The lines of a cell's output: after a carriage return a line is written over from its beginning."""
    return [reduce(lambda old, new: new + old[len(new) :], line.split("\r")).rstrip() for line in written.split("\n")]


def test_in_a_notebook_one_line_is_written_again_at_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = KernelStream()
    monkeypatch.setattr(sys, "stderr", stream)
    painter = Painter(stream, 0.0)
    for now, text in enumerate(("1 of 10 prompts, slowly", "2 of 10", "3 of 10")):
        assert painter.is_due(now / 4)
        painter.show(lambda _: [], lambda text=text: [text], now / 4)  # type: ignore[misc]
    assert seen(stream.getvalue()) == ["3 of 10"]
    print("millstream: a remark", file=sys.stderr)
    painter.show(lambda _: [], lambda: ["4 of 10"], 2.0)
    assert seen(stream.getvalue()) == ["millstream: a remark", "4 of 10"]
    painter.end(lambda _: [], lambda: ["10 of 10"])
    assert sys.stderr is stream
    assert seen(stream.getvalue()) == ["millstream: a remark", "10 of 10", ""]
    assert "\x1b" not in stream.getvalue()
