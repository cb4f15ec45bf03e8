"""Inspect's messages, tools and settings as a call.

Only settings that were given are sent. One without a field in a call goes into the body if the model's protocol has a
word for it; else it is an error, since an evaluation must not run with less than was set. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    Content,
    ContentData,
    ContentImage,
    ContentReasoning,
    ContentText,
    ContentToolUse,
    GenerateConfig,
)
from inspect_ai.tool import ToolChoice, ToolFunction, ToolInfo

from ...configuration.errors import UsageError
from ...engine.call import Call, Message
from ...engine.content import Image, Native, Part, Tool, ToolCall, ToolResult

# What Inspect keeps for us in a part of a message, under this name.
OURS = "millstream"

# Settings that shape answers and that no field of a call covers, with the protocols that have a field for them.
_IN_THE_BODY: Mapping[str, tuple[str, ...]] = {
    "frequency_penalty": ("openai", "openai-completions"),
    "presence_penalty": ("openai", "openai-completions"),
    "logit_bias": ("openai", "openai-completions"),
    "top_k": ("openai", "openai-completions", "anthropic"),
    "best_of": ("openai", "openai-completions"),
    "verbosity": ("openai",),
    "prompt_logprobs": (),
    "effort": (),
    "reasoning_mode": (),
    "reasoning_tokens": (),
    "reasoning_summary": (),
    "modalities": (),
    "fallback_models": (),
    "extra_headers": (),
}

# Providers that accept only their own kind of schema in strict mode: unless Inspect asks for strict, the schema is sent
# as not strict.
_LOOSE: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "openai": lambda told: {"response_format": {"type": "json_schema", "json_schema": told}},
    "openai-responses": lambda told: {"text": {"format": {"type": "json_schema", **told}}},
}


def call_of(
    model: str,
    family: str,
    messages: Sequence[ChatMessage],
    tools: Sequence[ToolInfo],
    tool_choice: ToolChoice,
    config: GenerateConfig,
) -> Call:
    schema, extra = _schema_of(config), _extra_of(model, family, config)
    if schema is not None and family in _LOOSE and not (config.response_schema and config.response_schema.strict):
        extra, schema = {**_LOOSE[family](_format_of(schema)), **extra}, None
    return Call(
        model,
        tuple(_message_of(message, family, model) for message in messages),
        temperature=config.temperature,
        max_tokens=config.max_tokens,
        top_p=config.top_p,
        stop=tuple(config.stop_seqs) if config.stop_seqs else None,
        seed=config.seed,
        extra=extra or None,
        reasoning_effort=config.reasoning_effort,
        json_schema=schema,
        logprobs=(config.top_logprobs or 0) if config.logprobs else None,
        tools=tuple(map(_tool_of, tools)) or None,
        tool_choice=_choice_of(tool_choice) if tools else None,
        parallel_tools=config.parallel_tool_calls if tools else None,
    )


def _message_of(message: ChatMessage, family: str, model: str) -> Message:
    if isinstance(message, ChatMessageTool):
        return Message("tool", (_result_of(message, model),))
    if not isinstance(message, ChatMessageAssistant):
        return Message(message.role, _plain(_parts(message.content_list, family, model)))
    parts = list(_parts(message.content_list, family, model))
    natives = _natives_of_tools(message.content_list, family)
    for call in message.tool_calls or ():
        parts.append(ToolCall(call.id, call.function, json.dumps(call.arguments), natives.get(call.id)))
    return Message("assistant", _plain(parts))


def _plain(parts: Iterable[Part]) -> str | tuple[Part, ...]:
    """Returns a single text as a string, and an empty turn as an empty string."""
    kept = tuple(part for part in parts if part != "")
    if not kept:
        return ""
    return kept[0] if len(kept) == 1 and isinstance(kept[0], str) else kept


def _parts(contents: Iterable[Content], family: str, model: str) -> Iterable[Part]:
    for content in contents:
        match content:
            case ContentText():
                yield _native_of(content.internal, family) or content.text
            case ContentImage():
                yield _image_of(content)
            case ContentReasoning():
                # Another provider's thoughts become plain text, as in Inspect's own providers.
                yield _native_of(content.internal, family) or content.text
            case ContentData():
                if (native := _native_of(content.data, family)) is not None and "tool_call" not in _ours(content.data):
                    yield native
            case ContentToolUse():
                pass  # what another provider's own tools did is part of its text
            case _:
                raise UsageError(
                    f"{model} can't be sent {content.type} through millstream: expected text, images and tools"
                )


def _image_of(content: ContentImage) -> Image:
    return Image(content.image, {"auto": None, "original": "high"}.get(content.detail, content.detail))


def _result_of(message: ChatMessageTool, model: str) -> ToolResult:
    name, called = message.function or "", message.tool_call_id or ""
    if message.error is not None:
        return ToolResult(called, f"Error: {message.error.message}", name, is_error=True)
    parts: list[str | Image] = []
    for content in message.content_list:
        if isinstance(content, ContentImage):
            parts.append(_image_of(content))
        elif isinstance(content, ContentText):
            parts.append(content.text)
        else:
            raise UsageError(
                f"{model} can't be sent {content.type} as a tool's result: expected texts and images from {name}"
            )
    is_text = all(isinstance(each, str) for each in parts)
    return ToolResult(called, message.text if is_text else tuple(parts), name)


def _ours(kept: object) -> Mapping[str, Any]:
    fields = kept.get(OURS) if isinstance(kept, dict) else None
    return fields if isinstance(fields, dict) else {}


def _native_of(kept: object, family: str) -> Native | None:
    """Returns the provider's own form of an earlier answer; None if it was not given in this model's protocol."""
    ours = _ours(kept)
    return Native(family, ours["value"]) if ours.get("protocol") == family else None


def _natives_of_tools(contents: Iterable[Content], family: str) -> dict[str, Native]:
    return {
        _ours(content.data)["tool_call"]: native
        for content in contents
        if isinstance(content, ContentData)
        and "tool_call" in _ours(content.data)
        and (native := _native_of(content.data, family)) is not None
    }


def _tool_of(tool: ToolInfo) -> Tool:
    return Tool(tool.name, tool.description, tool.parameters.model_dump(exclude_none=True))


def _choice_of(choice: ToolChoice) -> str | None:
    """Returns the choice of tools; None for `auto`, which is every provider's default."""
    if isinstance(choice, ToolFunction):
        return choice.name
    return {"auto": None, "any": "required", "none": "none"}[choice]


def _schema_of(config: GenerateConfig) -> dict[str, Any] | None:
    schema = config.response_schema
    if schema is None:
        return None
    # The title is the name that is sent to providers.
    return {"title": schema.name, **schema.json_schema.model_dump(exclude_none=True)}


def _format_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": schema["title"], "schema": {name: value for name, value in schema.items() if name != "title"}}


def _extra_of(model: str, family: str, config: GenerateConfig) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    for name, families in _IN_THE_BODY.items():
        value = getattr(config, name)
        if not value and value != 0:
            continue
        if family not in families:
            raise UsageError(
                f"{model} can't be told {name} ({value}) through millstream: leave it out, or say it in the provider's "
                f"own words in extra_body"
            )
        extra[name] = {str(token): bias for token, bias in value.items()} if name == "logit_bias" else value
    return extra | (config.extra_body or {})
