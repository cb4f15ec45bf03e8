"""Gemini's generateContent as its servers speak it: a client's request becomes a call.

The model and whether the answer is streamed stand in the request's path: whoever read that has put them in as `model`
and `stream`. What no field of a call covers goes into `extra` in Google's own words. What is said: gemini_turns; what
clients get: gemini_answers. A client that streams without `alt=sse` wants a list that holds one whole answer. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...engine.call import Call
from .dialect import Asked, Dialect, Refused
from .gemini_answers import listed, listing, problem, stream, whole
from .gemini_fields import camel, fields, flag, number, refuse, refuse_value, text, texts, whole_number, written
from .gemini_schema import json_schema
from .gemini_turns import choice_of, tools_of, turns_of

_READ = frozenset({"model", "stream", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig"})
# Words for the caller's own bill: no answer is another for them.
_MEANINGLESS = frozenset({"labels"})
# Filters of Google's that no other has, and where and how fast it shall be answered.
_SPARE = frozenset({"safetySettings", "serviceTier", "store"})
# What of an answer's settings others can do without: whether thoughts are told, and what answers are anyway.
_SPARE_CONFIG = {"thinkingConfig": None, "responseModalities": ["TEXT"], "candidateCount": 1}
_COUNT_MAX = 8
_JSON, _PLAIN = "application/json", "text/plain"
_BUDGET_MOST = 999_999_999


def read(body: Mapping[str, Any], known: Callable[[str], str]) -> Asked:
    try:
        return _read(fields(body, "body"), known)
    except (TypeError, ValueError) as error:
        # What a call itself refuses, such as text that no bytes can hold.
        raise Refused(str(error)) from error


def _read(body: dict[str, Any], known: Callable[[str], str]) -> Asked:
    model = text(body.get("model", ""), "model")
    if not model:
        refuse("model", "unexpected model name format")
    is_streamed = flag(body.get("stream", False), "stream")
    extra = {name: value for name, value in body.items() if name not in _READ and name not in _MEANINGLESS}
    choice = choice_of(body, extra)
    config = fields(body.get("generationConfig", {}), "generationConfig")
    count = whole_number(config.pop("candidateCount", 1), "generationConfig.candidateCount", 1)
    if count > _COUNT_MAX:
        refuse("generationConfig.candidateCount", f"{count} is out of range: it must be at most {_COUNT_MAX}")
    settings = _settings(config)
    spare = {name for name in extra if name in _SPARE}
    if config:
        extra["generationConfig"] = config
        if all(name in _SPARE_CONFIG and _SPARE_CONFIG[name] in (None, value) for name, value in config.items()):
            spare.add("generationConfig")
    for name, value in extra.items():
        written(value, name)
    call = Call(
        known(model),
        turns_of(body),
        extra=extra or None,
        stream=is_streamed,
        tools=tools_of(body),
        tool_choice=choice,
        **settings,
    )
    return Asked(call, model, is_streamed, count, spare=frozenset(spare))


def _settings(config: dict[str, Any]) -> dict[str, Any]:
    """The call's own parameters, taken out of what stands in generationConfig."""
    settings: dict[str, Any] = {}

    def take(name: str, ours: str, reader: Callable[[Any, str], Any]) -> None:
        if name in config:
            settings[ours] = reader(config.pop(name), f"generationConfig.{name}")

    take("temperature", "temperature", _not_negative)
    take("topP", "top_p", _not_negative)
    take("maxOutputTokens", "max_tokens", lambda value, path: whole_number(value, path, 1))
    take("stopSequences", "stop", texts)
    take("seed", "seed", whole_number)
    settings["logprobs"] = _logprobs(config)
    settings["json_schema"] = _shape(config)
    settings["reasoning_effort"] = _thoughts(config)
    return settings


def _not_negative(value: Any, path: str) -> float:
    given = number(value, path)
    if given < 0:
        refuse(path, f"{given} is out of range: it must be at least 0")
    return given


def _logprobs(config: dict[str, Any]) -> int | None:
    if "responseLogprobs" not in config:
        return None
    is_wanted = flag(config.pop("responseLogprobs"), "generationConfig.responseLogprobs")
    if not is_wanted:
        return None
    return whole_number(config.pop("logprobs", 0), "generationConfig.logprobs", 0)


def _shape(config: dict[str, Any]) -> Mapping[str, Any] | None:
    """The schema of an answer in JSON. JSON of any shape, and one of several texts, are Gemini's own to say."""
    kind = text(config.get("responseMimeType", ""), "generationConfig.responseMimeType")
    if kind in ("", _PLAIN):
        config.pop("responseMimeType", None)
    names = [name for name in ("responseSchema", "responseJsonSchema") if name in config]
    if kind != _JSON or not names:
        return None
    if len(names) > 1:
        refuse("generationConfig.responseJsonSchema", "only one of responseSchema and responseJsonSchema can be set")
    del config["responseMimeType"]
    path, given = f"generationConfig.{names[0]}", config.pop(names[0])
    if not isinstance(given, Mapping):
        refuse_value(path, "a schema", given)
    written(given, path)
    return json_schema(given, path) if names[0] == "responseSchema" else given


def _thoughts(config: dict[str, Any]) -> str | None:
    """How many tokens to think, or how hard. Whether thoughts shall be told, and that the model itself may choose how
    long they are, only Gemini is asked."""
    path = "generationConfig.thinkingConfig"
    if "thinkingConfig" not in config:
        return None
    thinking = fields(config.pop("thinkingConfig"), path)
    if "includeThoughts" in thinking and not flag(thinking["includeThoughts"], f"{path}.includeThoughts"):
        del thinking["includeThoughts"]
    effort = None
    if "thinkingLevel" in thinking:
        level = camel(text(thinking["thinkingLevel"], f"{path}.thinkingLevel")).lower()
        effort = level if level.isalpha() and level != "none" else None
    elif "thinkingBudget" in thinking:
        budget = whole_number(thinking["thinkingBudget"], f"{path}.thinkingBudget", -1)
        if 0 <= budget <= _BUDGET_MOST:
            effort = str(budget) if budget else "none"
    if thinking and (effort is None or len(thinking) > 1):
        config["thinkingConfig"] = thinking
    return effort


DIALECT = Dialect("gemini-generate", read, whole, stream, problem, listing, listed)
