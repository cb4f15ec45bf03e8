"""Batch files made for tests, with broken lines among the sound ones, and the rows that came of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# What a line can have wrong, each with the code that its row must tell. `{n}` is the line's number.
BROKEN: tuple[tuple[bytes, str], ...] = (
    (b'{"custom_id": "x', "invalid_json_line"),
    (b"[1, 2]", "invalid_json_line"),
    (b"NaN", "invalid_json_line"),
    (b'{"custom_id": "\xff\xfe"}', "invalid_json_line"),
    (b'{"custom_id": "\\ud800", "method": "POST"}', "invalid_json_line"),
    (b'{"method": "POST", "url": "/v1/chat/completions", "body": {}}', "missing_required_parameter"),
    (b'{"custom_id": "a{n}", "url": "/v1/chat/completions", "body": {}}', "missing_required_parameter"),
    (b'{"custom_id": "b{n}", "method": "POST", "url": "/v1/chat/completions"}', "missing_required_parameter"),
    (b'{"custom_id": 7, "method": "POST", "url": "/v1/chat/completions", "body": {}}', "invalid_custom_id"),
    (b'{"custom_id": "", "method": "POST", "url": "/v1/chat/completions", "body": {}}', "invalid_custom_id"),
    (b'{"custom_id": "c{n}", "method": "GET", "url": "/v1/chat/completions", "body": {}}', "invalid_method"),
    (b'{"custom_id": "d{n}", "method": "POST", "url": "/v1/embeddings", "body": {}}', "invalid_url"),
    (b'{"custom_id": "e{n}", "method": "POST", "url": 7, "body": {}}', "invalid_url"),
    (b'{"custom_id": "f{n}", "method": "POST", "url": "/v1/chat/completions", "body": "x"}', "invalid_body"),
    (b'{"custom_id": "g{n}", "method": "POST", "url": "/v1/chat/completions", "body": {}}', "invalid_request"),
    (b'{"custom_id": "h{n}", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "nobody/x", '
     b'"messages": [{"role": "user", "content": "x"}]}}', "model_not_found"),
    (b'{"custom_id": "first", "method": "POST", "url": "/v1/chat/completions", "body": {}}', "duplicate_custom_id"),
)  # fmt: skip


def request(custom_id: str, prompt: str, model: str = "sim/steady", **more: Any) -> dict[str, Any]:
    body = {"model": model, "messages": [{"role": "user", "content": prompt}], **more}
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}


def line(custom_id: str, prompt: str, **more: Any) -> bytes:
    return json.dumps(request(custom_id, prompt, **more)).encode() + b"\n"


def write_sound(path: Path, count: int) -> Path:
    """`count` different questions."""
    path.write_bytes(b"".join(line(f"r{n}", f"Question {n}: A or B?") for n in range(1, count + 1)))
    return path


def write_mixed(path: Path, count: int, broken_every: int = 20) -> dict[int, str]:
    """`count` lines, every so many of them broken: which, and the code of each."""
    codes: dict[int, str] = {}
    with path.open("wb") as file:
        file.write(line("first", "The first question: A or B?"))
        for number in range(2, count + 1):
            if number % broken_every:
                file.write(line(f"r{number}", f"Question {number}: A or B?"))
                continue
            data, codes[number] = BROKEN[number // broken_every % len(BROKEN)]
            file.write(data.replace(b"{n}", str(number).encode()) + b"\n")
    return codes


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(row) for row in path.read_bytes().splitlines()] if path.exists() else []


def ids_of(path: Path) -> list[str]:
    return [row["custom_id"] for row in rows_of(path)]


def text_of(row: dict[str, Any]) -> str:
    text: str = row["response"]["body"]["choices"][0]["message"]["content"]
    return text
