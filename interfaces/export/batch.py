"""A batch's output as records: each row with its note and its samples, decoded from its dialect.

Owns where each dialect's body has its text, its tool calls and its finish reason. Knows no table format.
"""

from __future__ import annotations

import os
import zlib
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson
from msgspec import UNSET

from ...bench.evaluation.running.record_lines import record_lines
from ...configuration.errors import UsageError
from ...engine.fault import DamagedJournal
from ...engine.folder_file import open_regular
from ...engine.runs.journal import is_intact, read_lines
from ...engine.runs.run_folder import FAILURES, RECORDS
from ..batch.place import BatchPlace
from ..batch.rows import TAG_CHARS, Note, line_of

_PREFIX_CHARS = len("batch_req_")


def rows_of_batch(place: BatchPlace) -> Iterator[dict[str, Any]]:
    """Yields the rows of the output, then those of its file of errors, as records. Without the folder beside the
    output, a record has only what the output says."""
    # A note is written before its row: a row added while we read may have a note that we have not read.
    sizes = {path: path.stat().st_size for path in place.files if path == place.out or path.exists()}
    notes = _NotePlaces(place.folder)
    try:
        for path, size in sizes.items():
            for number, row in enumerate(record_lines(path, size), 1):
                if row.strip():
                    yield _record_of(row, notes, f"{path} line {number}")
    finally:
        notes.close()


class _NotePlaces:
    """The position of each line's note in the two journals, in eight bytes a line for each journal."""

    def __init__(self, beside: Path) -> None:
        self._places: list[tuple[int, array[int]]] = []
        decode = msgspec.json.Decoder(Note).decode
        for name in (RECORDS, FAILURES):
            path, places, place = beside / name, array("Q"), 1
            if not path.exists():
                continue
            for at, line in enumerate(read_lines(path), 1):
                try:
                    number = decode(line).line
                    is_sound = is_intact(line, must_be_sealed=True)
                except (msgspec.MsgspecError, UnicodeError):
                    is_sound = False
                if not is_sound:
                    raise DamagedJournal(f"{path} line {at} is damaged: take it out, and what it tells is left empty")
                if number >= len(places):
                    places.extend(array("Q", bytes(8 * (number + 1 - len(places)))))
                places[number], place = place, place + len(line) + 1
            self._places.append((open_regular(path), places))
        self._decode = decode

    def of(self, line: int, row_crc: int, where: str) -> Note | None:
        is_known = False
        for fd, places in self._places:
            if line < len(places) and places[line]:
                note, is_known = self._decode(_line_at(fd, places[line] - 1)), True
                if note.row_crc == row_crc:
                    return note
        if is_known:
            raise DamagedJournal(
                f"{where} was changed: the same batch with --set-aside-damaged moves such lines away and asks for them "
                f"again"
            )
        return None

    def close(self) -> None:
        for fd, _ in self._places:
            os.close(fd)


def _line_at(fd: int, place: int) -> bytes:
    data = b""
    while b"\n" not in data:
        data += os.pread(fd, 1 << 12, place + len(data))
    return data[: data.index(b"\n")]


def _record_of(row: bytes, notes: _NotePlaces, where: str) -> dict[str, Any]:
    try:
        fields = orjson.loads(row)
        response, error = fields["response"] or {}, fields["error"]
        body = response.get("body") or {}
        name, custom_id, choices = fields["id"], fields["custom_id"], _choices_of(body)
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise UsageError(f"{where}: expected a row of a batch's output, got something else ({wrong})") from wrong
    if error is None and isinstance(body.get("error"), dict):
        details = body["error"]
        code = details.get("code") or details.get("type") or details.get("status")
        error = {
            "code": None if code is None else str(code),
            "message": details.get("message"),
            "param": details.get("param"),
        }
    line = line_of(row, str(name)[_PREFIX_CHARS:][:TAG_CHARS])
    status = "ok" if response.get("status_code") == 200 else (error or {}).get("code") or "failed"
    record = {
        "status": status,
        "id": name,
        "custom_id": custom_id,
        "line": line,
        "status_code": response.get("status_code"),
        "request_id": response.get("request_id"),
        "response_id": body.get("id", body.get("responseId")),
        "response_model": body.get("model", body.get("modelVersion")),
        "text": choices[0]["text"] if choices else None,
        "choices": choices,
        "error": error,
    }
    note = notes.of(line, zlib.crc32(row), where) if line is not None else None
    if note is not None:
        kept = {name: getattr(note, name) for name in Note.__struct_fields__ if name not in _NOT_KEPT}
        record |= {name: None if value is UNSET else value for name, value in kept.items()}
        record["keys"] = list(note.keys)
        record["usage"] = None if note.usage is None else msgspec.to_builtins(note.usage)
    return record


_NOT_KEPT = ("id", "line", "row_crc", "error")


def _choices_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns every sample of an answer, in any dialect, as text, finish reason and tool calls."""
    if "choices" in body:
        return [_of_chat(each) for each in body["choices"]]
    if "candidates" in body:
        return [_of_candidate(each) for each in body["candidates"]]
    if isinstance(body.get("output"), list):
        return [_of_items(body)]
    return [_of_blocks(body)] if isinstance(body.get("content"), list) else []


def _of_chat(choice: dict[str, Any]) -> dict[str, Any]:
    message = choice["message"]
    calls = [(call.get("id"), call.get("function") or {}) for call in message.get("tool_calls") or ()]
    tools = [_tool(name, function.get("name"), function.get("arguments")) for name, function in calls]
    text = message.get("content") if message.get("content") is not None else message.get("refusal")
    return {"text": text, "finish_reason": choice.get("finish_reason"), "tool_calls": tools}


def _of_candidate(candidate: dict[str, Any]) -> dict[str, Any]:
    parts = (candidate.get("content") or {}).get("parts") or ()
    texts = [part["text"] for part in parts if "text" in part and not part.get("thought")]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    tools = [_tool(call.get("id"), call.get("name"), orjson.dumps(call.get("args") or {}).decode()) for call in calls]
    return {"text": "".join(texts), "finish_reason": candidate.get("finishReason"), "tool_calls": tools}


def _of_items(body: dict[str, Any]) -> dict[str, Any]:
    parts = [part for item in body["output"] if item.get("type") == "message" for part in item.get("content") or ()]
    calls = [item for item in body["output"] if item.get("type") == "function_call"]
    tools = [_tool(call.get("call_id"), call.get("name"), call.get("arguments")) for call in calls]
    text = "".join(part.get("text") or part.get("refusal") or "" for part in parts)
    return {"text": text, "finish_reason": body.get("status"), "tool_calls": tools}


def _of_blocks(body: dict[str, Any]) -> dict[str, Any]:
    blocks = body["content"]
    calls = [block for block in blocks if block.get("type") == "tool_use"]
    tools = [_tool(call.get("id"), call.get("name"), orjson.dumps(call.get("input") or {}).decode()) for call in calls]
    text = "".join(block.get("text") or "" for block in blocks if block.get("type") == "text")
    return {"text": text, "finish_reason": body.get("stop_reason"), "tool_calls": tools}


def _tool(name: str | None, function: str | None, arguments: str | None) -> dict[str, Any]:
    return {"id": name, "name": function, "arguments": arguments}
