"""Reads server-sent events from bytes."""

from __future__ import annotations

from collections.abc import Iterator


def events_of(body: bytes) -> Iterator[bytes]:
    """Yields the data of each complete server-sent event; a last one without its blank line is left out."""
    text = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    whole, _, _ = text.rpartition(b"\n\n")
    for block in whole.split(b"\n\n"):
        lines = [line[5:].removeprefix(b" ") for line in block.split(b"\n") if line.startswith(b"data:")]
        if lines:
            yield b"\n".join(lines)
