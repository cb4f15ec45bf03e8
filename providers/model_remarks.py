"""Sentences on a model that should be read before it is asked: until when it answers, and what is assumed of it.

Owns the words. What is known of a model: models.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from ..engine.near_names import nearest
from .models import Facts, bundled_models

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


def remarks_on(
    model: str, facts: Facts, day: str, max_tokens: int | None, *, is_declared: bool = False
) -> Iterator[str]:
    """Yields the sentences on a model whose calls set these max_tokens. `is_declared`: a configuration has facts."""
    table = bundled_models()
    others = (name for name in table.models if name != model and name.partition("/")[0] == table.provider(model))
    unlisted = f"{model} is not in the table of models{nearest(model, others, 0.8)}: "
    otherwise = f'; thinks and temperature under [models."{model}"] in a --config file say otherwise'
    if sentence := retirement(model, facts, day):
        yield sentence
    if facts.thinks is None:
        limit = "no max_tokens are sent" if max_tokens is None else f"max_tokens {max_tokens:,} are sent"
        temperature = "" if facts.temperature else " and takes a temperature"
        yield (f"{unlisted}it is assumed that it answers without thinking ({limit}){temperature}{otherwise}")
    elif not is_declared and (families := table.families_assumed(model)):
        yield f"{unlisted}what holds there of all named {' and '.join(families)} is assumed{otherwise}"
    if facts.remark:
        yield f"{model}: {facts.remark}"
