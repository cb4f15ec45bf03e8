"""Sentences on a model that should be read before it is asked: until when it answers, and what is assumed of it.

Owns the words. What is known of a model: models.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from .models import Facts

RETIRING_DAYS = 90


def retirement(model: str, facts: Facts, day: str, within_days: int = RETIRING_DAYS) -> str:
    """Returns the sentence on a model that is retired on a day, or will be within so many days; else an empty text."""
    if facts.retires is None:
        return ""
    left = (date.fromisoformat(facts.retires) - date.fromisoformat(day)).days
    if left > within_days:
        return ""
    who = f"{facts.answered_by} answers" if facts.answered_by else "nothing answers"
    if left > 0:
        return f"{model} retires on {facts.retires}: {who} under its name from then on"
    return f"{model} was retired on {facts.retires}: {who} under its name"


def remarks_on(model: str, facts: Facts, day: str, max_tokens: int | None) -> Iterator[str]:
    """Yields the sentences on a model whose calls set these max_tokens."""
    if sentence := retirement(model, facts, day):
        yield sentence
    if facts.thinks is None:
        limit = "no max_tokens are sent" if max_tokens is None else f"max_tokens {max_tokens:,} are sent"
        temperature = "" if facts.temperature else " and takes a temperature"
        yield (
            f"{model} is not in the table of models: it is assumed that it answers without thinking ({limit})"
            f'{temperature}; thinks and temperature under [models."{model}"] in a --config file say otherwise'
        )
    if facts.remark:
        yield f"{model}: {facts.remark}"
