"""`evaluate` against a server of its own that refuses: it raises with what there is, and prints the cause at once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from socket import create_server
from typing import Any

import pytest
from command_line import environment

import millstream as ms

ROWS = [{"id": f"r{number}", "word": f"w{number}"} for number in range(40)]
ANSWER = json.dumps({"choices": [{"message": {"content": "2"}, "finish_reason": "stop"}]}).encode()
REFUSAL = json.dumps({"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}).encode()

UNKNOWN = json.dumps({"error": {"message": "no such model", "code": "model_not_found"}}).encode()


def task() -> ms.Task:
    return ms.Task(data=ROWS, prompt="Say {word}", score=ms.regex("2"), name="words")


@contextmanager
def server(answers: int) -> Iterator[str]:
    """Yields the address of a server that refuses the API key of every call to `bad`, and of each other one after as
    many answers; it knows no model `nobody`."""
    numbers = count()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            is_answered = asked["model"] != "bad" and next(numbers) < answers
            body = ANSWER if is_answered else REFUSAL
            if asked["model"] == "nobody":
                body = UNKNOWN
            self.send_response(200 if is_answered else 404 if body is UNKNOWN else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}/v1"
        finally:
            running.shutdown()
            thread.join()


def options(base_url: str, folder: Path) -> dict[str, Any]:
    return {"base_url": base_url, "cache": str(folder / "cache"), "report": False, "concurrency": 2}


def test_a_dead_key_raises_what_there_is_and_prints_the_cause(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with server(answers=7) as base_url, pytest.raises(ms.Stopped, match="refuses the key") as raised:
        ms.evaluate(task(), "openai/good", tmp_path / "run", **options(base_url, tmp_path))
    assert isinstance(raised.value, ms.EvaluationStopped) and raised.value.stops[0].reason == "dead_key"
    found = raised.value.evaluation
    assert (len(list(found.records())), found.pending) == (7, 33)
    assert f"33 questions are pending in {tmp_path / 'run'}: openai/good refuses the key" in str(raised.value)
    assert "millstream: openai/good refuses the key (401: Incorrect API key" in capfd.readouterr().err


def test_the_same_call_goes_on_and_a_partial_evaluation_is_returned_on_request(tmp_path: Path) -> None:
    with server(answers=1_000) as base_url:
        models = ["openai/bad", "openai/good"]
        found = ms.evaluate(task(), models, tmp_path / "run", allow_partial=True, **options(base_url, tmp_path))
        assert (found.pending, len(list(found.records())), found.is_whole) == (40, 40, False)
        # What is asked already is scored; what is refused still raises.
        with pytest.raises(ms.EvaluationStopped):
            ms.evaluate(task(), models, tmp_path / "run", **options(base_url, tmp_path))


def test_it_raises_if_every_question_failed_for_good_and_none_is_pending(tmp_path: Path) -> None:
    few = ms.Task(data=ROWS[:3], prompt="Say {word}", score=ms.regex("2"), name="words")
    with (
        server(answers=0) as base_url,
        pytest.raises(ms.EvaluationStopped, match=f"failed in {tmp_path / 'run'}: .*no such model") as raised,
    ):
        ms.evaluate(few, "openai/nobody", tmp_path / "run", **options(base_url, tmp_path))
    assert (raised.value.evaluation.failures, raised.value.evaluation.pending) == (3, 0)


PROGRAM = """
import sys
import millstream as ms

task = ms.Task(data=[{"word": "a"}], prompt="Say {word}", score=ms.regex("2"))
ms.evaluate(task, "openai/good", "run", base_url=sys.argv[1], cache="cache", progress=sys.argv[2] == "True")
"""


@pytest.mark.process
@pytest.mark.parametrize("progress", [False, True])
def test_a_wrong_address_is_printed_with_its_cause_within_seconds(tmp_path: Path, *, progress: bool) -> None:
    with closing(create_server(("127.0.0.1", 0))) as taken:
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
    words = [sys.executable, "-P", "-c", PROGRAM, f"{address}/v1", str(progress)]
    with subprocess.Popen(words, cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.PIPE) as process:
        guard = threading.Timer(20, process.kill)
        guard.start()
        try:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, b"")
            assert any(address.encode() in line and b"refuses connections" in line for line in lines)
            assert guard.is_alive() and process.poll() is None
        finally:
            guard.cancel()
            process.kill()
