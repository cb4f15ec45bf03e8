"""What a good answer keeps to, as a person writes it. Knows no option and no measurement."""

from __future__ import annotations

import re

from ...bench.load.meter import Promise
from ..refusal import UsageError

_TERM = re.compile(r"(first token|latency|token)\s*<=?\s*([0-9]+(?:\.[0-9]+)?)\s*(ms|s)")
_EXAMPLE = "first token <= 1 s, latency <= 10 s, token <= 50 ms"


def parse_promise(text: str) -> Promise:
    """Read `first token <= 1 s, latency <= 10 s, token <= 50 ms`, or some of these."""
    found: dict[str, float] = {}
    for term in re.split(r",| and ", text):
        match = _TERM.fullmatch(" ".join(term.split()))
        if match is None:
            raise UsageError(f'--promise: expected times as "{_EXAMPLE}", got "{_shown(term.strip() or text)}"')
        name, amount, unit = match.groups()
        if name in found:
            raise UsageError(f"--promise: expected each time once, got {name} twice")
        found[name] = float(amount) / (1000 if unit == "ms" else 1)
        if not found[name] > 0:
            raise UsageError(f"--promise: expected times above 0, got {term.strip()}")
    return Promise(found.get("first token"), found.get("latency"), found.get("token"))


def _shown(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"
