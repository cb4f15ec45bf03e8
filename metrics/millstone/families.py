"""Families: which models are sizes and variants of the same model, by their names alone.

Owns which parts of a name are provider, version, size and date. Knows no provider's list of models.
"""

from __future__ import annotations

import re

_MAKER = re.compile(r"^(?:[a-z]+\.)+(?=[a-z])|^meta-(?=llama)")
_BUILD = re.compile(r"-v\d+:\d+$")
_DATE = re.compile(r"-(?:20\d\d-[01]\d-[0-3]\d|[01]\d-20\d\d|[01]\d-[0-3]\d|20\d{6}|\d{6}|\d{3,4})(?=-|$)")
_SIZE = re.compile(r"(?:\d+x)?\d+(?:\.\d+)?[bmte]")
_VERSION = re.compile(r"[a-z]?\d+(?:\.\d+)?[a-z]?")
_SIZES = "nano mini micro tiny lite small medium large pro plus max ultra"
_TIERS = "haiku sonnet opus flash turbo fast scout maverick"
_STATES = "preview beta exp experimental latest instruct it chat thinking reasoning maas"
_VARIANTS = frozenset(f"{_SIZES} {_TIERS} {_STATES}".split())


def family_of(model: str) -> str:
    """Returns a model's family: its name without provider, size, variant, state and date.

    `openai/gpt-4o-mini-2024-07-18` is of gpt-4o, `x/Meta-Llama-3.1-8B-Instruct` of llama-3.1. A size word before the
    version stays, as it names another line of models: claude-3.5-haiku is of claude-3.5 and claude-opus-4 of
    claude-opus-4. Without a version all such words are removed.
    """
    name = model.partition(" @ ")[0].rpartition("/")[2].lower()
    name = re.sub(r"[_:@\s]+", "-", _BUILD.sub("", name))
    name = _DATE.sub("", _MAKER.sub("", name))
    # The same version is written llama3.1 and llama-3.1, 3-5 and 3.5.
    name = re.sub(r"(?<![a-z0-9])([a-z]{3,})(?=\d)", r"\1-", name)
    name = re.sub(r"(?<![\w.])(\d)-(\d)(?=-|$)", r"\1.\2", name)
    words = [word for word in name.split("-") if word and not _SIZE.fullmatch(word)]
    if not words:
        return model
    version = next((at for at, word in enumerate(words) if at and _VERSION.fullmatch(word)), 0)
    return "-".join([*words[: version + 1], *(word for word in words[version + 1 :] if word not in _VARIANTS)])
