"""Remarks: warnings that a person should read beside a result, and troubles that need a person now. They are logged;
the command line and `evaluate` print them, and Python itself does on stderr where a program configures no logging."""

from __future__ import annotations

import logging

LOG = logging.getLogger("millstream")


def remark(text: str) -> None:
    LOG.warning("%s", text)


def trouble(text: str) -> None:
    """Logs what keeps a run from going on while it still tries, such as a server that refuses connections."""
    LOG.error("%s", text)
