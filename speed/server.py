"""A server that is not Python: nginx on loopback with one worker and one fixed answer; and how goals are reported.

Owns its life and its core, and how a client is bound to another one. Knows no client.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

# The size of a short real answer with its usage: 636 bytes of body.
ANSWER_BYTES = 636


class NoServer(Exception):
    """nginx is missing or did not start."""


def verdict(text: str, *, is_reached: bool) -> bool:
    """Prints whether a goal is reached; returns it."""
    print(f"{'reached' if is_reached else 'MISSED'}: {text}", flush=True)
    return is_reached


def python_on(core: int, python: str = sys.executable) -> list[str]:
    """Returns the command of an interpreter, this one if none is given, bound to one core."""
    bind = (
        f"import os,sys;os.sched_setaffinity(0,{{{core}}});os.execv(sys.executable,[sys.executable,'-P']+sys.argv[1:])"
    )
    return [python, "-P", "-c", bind]


def answer() -> bytes:
    # Of the grid's prompts in the mean, at four characters a token: whoever is told a small part of it looks closer.
    read, written = 1_440, 100
    body = {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "created": 0,
        "model": "fixed",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }
    room = ANSWER_BYTES - len(orjson.dumps(body))
    body["choices"][0]["message"]["content"] = ("position <<A>> " * 40)[:room]  # type: ignore[index]
    return orjson.dumps(body)


@contextmanager
def nginx(core: int | None) -> Iterator[str]:
    """Runs nginx within the context; yields its base URL."""
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    if not Path(program).exists():
        raise NoServer("nginx is not installed: run sh speed/install-servers.sh")
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="millstream-nginx-") as folder:
        configuration = Path(folder) / "nginx.conf"
        configuration.write_text(_configuration(folder, port))
        process = subprocess.Popen([program, "-p", folder, "-c", str(configuration), "-g", "daemon off;"])
        try:
            if core is not None:
                os.sched_setaffinity(process.pid, {core})
            _wait_until_open(port, process)
            if core is not None:
                _pin_children(process.pid, core)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait()


def _configuration(folder: str, port: int) -> str:
    text = answer().decode().replace("'", "\\'")
    return f"""
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  keepalive_requests 1000000000;
  server {{
    listen 127.0.0.1:{port};
    location = /sent {{ stub_status; }}
    location / {{ default_type application/json; return 200 '{text}'; }}
  }}
}}
"""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_open(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        if process.poll() is not None:
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise NoServer(f"nginx did not listen on port {port}")


def _pin_children(parent: int, core: int) -> None:
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        os.sched_setaffinity(int(child), {core})
