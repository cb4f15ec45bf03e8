"""The live page's server: who may ask, the few paths there are, and the answers.

Every answer but the page itself is JSON. Files are read in threads, so that the list of runs and their steering wait
for none. Changes to a run go to its owner through `steer`, as those of `millstream ctl` do.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import orjson
from msgspec import structs

from ...bench.evaluation.door.registry import benchmarks
from ...configuration.errors import exit_code_of
from ...engine.runs.live import steer
from ...providers.llm.serve_dialect import Problem, RequestRefusal
from ...wiring import Settings
from ..http.bodies import body_of, object_of
from ..http.guard import CallerToken, GuardRules, digest_of, judge
from ..http.http_connection import Connection
from ..http.http_request import HttpRequest
from ..http.http_response import HttpResponse
from ..http.http_server import HttpServer
from ..terminal.output import note
from .folders import OF_FIELDS, RunFolders
from .items import RUNS_KEPT, ItemTables
from .labels import LabelSheets
from .page import page
from .scores import RunScores, comparison_of

HOST = "127.0.0.1"
_BODY_S = 10.0
# Runs of which the sums for scores so far are kept.
_SCORES_KEPT = 16
_SAFE = (
    "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\nX-Frame-Options: DENY\r\nServer: millstream\r\n"
)
_JSON = f"Content-Type: application/json\r\n{_SAFE}"
Query = Mapping[str, Sequence[str]]
Act = Callable[[Path, dict[str, Any]], Awaitable[Any]]


class _Refused(Exception):
    """A request that can't be answered, with its status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Answering:
    """One request on its way to its answer, which a task makes."""

    is_begun = False

    def __init__(self, make: Callable[[Connection], Awaitable[Any]]) -> None:
        self.whole: HttpResponse | None = None
        self.told: Callable[[], None] | None = None
        self._make = make

    def finish(self) -> HttpResponse | None:
        return None

    async def answer(self, back: Connection) -> HttpResponse | None:
        try:
            return _json(await self._make(back))
        except _Refused as error:
            return _json({"error": str(error)}, error.status)
        except RequestRefusal as error:
            return _json({"error": error.problem.message}, error.problem.status)
        except OSError as error:  # as of a folder that was removed
            return _json({"error": f"{error.filename}: {error.strerror}"}, 409)
        except Exception as error:
            if exit_code_of(error) is not None:
                return _json({"error": " ".join(str(error).split())}, 409)
            if not isinstance(error, OF_FIELDS):
                raise
            why = f"the run's files are none of ours ({error!r:.200}); if they are, this is a defect of ours"
            return _json({"error": why}, 409)

    def end(self) -> None:
        pass


class ViewServer:
    """The server of the page on these folders, which listens while it is entered. `token` opens it."""

    def __init__(self, roots: Sequence[Path], port: int, token: str = "") -> None:
        self.token = token or secrets.token_urlsafe(24)
        self._folders = RunFolders(roots)
        self._scores: dict[Path, RunScores] = {}
        self._items = ItemTables(Settings().cache_folder())
        self._labels = LabelSheets()
        # Records are read by one thread: msgspec may crash where two meet a type for the first time, and each thread
        # keeps memory of its own.
        self._reading = ThreadPoolExecutor(1)
        self._rules = GuardRules(port, tokens=(CallerToken("", digest_of(self.token)),))
        self._page, self._policy = page()
        self._server = HttpServer(self._begin, _failed, self._drained, HOST, port)
        self._open = AsyncExitStack()

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self._server.port}/?key={self.token}"

    async def __aenter__(self) -> ViewServer:
        await self._open.enter_async_context(self._server)
        port = self._server.port
        origins = frozenset(f"http://{name}:{port}" for name in (HOST, "localhost"))
        self._rules = structs.replace(self._rules, port=port, origins=origins)
        # While a browser opens the page: its modules take some tenths of a second.
        self._reading.submit(benchmarks)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()
        self._reading.shutdown(wait=False)

    async def _read(self, act: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._reading, act, *arguments)

    async def _drained(self) -> None:
        return

    def _begin(self, request: HttpRequest) -> HttpResponse | _Answering:
        judged = request.fault or judge(request.seen, self._rules)
        if isinstance(judged, Problem):
            # Whoever may not ask learns nothing but that.
            return HttpResponse(judged.status, f"Content-Type: text/plain\r\n{_SAFE}", b"")
        path, _, text = request.seen.target.partition("?")
        query = parse_qs(text)
        if path == "/" and request.seen.method != "POST":
            fields = f"Content-Type: text/html; charset=utf-8\r\nContent-Security-Policy: {self._policy}\r\n{_SAFE}"
            return HttpResponse(200, fields, self._page)
        if request.seen.method == "POST":
            act = {"/steer": self._steer, "/label": self._label}.get(path)
            if act is None:
                return _json({"error": f"there is no {path[:200]}"}, 404)
            return _Answering(lambda back: self._act(act, request, back))
        read = {
            "/runs": self._runs,
            "/scores": self._scores_of,
            "/columns": self._columns,
            "/share": self._share,
            "/details": self._details,
            "/compared": self._compared,
            "/question": self._question,
        }.get(path)
        if read is None:
            return _json({"error": f"there is no {path[:200]}"}, 404)
        return _Answering(lambda _: read(query))

    def _folder(self, name: str) -> Path:
        path = self._folders.path_of(name)
        if path is None:
            raise _Refused(404, "there is no such run here")
        return path

    async def _runs(self, query: Query) -> Any:
        return await asyncio.to_thread(self._folders.rows)

    async def _scores_of(self, query: Query) -> Any:
        path = self._folder(query.get("run", [""])[0])
        self._scores[path] = scores = self._scores.pop(path, None) or RunScores(path)
        for oldest in tuple(self._scores)[:-_SCORES_KEPT]:
            del self._scores[oldest]
        return await self._read(scores.look)

    async def _columns(self, query: Query) -> Any:
        return await self._read(self._items.columns, self._several(query))

    async def _share(self, query: Query) -> Any:
        return {"share": await self._read(self._items.share, self._several(query))}

    async def _details(self, query: Query) -> Any:
        item = query.get("item", [""])[0]
        return await self._read(self._items.details, self._several(query), item)

    async def _compared(self, query: Query) -> Any:
        return {"text": await self._read(comparison_of, self._several(query))}

    def _several(self, query: Query) -> dict[str, Path]:
        """Returns the folders of the runs that a request names, by their names."""
        names = query.get("run", [])
        if not 1 <= len(names) <= RUNS_KEPT:
            raise _Refused(400, f"expected 1 to {RUNS_KEPT} runs")
        return {name: self._folder(name) for name in names}

    async def _question(self, query: Query) -> Any:
        folder, rater = self._folder(query.get("run", [""])[0]), query.get("rater", [""])[0]
        texts = (query.get(name, [""])[0] for name in ("at", "after"))
        places = [int(text) if text.isdecimal() and len(text) < 9 else None for text in texts]
        return await self._read(self._labels.question, folder, rater, *places)

    async def _act(self, act: Act, request: HttpRequest, back: Connection) -> Any:
        """Reads what a request wants of which run, and has it done."""
        wanted = object_of(await body_of(request, back, within_s=_BODY_S))
        name = wanted.pop("run", None)
        if not isinstance(name, str):
            raise _Refused(400, "expected the name of a run")
        return await act(self._folder(name), wanted)

    async def _steer(self, folder: Path, wanted: dict[str, Any]) -> Any:
        return await asyncio.to_thread(steer, folder, wanted)

    async def _label(self, folder: Path, wanted: dict[str, Any]) -> Any:
        return await self._read(self._labels.set_label, folder, str(wanted.get("rater") or ""), wanted)


def _json(value: Any, status: int = 200) -> HttpResponse:
    return HttpResponse(status, _JSON, value if isinstance(value, bytes) else orjson.dumps(value, default=list))


def _failed(error: BaseException) -> HttpResponse:
    note(f"millstream view: a defect, please report it: {type(error).__name__}: {error}")
    return structs.replace(_json({"error": "the server failed at this request"}, 500), is_last=True)
