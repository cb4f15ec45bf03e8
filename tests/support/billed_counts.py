"""What answers count as read from a provider's cache, as written to it and as billed, and what is read of it."""

from __future__ import annotations

from typing import Any

from millstream.engine.call import Usage

_DETAILS = "prompt_tokens_details"
_CHAT = {"prompt_tokens": 36, "completion_tokens": 9}
_RESPONSE = {"input_tokens": 9, "output_tokens": 4}
_RETAINED = {"ttl_30m_tokens": 3, "ttl_12h_tokens": 2}
_CONVERSE = {"inputTokens": 19, "outputTokens": 22}
_WRITTEN: dict[str, Any] = {
    "input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 8,
    "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 6},
}  # fmt: skip

OPENAI: tuple[tuple[Any, Usage], ...] = (
    ({**_CHAT, _DETAILS: {"cached_tokens": 12, "cache_write_tokens": 20}}, Usage(36, 9, 0, 12, 20, None)),
    # More reads than the writes leave room for are no count.
    ({**_CHAT, _DETAILS: {"cached_tokens": 30, "cache_write_tokens": 20}}, Usage(36, 9, 0, 0, 20, None)),
    ({**_CHAT, "prompt_cache_hit_tokens": 4}, Usage(36, 9, 0, 4)),
    ({**_CHAT, "cost": 0.25, "cost_details": {"upstream_inference_cost": 19}}, Usage(36, 9, billed=0.25)),
    # With a provider's key of one's own, routers report their fee apart.
    (
        {**_CHAT, "cost": 0.25, "is_byok": True, "cost_details": {"upstream_inference_cost": 1.5}},
        Usage(36, 9, billed=1.75),
    ),
    ({**_CHAT, "cost": 0.25, "is_byok": True}, Usage(36, 9)),
    ({**_CHAT, "cost": {"total_cost": 0.25}}, Usage(36, 9)),
    ({**_CHAT, "cost": -1}, Usage(36, 9)),
)
RESPONSES: tuple[tuple[Any, Usage], ...] = (
    (
        {**_RESPONSE, "cost": 0.5, "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 5}},
        Usage(9, 4, 0, 3, 5, None, billed=0.5),
    ),
    (
        {**_RESPONSE, "input_tokens_details": {"cache_write_tokens": 5, "cache_write_tokens_details": _RETAINED}},
        Usage(9, 4, 0, 0, 3, 2),
    ),
)
ANTHROPIC: tuple[tuple[Any, Usage], ...] = (
    (_WRITTEN, Usage(14, 4, 0, 3, 2, 6)),
    ({**_WRITTEN, "inference_geo": "us"}, Usage(14, 4, 0, 3, 2, 6, place="us")),
    ({**_WRITTEN, "inference_geo": "not_available"}, Usage(14, 4, 0, 3, 2, 6)),
    (
        {name: count for name, count in _WRITTEN.items() if name != "cache_creation_input_tokens"},
        Usage(14, 4, 0, 3, 2, 6),
    ),
    ({name: count for name, count in _WRITTEN.items() if name != "cache_creation"}, Usage(14, 4, 0, 3, 8, None)),
    ({**_WRITTEN, "cache_creation": {"ephemeral_5m_input_tokens": 8}}, Usage(14, 4, 0, 3, 8, 0)),
    (
        {**_WRITTEN, "cache_creation": {"ephemeral_5m_input_tokens": 8, "ephemeral_1h_input_tokens": 0}},
        Usage(14, 4, 0, 3, 8, 0),
    ),
    # What compacting the context took is in the list of rounds alone.
    (
        {**_WRITTEN, "iterations": [{**_WRITTEN, "type": "compaction"}, {**_WRITTEN, "type": "message"}]},
        Usage(28, 8, 0, 6, 4, 12),
    ),
    ({**_WRITTEN, "iterations": [{"type": "compaction", "output_tokens": 9}]}, Usage(None, 13, 0, 3, 2, 6)),
)
BEDROCK: tuple[tuple[Any, Usage], ...] = (
    ({**_CONVERSE, "cacheWriteInputTokens": 48}, Usage(67, 22, 0, 0, 48, None)),
    (
        {**_CONVERSE, "cacheWriteInputTokens": 48, "cacheDetails": [{"ttl": "1h", "inputTokens": 40}]},
        Usage(67, 22, 0, 0, 8, 40),
    ),
    (
        {**_CONVERSE, "cacheWriteInputTokens": 48, "cacheDetails": [{"ttl": "5m", "inputTokens": 48}]},
        Usage(67, 22, 0, 0, 48, 0),
    ),
)
