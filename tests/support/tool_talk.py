"""A conversation with tools as OpenAI's clients hold it: two calls at once, a turn for each result, then the user."""

from __future__ import annotations

from typing import Any

from millstream.engine.call import Message
from millstream.engine.content import Image, Tool, ToolCall, ToolResult

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"place": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["place"],
}
WEATHER = Tool("get_weather", "The weather at a place.", SCHEMA)
CLOCK = Tool("get_time")
TOOLS = (WEATHER, CLOCK)
HERE, THERE = '{"place":"Köln","days":2}', '{"days":1,"place":"Bonn"}'
ASKED = (ToolCall("call_a1", "get_weather", HERE), ToolCall("call_b2", "get_weather", THERE))
RESULTS = (ToolResult("call_a1", "sunny"), ToolResult("call_b2", '{"rain":true}'))
TALK = (
    Message("system", "Be brief."),
    Message("user", "Where is it dry?"),
    Message("assistant", ("", *ASKED)),
    Message("tool", (RESULTS[0],)),
    Message("tool", (RESULTS[1],)),
    Message("user", "And now?"),
)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SHOWN = Image(f"data:image/png;base64,{PIXEL}", "high")
FAR = Image("https://one.example/a/picture.JPG?width=9")
