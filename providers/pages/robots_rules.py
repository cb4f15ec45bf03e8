"""Applies a host's robots.txt to a page, with protego. Runs in a worker: a hostile file takes protego minutes."""

from __future__ import annotations

import logging
import time

from msgspec import Struct
from protego import Protego

from .content import DECODED_MAX, NotReadable, TooMuch, decompressed

PARSED_MAX = 500 << 10


class RobotsVerdict(Struct, frozen=True, array_like=True):
    """Whether a robots.txt allows a page. `delay_s`: the seconds between two pages that it asks for, 0 for none.
    `took_s`: the seconds that judging took. `lack`: why the file could not be judged, empty if it was."""

    is_allowed: bool
    delay_s: float = 0.0
    took_s: float = 0.0
    lack: str = ""


def judge(body: bytes, encoding: str, url: str, robot: str) -> RobotsVerdict:
    """Returns whether a robots.txt allows a URL by RFC 9309: a file without rules forbids nothing; one that can't be
    decompressed forbids everything."""
    began = time.perf_counter()
    logging.getLogger("protego").setLevel(logging.WARNING)
    try:
        text = decompressed(body, encoding).data[:PARSED_MAX].decode("utf-8-sig", "replace")
    except NotReadable as error:
        return RobotsVerdict(is_allowed=False, lack=str(error))
    except TooMuch:
        return RobotsVerdict(is_allowed=False, lack=f"more than {DECODED_MAX >> 20} MiB when decompressed")
    rules = Protego.parse(text)
    is_allowed, delay_s = rules.can_fetch(url, robot), rules.crawl_delay(robot) or 0.0
    return RobotsVerdict(is_allowed, delay_s, time.perf_counter() - began)
