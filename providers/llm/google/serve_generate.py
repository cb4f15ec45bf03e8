"""The served side of Gemini's generateContent: a client's request becomes a call.

The model, and whether the answer is streamed, stand in the request's path; the gateway adds them as `model` and
`stream`. A field that no parameter of a call covers goes into `extra` unchanged. Turns: serve_turns; answers:
serve_answers. A client that streams without `alt=sse` gets a list of one whole answer. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ....engine.call import Call
from ..serve_dialect import Dialect, ServedRequest, refusing
from .serve_answers import CandidateStream, listed, listing, problem, whole
from .serve_fields import GeminiFields, camel
from .serve_schema import json_schema
from .serve_turns import FAMILY, choice_of, tools_of, turns_of

_READ = frozenset({"model", "stream", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig"})
# Labels for the caller's own bill, which change no answer.
_MEANINGLESS = frozenset({"labels"})
# Google's own filters, and requests about where and how fast to answer: other providers can do without them.
_SPARE = frozenset({"safetySettings", "serviceTier", "store"})
# Settings that other providers can do without: whether thoughts are shown, and values that are the defaults.
_SPARE_CONFIG = {"thinkingConfig": None, "responseModalities": ["TEXT"], "candidateCount": 1}
_COUNT_MAX = 8
_JSON, _PLAIN = "application/json", "text/plain"
_BUDGET_MOST = 999_999_999


@refusing
def read(request: Mapping[str, Any], named: Callable[[str], str]) -> ServedRequest:
    body = GeminiFields(request)
    model = body.text("model", "")
    if not model:
        raise body.refused("model", "unexpected model name format")
    is_streamed = body.boolean("stream") or False
    extra = body.others(_READ | _MEANINGLESS)
    choice = choice_of(body, extra)
    config = body.object("generationConfig", {})
    count = 1
    if config.has("candidateCount"):
        count = config.integer("candidateCount", 1, _COUNT_MAX) or 1
    settings, rest = _settings(config)
    spare = {name for name in extra if name in _SPARE}
    if rest:
        extra["generationConfig"] = rest
        if all(name in _SPARE_CONFIG and _SPARE_CONFIG[name] in (None, value) for name, value in rest.items()):
            spare.add("generationConfig")
    for name, value in extra.items():
        body.written(value, name)
    call = Call(
        named(model),
        turns_of(body),
        extra=extra or None,
        stream=is_streamed,
        tools=tools_of(body),
        tool_choice=choice,
        **settings,
    )
    return ServedRequest(call, model, is_streamed, count, spare=frozenset(spare))


def _settings(config: GeminiFields) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the call's own parameters, and the fields of generationConfig that they can't express."""
    settings: dict[str, Any] = {
        "temperature": config.number("temperature", 0),
        "max_tokens": config.integer("maxOutputTokens", 1),
        "top_p": config.number("topP", 0),
        "stop": config.texts("stopSequences", may_be_one=True),
        "seed": config.integer("seed"),
    }
    rest = config.others({"candidateCount", "temperature", "maxOutputTokens", "topP", "stopSequences", "seed"})
    settings["logprobs"] = _logprobs(config, rest)
    settings["json_schema"] = _schema(config, rest)
    settings["reasoning_effort"] = _thoughts(config, rest)
    return settings, rest


def _logprobs(config: GeminiFields, rest: dict[str, Any]) -> int | None:
    rest.pop("responseLogprobs", None)
    if not config.boolean("responseLogprobs"):
        return None
    rest.pop("logprobs", None)
    return config.integer("logprobs", 0) or 0


def _schema(config: GeminiFields, rest: dict[str, Any]) -> Mapping[str, Any] | None:
    """Returns the JSON schema of the answer, None if there is none. JSON of any shape and a choice among texts stay in
    `rest`: only Gemini can be asked for them."""
    kind = config.text("responseMimeType", "")
    names = [name for name in ("responseSchema", "responseJsonSchema") if config.has(name)]
    if kind in ("", _PLAIN) or (kind == _JSON and names):
        rest.pop("responseMimeType", None)
    if kind != _JSON or not names:
        return None
    if len(names) > 1:
        raise config.refused("responseJsonSchema", "only one of responseSchema and responseJsonSchema can be set")
    path, schema = config.path_to(names[0]), rest.pop(names[0])
    if not isinstance(schema, Mapping):
        raise config.wrong_type(path, "a schema", schema)
    config.written(schema, names[0])
    return json_schema(schema, path) if names[0] == "responseSchema" else schema


def _thoughts(config: GeminiFields, rest: dict[str, Any]) -> str | None:
    """Returns the reasoning effort: a level, a budget in tokens as a text, `none` for a budget of 0, or None. Requests
    to show thoughts, or to let the model choose their length, stay in `rest` for Gemini."""
    if not config.has("thinkingConfig"):
        return None
    thinking = config.object("thinkingConfig")
    others = thinking.others(() if thinking.boolean("includeThoughts") else {"includeThoughts"})
    effort = None
    if thinking.has("thinkingLevel"):
        level = camel(thinking.text("thinkingLevel")).lower()
        effort = level if level.isalpha() and level != "none" else None
    elif (budget := thinking.integer("thinkingBudget", -1)) is not None and 0 <= budget <= _BUDGET_MOST:
        effort = str(budget) if budget else "none"
    rest.pop("thinkingConfig")
    if others and (effort is None or len(others) > 1):
        rest["thinkingConfig"] = others
    return effort


DIALECT = Dialect(FAMILY, read, whole, CandidateStream, problem, listing, listed)
