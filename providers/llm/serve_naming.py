"""Finds the model that a client's name stands for, and checks which of a request's other fields that model can be sent.

Owns the rule for names and the errors about them. Pure: the providers and their protocols are passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import structs

from ...engine.call import WEB
from .repair import mended
from .serve_bounds import MODEL_NAME_MAX
from .serve_dialect import RequestRefusal, ServedRequest

_NO_MODELS = (WEB, "search")
# Some providers have the model in their path, where these would lead elsewhere.
_PLACES = frozenset({".", ".."})
_SHOWN_MAX = 80


def model_named(word: str, family: str, names: Mapping[str, str], is_provider: Callable[[str], bool]) -> str:
    """Returns the model string for a client's name; raises RequestRefusal. `names`, which an operator chose, go first;
    `provider/model` is taken as it is; a name alone is a model of the provider whose name is the family's."""
    if word in names:
        return names[word]
    if len(word) > MODEL_NAME_MAX:
        raise _unknown(word, f"a model's name has at most {MODEL_NAME_MAX} characters, this one {len(word):,}")
    if not word or not word.isprintable() or " " in word or mended(word) != word:
        raise _unknown(word, "expected a model as provider/model, or a name without spaces")
    if family == "gemini":
        word = word.removeprefix("models/")
    if not _PLACES.isdisjoint(word.split("/")):
        raise _unknown(word, "no part of a model's name is . or ..")
    provider, slash, model = word.partition("/")
    if not slash:
        return f"{family}/{word}"
    if not model:
        raise _unknown(word, "expected a model as provider/model, such as openai/gpt-6-luna")
    if provider in _NO_MODELS:
        raise _unknown(word, "searches and pages are no models")
    if not is_provider(provider):
        raise _unknown(word, f"no provider {provider!r}; a name that holds a slash is written {family}/{_shown(word)}")
    return word


def request_for_family(request: ServedRequest, family: str, spoken: str) -> ServedRequest:
    """Returns the request as it can be sent to a provider that speaks `spoken`. If that is the client's own protocol
    (`family`), fields in `extra` stay; if not, spare ones are left out, and any other raises RequestRefusal."""
    call = request.call
    if not call.extra or family == spoken:
        return request
    name = next((name for name in call.extra if name not in request.spare), None)
    if name is not None:
        message = f"{name} can't be said to {call.model}, which speaks {spoken} and not {family}: leave it out"
        raise RequestRefusal(message, name)
    return structs.replace(request, call=structs.replace(call, extra=None))


def _unknown(word: str, why: str) -> RequestRefusal:
    return RequestRefusal(f"model {_shown(word)!r}: {why}", "model", "unknown_model", 404)


def _shown(word: str) -> str:
    return word if len(word) <= _SHOWN_MAX else f"{word[: _SHOWN_MAX - 1]}…"
