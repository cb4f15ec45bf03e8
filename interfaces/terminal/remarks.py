"""Remarks of all packages, shown on stderr while a command runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from ...engine.remarks import LOG
from .output import note, note_error


class _RemarkHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        (note_error if record.levelno >= logging.ERROR else note)(f"millstream: {record.getMessage()}")


@contextmanager
def shown_remarks() -> Iterator[None]:
    notes = _RemarkHandler()
    LOG.addHandler(notes)
    try:
        yield
    finally:
        LOG.removeHandler(notes)
