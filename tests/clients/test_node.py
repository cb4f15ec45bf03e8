"""The official clients on node, OpenAI's and Anthropic's, as they are, through the gateway to three families.

Each is one script under tests/node, run twice: once for all it reads, once to break a slow stream off.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mocks import why_no_aimock
from served import (
    AGAIN,
    ASKED,
    BEHIND,
    HELLO,
    KOELN,
    RAIN,
    SKY,
    SYSTEM,
    TOKEN,
    TOWN,
    WEATHER_SCHEMA,
    Behind,
    Place,
    Served,
)

NODE = Path(__file__).parents[1] / "node"
MODEL = "lab/steady"
TEXTS = (SYSTEM, HELLO, "Hello.", AGAIN)
ERRORS: dict[str, dict[str, Any]] = {
    "a wrong key": {"model": MODEL, "key": "token-of-nobody"},
    "a model that it may not ask": {"model": MODEL, "key": "token-of-a-narrow"},
    "a provider that there is not": {"model": "nobody/m"},
    "a parameter that is none": {"model": MODEL, "temperature": "hot"},
    "no money left": {"model": MODEL, "key": "token-of-a-poor"},
    "a provider without a key": {"model": "gemini/gemini-3-flash"},
}
RAISED: dict[str, list[list[Any]]] = {
    "openai": [
        ["AuthenticationError", 401, "invalid_api_key"],
        ["PermissionDeniedError", 403, "insufficient_permissions"],
        ["NotFoundError", 404, "model_not_found"],
        ["BadRequestError", 400, "invalid_type"],
        ["RateLimitError", 429, "insufficient_quota"],
        ["InternalServerError", 503, "not_configured"],
    ],
    "anthropic": [
        ["AuthenticationError", 401, "authentication_error"],
        ["PermissionDeniedError", 403, "permission_error"],
        ["NotFoundError", 404, "not_found_error"],
        ["BadRequestError", 400, "invalid_request_error"],
        ["PaymentRequiredError", 402, "billing_error"],
        ["ServiceUnavailableError", 503, "overloaded_error"],
    ],
}
ENDS = {"openai": ("stop", "tool_calls"), "anthropic": ("end_turn", "tool_use")}
PLACE_SCHEMA = {**Place.model_json_schema(), "additionalProperties": False}


def why_no_clients() -> str:
    if shutil.which("node") is None:
        return "node is not installed"
    return "" if (NODE / "node_modules" / "openai").exists() else "`make tools` has not installed tests/node"


pytestmark = pytest.mark.skipif(bool(why_no_clients()), reason=why_no_clients() or "they can be used")
in_each = pytest.mark.parametrize("client", ["openai", "anthropic"])


def families() -> dict[str, Behind]:
    return {name: one for name, one in BEHIND.items() if not (one.is_mock and why_no_aimock())}


def run(gateway: Served, client: str, token: str = TOKEN, **more: Any) -> Any:
    scenes = {
        "system": SYSTEM,
        "hello": HELLO,
        "again": AGAIN,
        "sky": SKY,
        "town": TOWN,
        "rain": RAIN,
        "weather": WEATHER_SCHEMA,
        "place": PLACE_SCHEMA,
        "behind": {},
        "errors": {},
        **more,
    }
    command = ["node", str(NODE / f"{client}.mjs"), gateway.origin, token, json.dumps(scenes)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@in_each
def test_conversations_tools_and_shapes_come_through_whole_and_streamed(gateway: Served, client: str) -> None:
    behind = families()
    asked = {name: {"chat": one.chat, "tools": one.tools, "json": one.json} for name, one in behind.items()}
    found = run(gateway, client, behind=asked)
    stop, called = ENDS[client]
    for name, one in behind.items():
        wanted = {
            "said": one.says(*TEXTS),
            "end": stop,
            "counts": list(one.counts(*TEXTS)),
            "called": [called, "get_weather", ASKED],
            "told": one.tells_weather,
            "place": KOELN.model_dump(),
        }
        if client == "openai":
            wanted["responded"] = one.says(SYSTEM, HELLO)
        assert found["models"][name] == {"whole": wanted, "streamed": wanted}
    assert "claude-word" in found["listed"]


@in_each
def test_an_error_is_thrown_as_the_clients_own_class_and_sent_once(gateway: Served, client: str) -> None:
    before = gateway.requests()
    found = run(gateway, client, errors=ERRORS)
    assert found["errors"] == dict(zip(ERRORS, RAISED[client], strict=True))
    # The list of models is none that counts.
    assert gateway.requests() == before + len(ERRORS)


@in_each
def test_a_stream_that_is_aborted_ends_its_call(gateway: Served, client: str) -> None:
    gateway.provider.reset()
    gateway.provider.set_faults("slow_body=12")
    try:
        summary = f"{gateway.provider.address}/sim/summary?window_s=0"
        slow = {"text": f"told slowly to {client}", "model": MODEL, "summary": summary}
        found = run(gateway, client, slow=slow)
    finally:
        gateway.provider.set_faults()
    # Seen while the client still runs: its end would close its connections in any case.
    assert found["slow"]["aborted"] is True and found["slow"]["before"] == 1
    assert found["slow"]["freed_ms"] < 5_000
    assert gateway.provider.calls() == 1
