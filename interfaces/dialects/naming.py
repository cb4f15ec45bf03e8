"""Which of our models a client's word means, and whether what it asks beyond a call's own fields can be said there.

Owns the rule for names and the refusals about them. Pure: who the providers are and what they speak is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from msgspec import structs

from ...engine.call import WEB
from .bounds import MODEL_NAME_MAX
from .dialect import Asked, Refused

# Protocol family in which a client speaks -> the provider that a bare name is of.
OWN_PROVIDERS: Mapping[str, str] = MappingProxyType(
    {"openai": "openai", "openai-responses": "openai-responses", "anthropic": "anthropic", "gemini": "gemini"}
)
_NO_MODELS = (WEB, "search")
# Some providers have the model in their path, where these would lead to something else.
_PLACES = frozenset({".", ".."})
_SHOWN_MAX = 80


def model_named(word: str, family: str, names: Mapping[str, str], is_provider: Callable[[str], bool]) -> str:
    """The model string that a client's word stands for. `names` are those that somebody chose and go before all else;
    `provider/model` is taken as it stands; a bare name is a model of the family's own provider."""
    own = OWN_PROVIDERS[family]
    if word in names:
        return names[word]
    if len(word) > MODEL_NAME_MAX:
        raise _unknown(word, f"a model's name has at most {MODEL_NAME_MAX} characters, this one {len(word):,}")
    if not word or not word.isprintable() or " " in word or not _is_writable(word):
        raise _unknown(word, "expected a model as provider/model, or a name without spaces")
    if family == "gemini":
        word = word.removeprefix("models/")
    if not _PLACES.isdisjoint(word.split("/")):
        raise _unknown(word, "no part of a model's name is . or ..")
    provider, slash, model = word.partition("/")
    if not slash:
        return f"{own}/{word}"
    if not model:
        raise _unknown(word, "expected a model as provider/model, such as openai/gpt-4o-mini")
    if provider in _NO_MODELS:
        raise _unknown(word, "searches and pages are no models")
    if not is_provider(provider):
        raise _unknown(word, f"no provider {provider!r}; a name that holds a slash is written {own}/{_shown(word)}")
    return word


def as_said_to(asked: Asked, family: str, spoken: str) -> Asked:
    """The request as its model's provider can be told. What no field of a call has words for goes on as it is to a
    provider that speaks the client's own protocol (`family`); to one that speaks another (`spoken`) what it can do
    without is left out, and the rest refused."""
    call = asked.call
    if not call.extra or family == spoken:
        return asked
    name = next((name for name in call.extra if name not in asked.spare), None)
    if name is not None:
        said = f"{name} can't be said to {call.model}, which speaks {spoken} and not {family}: leave it out"
        raise Refused(said, name)
    return structs.replace(asked, call=structs.replace(call, extra=None))


def _unknown(word: str, why: str) -> Refused:
    return Refused(f"model {_shown(word)!r}: {why}", "model", "unknown_model", 404)


def _shown(word: str) -> str:
    return word if len(word) <= _SHOWN_MAX else f"{word[: _SHOWN_MAX - 1]}…"


def _is_writable(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True
