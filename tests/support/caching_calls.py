"""Calls to caching_server in each protocol, and settings with its prices."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from billed_programs import KINDS
from caching_server import HOUR, LONG, OUTPUT, PLAIN, READ, WRITE
from msgspec import structs

import millstream as ms
from millstream.engine.prices import LongPrompts
from millstream.providers.models import Facts
from millstream.providers.table import PROVIDERS

PER_MILLION = 1e6 / 1e12
PRICE = ms.Price(
    PLAIN * PER_MILLION,
    OUTPUT * PER_MILLION,
    LongPrompts(LONG, 2 * PLAIN * PER_MILLION, 1.5 * OUTPUT * PER_MILLION),
    cached=READ * PER_MILLION,
    write_5m=WRITE * PER_MILLION,
    write_1h=HOUR * PER_MILLION,
    tiers={"flex": 0.5, "priority": 2.0, "fast": 2.0},
)
# OpenAI has one kind of write, and caches unasked.
PRICES = {protocol: PRICE if protocol == "messages" else structs.replace(PRICE, write_1h=None) for protocol in KINDS}
TEXTS = [f"{number} " + "What is known of this? " * (8 * number) for number in range(1, 40)]


def settings_of(port: int, protocol: str, cache: Path, **more: Any) -> ms.Settings:
    address = f"http://127.0.0.1:{port}"
    row = structs.replace(PROVIDERS[KINDS[protocol]], base_url=address, key_variable=None, key_variables_too=())
    chosen: dict[str, Any] = {"lanes": (ms.Lane("lab/m", concurrency=16),), "cache": cache, **more}
    return ms.Settings(
        providers={"lab": row},
        models={"lab/m": Facts(max_output=200, window=200_000)},
        prices={"lab/m": PRICES[protocol]},
        **chosen,
    )


def drawn(protocol: str, number: int, chance: Random, *, names_tier: bool = True) -> ms.Call:
    text, extra = chance.choice(TEXTS), None
    question = f"{number}: for or against?"
    if protocol == "messages":
        mark: dict[str, Any] = {"type": "ephemeral", **chance.choice(({}, {"ttl": "5m"}, {"ttl": "1h"}))}
        marked = {"type": "text", "text": text, "cache_control": mark}
        begun: Any = (ms.Native("anthropic", marked) if chance.random() < 0.8 else text, question)
        messages = [ms.Message("user", begun)]
        extra = chance.choice((None, {"speed": "fast"}, {"speed": "standard"}))
    else:
        messages = [ms.Message("user", text), ms.Message("assistant", "A."), ms.Message("user", question)]
        name = "serviceTier" if protocol == "gemini" else "service_tier"
        extra = chance.choice((None, {name: "flex"}, {name: "priority"}))
    extra = extra if names_tier else None
    return ms.Call("lab/m", messages, max_tokens=100, extra=extra, stream=chance.random() < 0.3)
