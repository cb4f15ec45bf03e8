"""Outcomes of calls in Inspect's form: an output with its message, or the error of a sample.

Parts that only one protocol has are kept beside the text, under our name, so that the next turn can send them back.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    Content,
    ContentData,
    ContentReasoning,
    ContentText,
    Logprob,
    Logprobs,
    ModelCall,
    ModelOutput,
    ModelUsage,
    StopReason,
    TopLogprob,
)
from inspect_ai.model._call_tools import parse_tool_call  # as Inspect's own providers read a tool's arguments
from inspect_ai.tool import ToolInfo

from ...engine.call import Outcome, Reply, TokenLogprob
from ...engine.content import Native
from ...providers.llm.families import parts_for
from .inspect_asking import OURS

_STOP_REASONS: Mapping[str, StopReason] = {
    "stop": "stop",
    "length": "max_tokens",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
}
_TOO_LONG = re.compile(
    r"context_length_exceeded|maximum context length|prompt is too long|input is too long|maximum number of tokens"
    r"|exceeds? (?:the )?context (?:limit|length|window|size)",
    re.IGNORECASE,
)


class InspectCallError(Exception):
    """Raised for a call that failed after its retries. Inspect tells errors apart by their messages; `status`: the HTTP
    status, None: there was none."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status_code = status


def output_of(outcomes: Sequence[Outcome], tools: Sequence[ToolInfo]) -> ModelOutput:
    """Returns one Inspect output with all samples. Raises InspectCallError if one of them failed."""
    model = outcomes[0].call.model
    choices = []
    for outcome in outcomes:
        if outcome.failure is not None:
            if _TOO_LONG.search(outcome.failure.detail) and outcome.failure.kind == "rejected":
                return ModelOutput.from_content(model, outcome.failure.detail, "model_length")
            raise InspectCallError(f"{model}: {outcome.failure.kind}: {outcome.failure.detail}", outcome.failure.status)
        assert outcome.reply is not None
        choices.append(_choice_of(outcome.reply, model, tools))
    return ModelOutput(
        model=model,
        choices=choices,
        usage=_usage_of(outcomes),
        metadata={OURS: [_metadata_of(outcome) for outcome in outcomes]},
        error=next((outcome.reply.text for outcome in outcomes if outcome.reply and outcome.reply.refused), None),
    )


def record_of(outcomes: Sequence[Outcome]) -> ModelCall:
    """Returns how the calls were made, for Inspect's log. Their texts are in the log already."""
    first = outcomes[0]
    request = {"model": first.call.model, "trials": [outcome.call.trial for outcome in outcomes]}
    taken = [outcome.latency_ms for outcome in outcomes if outcome.latency_ms is not None]
    seconds = max(taken) / 1000 if taken and not any(outcome.cached for outcome in outcomes) else None
    return ModelCall.create(request, {"calls": [_metadata_of(outcome) for outcome in outcomes]}, time=seconds)


def _metadata_of(outcome: Outcome) -> dict[str, Any]:
    names = ("key", "cached", "attempts", "maybe_billed", "cost")
    return {"trial": outcome.call.trial, **{name: getattr(outcome, name) for name in names}}


def _choice_of(reply: Reply, model: str, tools: Sequence[ToolInfo]) -> ChatCompletionChoice:
    called = [parse_tool_call(call.id, call.name, call.arguments, list(tools)) for call in reply.tool_calls]
    message = ChatMessageAssistant(
        content=_content_of(reply), tool_calls=called or None, model=model, source="generate"
    )
    logprobs = None if reply.logprobs is None else Logprobs(content=[_logprob_of(each) for each in reply.logprobs])
    stop_reason = "content_filter" if reply.refused else _STOP_REASONS.get(reply.finish_reason or "", "unknown")
    return ChatCompletionChoice(message=message, stop_reason=stop_reason, logprobs=logprobs)


def _content_of(reply: Reply) -> str | list[Content]:
    contents: list[Content] = []
    for part in reply.parts:
        if isinstance(part, str):
            contents.append(ContentText(text=part))
        elif isinstance(part, Native):
            contents.append(_kept(part))
    for call in reply.tool_calls:
        if call.native is not None:
            contents.append(ContentData(data={OURS: {**_whole(call.native), "tool_call": call.id}}))
    if all(isinstance(content, ContentText) and content.internal is None for content in contents):
        return reply.text
    return contents


def _whole(native: Native) -> dict[str, Any]:
    return {"protocol": native.protocol, "value": dict(native.value)}


def _kept(native: Native) -> Content:
    thought = _thought_in(native.value)
    if thought is not None:
        return ContentReasoning(reasoning=thought, redacted=not thought, internal={OURS: _whole(native)})
    words = "".join(part for part in parts_for((native,), "") if isinstance(part, str))
    if words:
        return ContentText(text=words, internal={OURS: _whole(native)})
    return ContentData(data={OURS: _whole(native)})


def _thought_in(value: Mapping[str, Any]) -> str | None:
    """Returns the text of a thought in any protocol; empty if it is hidden, None if the block is no thought."""
    for name in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(value.get(name), str):
            return str(value[name])
    if value.get("thought") is True:
        return str(value.get("text") or "")
    if isinstance(inner := value.get("reasoningContent"), Mapping):
        thought = inner.get("reasoningText")
        return str(thought.get("text") or "") if isinstance(thought, Mapping) else ""
    if value.get("type") in ("reasoning", "redacted_thinking"):
        summaries = value.get("summary")
        texts = [each.get("text") for each in summaries or () if isinstance(each, Mapping)]
        return "\n".join(text for text in texts if isinstance(text, str))
    return None


def _logprob_of(token: TokenLogprob) -> Logprob:
    top = [TopLogprob(token=word, logprob=value) for word, value in token.top]
    return Logprob(token=token.token, logprob=token.logprob, top_logprobs=top or None)


def _usage_of(outcomes: Sequence[Outcome]) -> ModelUsage | None:
    total: ModelUsage | None = None
    for outcome in outcomes:
        usage = outcome.reply.usage if outcome.reply is not None else None
        if usage is None or usage.input is None or usage.output is None:
            continue
        # Inspect counts what the provider had in its prompt cache apart from the rest of the input.
        one = ModelUsage(
            input_tokens=usage.input - usage.cached_input - usage.cache_written,
            output_tokens=usage.output,
            total_tokens=usage.input + usage.output,
            input_tokens_cache_write=usage.cache_written or None,
            input_tokens_cache_read=usage.cached_input or None,
            reasoning_tokens=usage.reasoning or None,
            total_cost=outcome.cost,
        )
        total = one if total is None else total + one
    return total
