"""Extracts texts and applies robots.txt in workers that can be killed.

Owns the limits of a page and the version of the extractor. Only the workers import the parsers.
"""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version

from ...engine.call import PageResponse
from .hop import ROBOT_NAME
from .page import PageText
from .robots_rules import RobotsVerdict, judge
from .workers import MEMORY_MAX, TaskBreakdown, TaskError, Workers, WorkerSpec

# Increased whenever the same bytes may give another text, or stored texts are no longer reliable.
OUR_VERSION = 3
EXTRACTION_S = 8.0
ROBOTS_S = 2.0
WORKERS = 2


class Extraction:
    """The worker processes that extract texts. `timeout_s` is the most processor time for one page, in seconds,
    `memory_max` the most memory, in bytes."""

    def __init__(
        self, workers: int = WORKERS, *, timeout_s: float = EXTRACTION_S, memory_max: int = MEMORY_MAX
    ) -> None:
        self._timeout_s = timeout_s
        means = WorkerSpec(check=_check_parsers, work="process that reads pages", memory_max=memory_max)
        self._workers = Workers(workers, means)
        parsers = (f"{name} {_version_of(name)}" for name in ("trafilatura", "pypdfium2", "lxml"))
        self.version = f"{OUR_VERSION}; {', '.join(parsers)}"
        self.robots_version = f"{OUR_VERSION}; protego {_version_of('protego')}"

    def __repr__(self) -> str:
        return f"<Extraction [{self._workers}; {self._timeout_s:g} s a page; {self.version}]>"

    async def start(self) -> None:
        """Starts a process and lets it read a sample page. Raises LocalFault if this machine can't read pages."""
        await self._workers.start()

    async def extract(self, fetched: PageResponse) -> PageText:
        """Returns the text of a page, or why it has none. Raises LocalFault if our own machine is the reason."""
        task = (fetched.body, fetched.content_type, fetched.encoding)
        try:
            return await self._workers.run(_extract, *task, within_s=self._timeout_s)
        except TaskError as error:
            return PageText("not_text", detail=f"no parser takes it: {error}")
        except TaskBreakdown as error:
            match error.why:
                case "timeout":
                    return PageText("timeout", detail=f"its text was not found within {self._timeout_s:g} s")
                case "memory":
                    return PageText("too_large", detail=f"to find its text: {error}")
            return PageText("not_text", detail=f"no parser survives it: {error}")

    async def judge(self, robots: PageResponse, url: str) -> RobotsVerdict:
        """Returns whether a robots.txt allows a URL. A file that can't be judged within the limits forbids everything,
        and the verdict says why. Raises LocalFault like `extract`."""
        try:
            return await self._workers.run(judge, robots.body, robots.encoding, url, ROBOT_NAME, within_s=ROBOTS_S)
        except TaskError as error:
            return RobotsVerdict(is_allowed=False, lack=f"no parser takes it: {error}")
        except TaskBreakdown as error:
            return RobotsVerdict(is_allowed=False, lack=f"to be parsed: {error}")

    async def close(self) -> None:
        await self._workers.close()


def _version_of(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"  # reading a page reports what is missing; all else works without it


# Only these functions, in a worker, import the module with the parsers.


def _extract(body: bytes, content_type: str, encoding: str) -> PageText:
    page: PageText = importlib.import_module(".extracting", __package__).extract(body, content_type, encoding)
    return page


def _check_parsers() -> None:
    importlib.import_module(".extracting", __package__).check_parsers()
