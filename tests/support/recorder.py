"""A server on loopback, in a thread of its own, that writes down what it is sent and answers what it is told.

For clients that nobody here wrote, and for comparing what they send with what we send.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

JSON = "application/json"
EVENTS = "text/event-stream"


class Sent(NamedTuple):
    """One request as it came; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Recorder:
    """`answer` is given to every request, with `status`; both may be changed between them, or by `react` for each."""

    def __init__(self, server: ThreadingHTTPServer, answer: bytes, content_type: str) -> None:
        self.origin = f"http://127.0.0.1:{server.server_port}"
        self.base_url = f"{self.origin}/v1"
        self.sent: list[Sent] = []
        self.status = 200
        self.answer = answer
        self.content_type = content_type
        self.headers: dict[str, str] = {}
        self.react: Callable[[Sent], tuple[int, bytes]] | None = None

    @property
    def last(self) -> Sent:
        return self.sent[-1]


@contextmanager
def recording(answer: bytes = b"{}", content_type: str = JSON) -> Iterator[Recorder]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.recorder = recorder = Recorder(server, answer, content_type)  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield recorder
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        recorder: Recorder = self.server.recorder  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        recorder.sent.append(sent := Sent(self.command, self.path, headers, body))
        # Local values: other requests are answered at the same time.
        status, answer = (recorder.status, recorder.answer) if recorder.react is None else recorder.react(sent)
        self.send_response(status)
        for name, value in recorder.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", recorder.content_type)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None:
        return None


# What differs between ours and an official client on purpose: who asks, and how the connection is used.
TOLD = {"accept", "user-agent", "content-length", "accept-encoding", "connection", "x-goog-api-client"}


def assert_the_same(ours: Sent, theirs: Sent) -> None:
    """Checks that two requests ask the same with the same headers, but for those that say who asks."""
    assert (ours.method, ours.path, ours.json) == (theirs.method, theirs.path, theirs.json)
    told = {name.lower(): value for name, value in theirs.headers.items() if not name.startswith("x-stainless-")}
    for headers in (ours.headers, told):
        for name in TOLD & headers.keys():
            del headers[name]
    assert ours.headers == told
