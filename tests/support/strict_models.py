"""A server with models that treat a temperature as their providers' pages say, on the paths of three protocols.

Anthropic's API from version 2026-10-21 on refuses sampling parameters; OpenAI's models from GPT-5.5 on refuse a
temperature unless their effort is `none`, and know no `max_tokens`; Gemini from 3.6 on ignores a temperature. Shares
nothing with the program.
"""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

NEWER_OPENAI = re.compile(r"gpt-(5\.[5-9]|[6-9])|new-")
JUDGEMENT = {
    "stance": "supportive",
    "key_claims": ["it is so"],
    "contradictions_acknowledged": False,
    "rationale": "It is clearly so.",
    "confidence": 0.9,
}


class Asked(NamedTuple):
    """One request: its model, what it sets, and whether it was refused."""

    model: str
    temperature: float | None
    max_tokens: int | None
    is_refused: bool


class StrictModels:
    """The server, in a thread of its own. `asked` has every request."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        models = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, answer = models.answer(self.path, str(self.headers.get("anthropic-version")), body)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> StrictModels:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def of(self, model: str) -> list[Asked]:
        return [each for each in self.asked if each.model == model.partition("/")[2]]

    def refused(self) -> list[Asked]:
        return [each for each in self.asked if each.is_refused]

    def answer(self, path: str, version: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path.endswith("/messages"):
            refusal = None
            if version >= "2026-10-21" and body.get("temperature") is not None:
                refusal = _anthropic_error("`temperature` is deprecated for this model.")
            self._note(body["model"], body.get("temperature"), body.get("max_tokens"), refusal)
            content = [{"type": "text", "text": _said(body)}]
            whole = {"id": "m", "type": "message", "role": "assistant", "model": body["model"], "content": content}
            return refusal or (200, {**whole, "stop_reason": "end_turn", "usage": _usage(body, "input", "output")})
        if path.endswith("/chat/completions"):
            refusal = _openai_refusal(body)
            self._note(body["model"], body.get("temperature"), body.get("max_tokens"), refusal)
            choice = {"index": 0, "message": {"role": "assistant", "content": _said(body)}, "finish_reason": "stop"}
            whole = {"id": "c", "object": "chat.completion", "model": body["model"], "choices": [choice]}
            return refusal or (200, {**whole, "usage": _usage(body, "prompt", "completion")})
        found = re.search(r"models/([^:]+):generateContent", path)
        assert found is not None, path
        settings = body.get("generationConfig", {})
        self._note(found[1], settings.get("temperature"), settings.get("maxOutputTokens"), None)
        candidate = {"content": {"role": "model", "parts": [{"text": _said(body)}]}, "finishReason": "STOP"}
        read = len(json.dumps(body)) // 4
        usage = {"promptTokenCount": read, "candidatesTokenCount": 20, "totalTokenCount": read + 20}
        return 200, {"candidates": [candidate], "usageMetadata": usage, "modelVersion": found[1]}

    def _note(self, model: str, temperature: float | None, max_tokens: int | None, refusal: object) -> None:
        self.asked.append(Asked(model, temperature, max_tokens, refusal is not None))


def _openai_refusal(body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
    if not NEWER_OPENAI.match(body["model"]):
        return None
    if "max_tokens" in body and not body["model"].startswith("new-"):
        return _openai_error(
            "max_tokens",
            "unsupported_parameter",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
            "instead.",
        )
    if body.get("temperature") not in (None, 1) and body.get("reasoning_effort") != "none":
        return _openai_error(
            "temperature",
            "unsupported_value",
            f"Unsupported value: 'temperature' does not support {body['temperature']} with this model. Only the "
            "default (1) value is supported.",
        )
    return None


def _openai_error(param: str, code: str, message: str) -> tuple[int, dict[str, Any]]:
    return 400, {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def _anthropic_error(message: str) -> tuple[int, dict[str, Any]]:
    return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


def _usage(body: dict[str, Any], read: str, written: str) -> dict[str, int]:
    return {f"{read}_tokens": len(json.dumps(body)) // 4, f"{written}_tokens": 20}


def _said(body: dict[str, Any]) -> str:
    """Returns the answer to a prompt of any of the benchmarks, or to its judge."""
    prompt = json.dumps(body)
    if "You grade an answer" in prompt:
        return '{"reason": "It is right.", "grade": "correct"}'
    if "contradictions_acknowledged" in prompt:
        return json.dumps(JUDGEMENT)
    return "aligned" if "does this response align" in prompt.lower() else "It is so [1]."
