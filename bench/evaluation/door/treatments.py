"""The pairs of a run, in its specification.

A specification lists pairs only where they are not every model at every temperature: runs without a reasoning effort
have the specification that they always had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from ....engine.pairs import Pair


def specified_pairs(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Returns the part of a specification that names the run's pairs."""
    models = list(dict.fromkeys(pair.model for pair in pairs))
    temperatures = list(dict.fromkeys(pair.temperature for pair in pairs))
    fields: dict[str, Any] = {"models": models, "temperatures": temperatures}
    if list(pairs) != [Pair(*each) for each in product(models, temperatures)]:
        fields["pairs"] = [as_list(pair) for pair in pairs]
    return fields


def as_list(pair: Pair) -> list[Any]:
    """Returns a pair as a specification holds it: without an effort it is a model and a temperature."""
    return list(pair if pair.effort is not None else pair[:2])


def pairs_in(specification: Mapping[str, Any]) -> list[Pair]:
    """Returns the pairs that a specification names, in their order."""
    listed = specification.get("pairs")
    if listed is None:
        listed = product(specification.get("models", ()), specification.get("temperatures", ()))
    return [Pair(*each) for each in listed]


def treatments_in(specification: Mapping[str, Any]) -> dict[str, str]:
    """Returns the temperatures of a run, and its reasoning efforts if it has any, as texts by their names."""
    pairs = pairs_in(specification)
    sent = ("not sent" if pair.temperature is None else f"{pair.temperature:g}" for pair in pairs)
    efforts = filter(None, (pair.effort for pair in pairs))
    texts = {"Temperature": ", ".join(dict.fromkeys(sent)), "Reasoning effort": ", ".join(dict.fromkeys(efforts))}
    return {name: text for name, text in texts.items() if text}
