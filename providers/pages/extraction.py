"""Texts of pages and verdicts of robots.txt, made in killable workers: what was not made in time says so.

Owns the limits of a page and the extractor's version. The parsers themselves are imported by the workers alone.
"""

from __future__ import annotations

import importlib
from importlib.metadata import version

from ...engine.call import Fetched
from .extracted import Extracted
from .hop import ROBOT_NAME
from .robots_rules import RobotsVerdict, judge
from .workers import MEMORY_MAX, Failed, Killed, Workers

# Raised whenever the same bytes may give another text.
OUR_VERSION = 1
EXTRACTION_S = 8.0
ROBOTS_S = 2.0
WORKERS = 2


class Extraction:
    """`timeout_s` is the longest that one page may take, `memory_max` the most that one may need, in bytes."""

    def __init__(
        self, workers: int = WORKERS, *, timeout_s: float = EXTRACTION_S, memory_max: int = MEMORY_MAX
    ) -> None:
        self._timeout_s = timeout_s
        self._workers = Workers(workers, (f"{__package__}.extracting",), memory_max)
        parsers = (f"{name} {version(name)}" for name in ("trafilatura", "pypdfium2", "lxml"))
        self.version = f"{OUR_VERSION}; {', '.join(parsers)}"
        self.robots_version = f"{OUR_VERSION}; protego {version('protego')}"

    def __repr__(self) -> str:
        return f"<Extraction [{self._workers}; {self._timeout_s:g} s a page; {self.version}]>"

    async def extract(self, fetched: Fetched) -> Extracted:
        task = (fetched.body, fetched.content_type, fetched.encoding)
        left_s = self._timeout_s
        for is_last in (False, True):
            try:
                return await self._workers.run(_extract, *task, within_s=left_s)
            except Failed as error:
                return Extracted("not_text", detail=f"no parser takes it: {error}")
            except Killed as error:
                if error.why == "timeout":
                    return Extracted("timeout", detail=f"its text was not found within {self._timeout_s:g} s")
                if error.why == "memory":
                    return Extracted("too_large", detail=f"to find its text: {error}")
                # A process may have been ended from outside: that is not the page's fault.
                left_s -= error.after_s
                if is_last or left_s <= 0:
                    return Extracted("not_text", detail=f"no parser survives it: {error}")
        raise AssertionError("unreachable")

    async def judge(self, robots: Fetched, url: str) -> RobotsVerdict:
        """A file that can't be judged in time forbids everything, as one that can't be had does."""
        try:
            return await self._workers.run(judge, robots.body, robots.encoding, url, ROBOT_NAME, within_s=ROBOTS_S)
        except (Failed, Killed):
            return RobotsVerdict(is_allowed=False)

    async def close(self) -> None:
        await self._workers.close()


def _extract(body: bytes, content_type: str, encoding: str) -> Extracted:
    """Only here is the module with the parsers imported: the process that asks needs none of them."""
    found: Extracted = importlib.import_module(".extracting", __package__).extract(body, content_type, encoding)
    return found
