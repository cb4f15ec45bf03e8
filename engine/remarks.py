"""Remarks: warnings that a person should read beside a result. They are logged; only an interface prints them."""

from __future__ import annotations

import logging

LOG = logging.getLogger("millstream")
LOG.addHandler(logging.NullHandler())


def remark(text: str) -> None:
    LOG.warning("%s", text)
