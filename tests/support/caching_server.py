"""A provider that caches prompts, sells tiers of service and thinks, and bills each of these at a price of its own.

As billing_server, it shares nothing with the program. What stands in its cache is forgotten at random, so that prompts
are read and written again and again. Bills are whole numbers: a millionth of a dollar is a million units.
"""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any

from billing_server import BillingServer, tokens_of

# Units a token: plain input, a read, a write for five minutes and for an hour, and output.
PLAIN, READ, WRITE, HOUR, OUTPUT = 2_000_000, 100_000, 2_500_000, 4_000_000, 10_000_000
# In prompts above this all input costs twice as much, and output half as much again.
LONG = 1_500
# Twice the factor of each tier.
TIERS = {"default": 2, "standard": 2, "flex": 1, "priority": 4, "fast": 4}
THOUGHTS, WORDS = 60, 30
_TIER_FIELDS = ("service_tier", "serviceTier", "speed")
_REFUSED = b'{"error": {"code": "resource_unavailable", "message": "Resource Unavailable", "type": "error"}}'


class CachingServer(BillingServer):
    """The provider. `seed`: of what it forgets. Its flex tier has no room for the share `full` of calls, answers the
    share `slow` too late, and its priority is standard for the share `downgraded`. `default`: the tier of calls that
    name none. `says_tier`: whether answers name theirs."""

    def __init__(
        self,
        seed: int,
        *,
        full: float = 0.0,
        slow: float = 0.0,
        downgraded: float = 0.2,
        default: str = "default",
        says_tier: bool = True,
    ) -> None:
        super().__init__()
        self.units = 0
        self.refused = self.late = 0
        self._default, self._says_tier = default, says_tier
        self.tiers: dict[str, int] = {}
        self._chance = Random(seed)
        self._shares = (full, slow, downgraded)
        self._cached: set[str] = set()

    @property
    def bill(self) -> float:
        """What is to be paid, in dollars."""
        return self.units / 1e12

    async def _answered(self, path: str, body: dict[str, Any]) -> tuple[int, bytes, str]:
        full, slow, downgraded = self._shares
        tier = body.get("speed") or body.get("service_tier") or body.get("serviceTier") or self._default
        if tier == "flex" and self._chance.random() < full:
            self.refused += 1
            return 429, _REFUSED, "application/json"
        if tier == "priority" and self._chance.random() < downgraded:
            tier = "default"
        endings = {"chat/completions": _chat, "responses": _responses, "messages": _messages}
        shape = next((shape for ending, shape in endings.items() if path.endswith(ending)), _gemini)
        read, brief, hour, rest = self._parts_of(body, shape)
        is_long = read + brief + hour + rest > LONG
        asked = read * READ + brief * WRITE + hour * HOUR + rest * PLAIN
        given = (THOUGHTS + WORDS) * OUTPUT
        # Billed when it is received: whoever hangs up pays all the same.
        self.units += (2 * asked + given * 3 // 2 if is_long else asked + given) * TIERS[tier] // 2
        self.calls += 1
        self.tiers[tier] = self.tiers.get(tier, 0) + 1
        if tier == "flex" and self._chance.random() < slow:
            self.late += 1
            await asyncio.sleep(30)
        answer, events = shape(read, brief, hour, rest, tier if self._says_tier else "")
        if not body.get("stream") and "streamGenerateContent" not in path:
            return 200, json.dumps(answer).encode(), "application/json"
        stream = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
        return 200, stream, "text/event-stream"

    def _parts_of(self, body: dict[str, Any], shape: Any) -> tuple[int, int, int, int]:
        """What of the prompt is read, written for five minutes, written for an hour, and neither."""
        total = tokens_of({name: value for name, value in body.items() if name not in _TIER_FIELDS})
        if shape is not _messages:
            # It caches by itself, all that stands before the last turn.
            turns = body.get("messages") or body.get("input") or body["contents"]
            prefix = json.dumps(turns[:-1])
            size = tokens_of({"turns": turns[:-1]}) - 10
            if self._has(prefix):
                return size, 0, 0, total - size
            return 0, 0 if shape is _gemini else size, 0, total - (0 if shape is _gemini else size)
        read = brief = hour = 0
        for turn in body["messages"]:
            for block in turn["content"] if isinstance(turn["content"], list) else ():
                if (mark := block.get("cache_control")) is not None:
                    size = len(block["text"]) // 4
                    if self._has(block["text"]):
                        read += size
                    elif mark.get("ttl") == "1h":
                        hour += size
                    else:
                        brief += size
        return read, brief, hour, total - read - brief - hour

    def _has(self, prefix: str) -> bool:
        if prefix in self._cached and self._chance.random() < 0.6:
            return True
        self._cached.add(prefix)
        return False


def _chat(read: int, brief: int, hour: int, rest: int, tier: str) -> tuple[Any, list[Any]]:
    usage = {
        "prompt_tokens": read + brief + rest,
        "completion_tokens": THOUGHTS + WORDS,
        "total_tokens": read + brief + rest + THOUGHTS + WORDS,
        "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": brief},
        "completion_tokens_details": {"reasoning_tokens": THOUGHTS},
    }
    end = {"index": 0, "finish_reason": "stop"}
    whole = {"choices": [{**end, "message": {"role": "assistant", "content": "A"}}], "usage": usage}
    last = {"choices": [], "usage": usage, "service_tier": tier}
    return {**whole, "service_tier": tier}, [{"choices": [{**end, "delta": {"content": "A"}}]}, last]


def _responses(read: int, brief: int, hour: int, rest: int, tier: str) -> tuple[Any, list[Any]]:
    usage = {
        "input_tokens": read + brief + rest,
        "output_tokens": THOUGHTS + WORDS,
        "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": brief},
        "output_tokens_details": {"reasoning_tokens": THOUGHTS},
    }
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A"}]}
    whole = {"status": "completed", "output": [item], "usage": usage, "service_tier": tier}
    return whole, [{"type": "response.completed", "response": whole}]


def _messages(read: int, brief: int, hour: int, rest: int, tier: str) -> tuple[Any, list[Any]]:
    usage = {
        "input_tokens": rest,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": brief + hour,
        "cache_creation": {"ephemeral_5m_input_tokens": brief, "ephemeral_1h_input_tokens": hour},
        "output_tokens": THOUGHTS + WORDS,
        "output_tokens_details": {"thinking_tokens": THOUGHTS},
        "service_tier": "standard",
        "speed": "fast" if tier == "fast" else "standard",
    }
    last = {name: usage[name] for name in ("output_tokens", "output_tokens_details")}
    head = {"type": "message", "role": "assistant", "content": [], "usage": {**usage, "output_tokens": 1}}
    whole = {**head, "content": [{"type": "text", "text": "A"}], "usage": usage, "stop_reason": "end_turn"}
    events = [
        {"type": "message_start", "message": head},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "A"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": last},
        {"type": "message_stop"},
    ]
    return whole, events


def _gemini(read: int, brief: int, hour: int, rest: int, tier: str) -> tuple[Any, list[Any]]:
    usage = {
        "promptTokenCount": read + rest,
        "cachedContentTokenCount": read,
        "candidatesTokenCount": WORDS,
        "thoughtsTokenCount": THOUGHTS,
        "totalTokenCount": read + rest + WORDS + THOUGHTS,
        "serviceTier": tier,
    }
    said = {"content": {"parts": [{"text": "A"}], "role": "model"}, "finishReason": "STOP"}
    whole = {"candidates": [said], "usageMetadata": usage}
    return whole, [whole]
