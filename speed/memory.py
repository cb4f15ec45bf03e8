"""Whether ten times the calls need more memory: `python -m … COUNT` runs the engine over a scripted provider.

Prints the anonymous memory at the end of the run; mapped pages of the cache's file don't count.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import orjson
import uvloop

from ..engine.call import Call, Reply, Usage
from ..engine.endpoint import AwaitingEndpoint, Cleared, Fault, Request, Response
from ..engine.limits import Limit
from ..engine.run import run_calls
from ..engine.runs.run_folder import RunFolder
from .clients import MODEL, build, row
from .watched import memory_kib


class ScriptedProvider(AwaitingEndpoint):
    """An endpoint that answers at once, without a socket."""

    base_url = "script://"

    def encode(self, call: Call) -> Request:
        body = orjson.dumps(call.input)
        return Request("script://", "script://", body, body, body, b"{}")

    async def send(self, request: Request, cleared: Cleared) -> Response:
        return Response(200, b"answer to " + request.body)

    def decode(self, response: Response) -> Reply | Fault:
        return Reply(response.body.decode(), Usage(10, 10), "stop")

    def limits(self, response: Response) -> tuple[Limit, ...]:
        return ()


async def run(count: int, folder: Path) -> None:
    scheduler = build(ScriptedProvider, folder)
    answered = 0
    with RunFolder(folder / "run", {"benchmark": "memory"}) as run_folder:
        calls = (Call(MODEL, f"prompt {number}", tag=number) for number in range(count))
        async for outcome in run_calls(scheduler, calls, run_folder.sink(row)):
            answered += outcome.reply is not None
    scheduler.cache.close()
    if answered != count:
        raise SystemExit(f"{answered} of {count} answered")


def main() -> int:
    count = int(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
        uvloop.run(run(count, Path(folder)))
        sys.stdout.buffer.write(orjson.dumps({"calls": count, "anonymous_kib": memory_kib("RssAnon")}) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
