"""What a host's robots.txt says of one page, by protego. Runs in a worker: a hostile file takes protego minutes."""

from __future__ import annotations

import logging
import time

from msgspec import Struct
from protego import Protego

from .content import DECODED_MAX, NotReadable, TooMuch, decompressed

PARSED_MAX = 500 << 10


class RobotsVerdict(Struct, frozen=True, array_like=True):
    """`delay_s`: the pause between two pages that the file asks for, 0 where it asks for none. `took_s`: what
    judging cost. `lack`: why the file could not be judged at all, "" where it was."""

    is_allowed: bool
    delay_s: float = 0.0
    took_s: float = 0.0
    lack: str = ""


def judge(body: bytes, encoding: str, url: str, robot: str) -> RobotsVerdict:
    """By RFC 9309: a file without a line of rules forbids nothing. One that is not even text forbids everything, as one
    that can't be had does."""
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
