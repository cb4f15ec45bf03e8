"""lm-eval's requests as calls: a context to continue, or a text whose tokens are weighed.

Translates the many names of `generation_kwargs` into ours. Pure; knows no class of lm-eval.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ...configuration.errors import UsageError
from ...engine.call import Call, Message

# OpenAI accepts this many at most; the answer is cut here at the others.
_STOPS_MAX = 4
_TOKEN_NAMES = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
_NOTHING = (None, "None", "none")


class ChatPrompt(str):
    """A conversation in lm-eval's form: a text with the messages' JSON."""

    __slots__ = ()


class LmEvalGeneration(Struct, frozen=True):
    """A call to generate, and the texts at which its answer ends."""

    call: Call
    until: tuple[str, ...]

    def cut(self, text: str) -> str:
        """Returns the answer up to the first text that ends it, since not every server leaves that out."""
        return text[: min((at for stop in self.until if (at := text.find(stop)) >= 0), default=None)]


def generation_of(
    model: str, context: str, arguments: Mapping[str, Any], *, max_tokens: int, seed: int | None
) -> LmEvalGeneration:
    """Returns the call of a request to generate. Its temperature is 0 unless the task says otherwise. `temperature` and
    `until` of None are not sent, for models that accept none; unknown arguments go into the body."""
    rest = dict(arguments)
    limits = [rest.pop(name) for name in _TOKEN_NAMES if name in rest]
    is_sampled = rest.pop("do_sample", None) is not False
    temperature = rest.pop("temperature", 0.0)
    until = _until(rest.pop("until", None))
    seed, top_p = rest.pop("seed", seed), rest.pop("top_p", None)
    try:
        call = Call(
            model,
            _input_of(context),
            temperature=None if temperature in _NOTHING else float(temperature) if is_sampled else 0.0,
            max_tokens=int(next((limit for limit in limits if limit not in _NOTHING), max_tokens)),
            top_p=None if top_p in _NOTHING else float(top_p),
            stop=until[:_STOPS_MAX] or None,
            seed=None if seed in _NOTHING else int(seed),
            extra=rest or None,
        )
    except (TypeError, ValueError) as error:
        raise UsageError(f"generation_kwargs can't be sent to {model}: {error}") from error
    return LmEvalGeneration(call, until)


def _until(value: object) -> tuple[str, ...]:
    if value in _NOTHING:
        return ()
    stops = value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    return tuple(str(stop) for stop in stops if stop)


def _input_of(context: str) -> str | tuple[Message, ...]:
    if not isinstance(context, ChatPrompt):
        return context
    return tuple(Message(turn["role"], turn["content"]) for turn in json.loads(context))


def weighing_of(model: str, text: str) -> Call:
    """Returns a call for the log-probabilities of a text's tokens. It asks for one new token, as some servers need."""
    return Call(model, text, temperature=0.0, max_tokens=1, logprobs=1, extra={"echo": True})
