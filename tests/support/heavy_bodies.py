"""Requests that hold everybody up or fill the memory of a gateway without bounds, many of them at once."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from served_gateway import Served

MIB = 1 << 20
_HEALTH_EVERY_S = 0.01


def _chat(messages: bytes, model: str = "openai/open") -> bytes:
    return b'{"model":%b,"max_tokens":20,"messages":%b}' % (json.dumps(model).encode(), messages)


def _said(text: bytes) -> bytes:
    return b'[{"role":"user","content":"' + text + b'"}]'


# Each by the number of bytes that it should have.
SHAPES: dict[str, Callable[[int], bytes]] = {
    "a long model name": lambda size: _chat(_said(b"x"), "openai/" + "m" * size),
    "many messages": lambda size: _chat(b"[" + b",".join([b'{"role":"user","content":"a"}'] * (size // 30)) + b"]"),
    "many parts": lambda size: _chat(
        b'[{"role":"user","content":[' + b",".join([b'{"type":"text","text":"a"}'] * (size // 27)) + b"]}]"
    ),
    "many tools": lambda size: (
        _chat(_said(b"x"))[:-1]
        + b',"tools":['
        + b",".join([b'{"type":"function","function":{"name":"f","parameters":{}}}'] * (size // 60))
        + b"]}"
    ),
    "deep nesting": lambda size: (
        _chat(_said(b"x"))[:-1] + b',"metadata":' + b"[" * (size // 2) + b"]" * (size // 2) + b"}"
    ),
    "numbers": lambda size: _chat(_said(b"x"))[:-1] + b',"metadata":[' + b"1," * (size // 2) + b"1]}",
    "commas in a text": lambda size: _chat(_said(b"1,[2],{3}" * (size // 9))),
    "escapes in a text": lambda size: _chat(_said(b"\\n\\u00e9,," * (size // 10))),
    "a long text": lambda size: _chat(_said(b"word and " * (size // 9))),
    "a string without an end": lambda size: b'{"model":"' + b'\\"' * (size // 2) + b",,",
}


class Seen(NamedTuple):
    """`statuses` of the answers; the slowest answer of /health, and how much processor time the gateway used before it
    gave that answer, which other programs on the machine do not change; the most memory that it held."""

    statuses: Counter[int]
    health_s: float
    busy_s: float
    memory: int


def attack(served: Served, bodies: list[bytes], path: str = "/v1/chat/completions") -> Seen:
    """Send them all at once, each on a connection of its own, and ask for /health meanwhile."""
    statuses: Counter[int] = Counter()
    waits: list[tuple[float, float]] = []
    done = threading.Event()

    def look() -> None:
        with socket.create_connection(("127.0.0.1", served.port)) as line:
            while not done.is_set():
                began, used = time.perf_counter(), processor_s(served)
                line.sendall(b"GET /health HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % served.port)
                assert b" 200 " in line.recv(65_536)
                waits.append((processor_s(served) - used, time.perf_counter() - began))
                time.sleep(_HEALTH_EVERY_S)

    def send(body: bytes) -> None:
        lines = (f"POST {path} HTTP/1.1", f"Host: localhost:{served.port}", "Content-Type: application/json")
        head = "\r\n".join((*lines, f"Content-Length: {len(body)}", "", ""))
        with socket.create_connection(("127.0.0.1", served.port)) as line:
            line.sendall(head.encode())
            line.sendall(body)
            statuses[int(line.recv(65_536).split(b" ")[1])] += 1

    senders = [threading.Thread(target=send, args=(body,)) for body in bodies]
    looker = threading.Thread(target=look)
    looker.start()
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    done.set()
    looker.join()
    return Seen(statuses, max(wait for _, wait in waits), max(busy for busy, _ in waits), most_memory(served))


def get(served: Served, path: str) -> bytes:
    with socket.create_connection(("127.0.0.1", served.port)) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost:{served.port}\r\nConnection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: line.recv(65_536), b""))


def processor_s(served: Served) -> float:
    """The processor time of all its threads so far."""
    threads = Path(f"/proc/{served.pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def most_memory(served: Served) -> int:
    """The most bytes that its process ever held."""
    status = Path(f"/proc/{served.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) << 10
