"""A batch's output as records: each row with its note and its samples, decoded from its dialect.

Owns where each dialect's body has its text, its tool calls and its finish reason. Knows no table format.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson
from msgspec import UNSET

from ...bench.evaluation.running.record_lines import record_lines
from ...configuration.errors import UsageError
from ...engine.fault import DamagedJournal
from ..batch.notes import Notes
from ..batch.place import BatchPlace
from ..batch.rows import TAG_CHARS, Note, line_of

_PREFIX_CHARS = len("batch_req_")


def rows_of_batch(place: BatchPlace) -> Iterator[dict[str, Any]]:
    """Yields the rows of the output, then those of its file of errors, as records. Without the folder beside the
    output, a record has only what the output says."""
    # A note is written before its row: a row added while we read may have a note that we have not read.
    sizes = {path: path.stat().st_size for path in place.files if path == place.out or path.exists()}
    with Notes(place, _refuse) as notes:
        for path, size in sizes.items():
            for number, row in enumerate(record_lines(path, size), 1):
                if row.strip():
                    yield _record_of(row, notes, f"{path} line {number}")


def _refuse(path: Path, number: int, mistake: str) -> None:
    raise DamagedJournal(f"{path} line {number} is {mistake}: take it out, and what it tells is left empty")


def _record_of(row: bytes, notes: Notes, where: str) -> dict[str, Any]:
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
    match = None if line is None else notes.of(line, zlib.crc32(row))
    if line is not None and match is None and notes.is_known(line):
        raise DamagedJournal(
            f"{where} was changed: the same batch with --set-aside-damaged moves such lines away and asks for them "
            f"again"
        )
    if match is not None:
        _, note = match
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
