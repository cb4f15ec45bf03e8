"""Sentences on what a load test did not measure and on figures that few answers support.

Shared by summary and page. Pure: from the structs of `load.json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .load_json import ModelFigures


def unmeasured(models: Mapping[str, ModelFigures]) -> tuple[str, ...]:
    """Returns a sentence for each model without a measured answer, which says why it has none."""
    return tuple(f"{name}: nothing was measured: {why}" for name, own in models.items() if (why := _why(own)))


def unmeasured_goals(models: Mapping[str, ModelFigures]) -> tuple[str, ...]:
    """Returns a sentence for each model whose answers lack the time that the goal names."""
    return tuple(
        f"{name}: the goal was not measured: {own.goal.unmeasured}"
        for name, own in models.items()
        if own.goal is not None and own.goal.unmeasured
    )


def answers_of(own: ModelFigures) -> Iterator[str]:
    """Yields a sentence if half of the calls or more were not answered, and one if answers have no word."""
    failed = own.calls - own.answered
    if own.answered and 2 * failed >= own.calls:
        yield (
            f"{failed:,} of {own.calls:,} calls were not answered ({kinds_of(own)}): all times are those of the other "
            f"{own.answered:,}"
        )
    if own.empty:
        cut = f" ({own.cut:,} answers were cut at max_tokens)" if own.cut else ""
        yield f"{own.empty:,} of {own.answered:,} answers have no word{cut}: their times are counted like any other's"


def kinds_of(own: ModelFigures) -> str:
    return ", ".join(f"{kind} {number:,}" for kind, number in own.errors.items())


def _why(own: ModelFigures) -> str:
    """Returns why a model has no answer; empty if it has one."""
    if own.answered:
        return ""
    if own.calls:
        return f"none of {own.calls:,} calls was answered ({kinds_of(own)})"
    if own.begun:
        return "those sent were due in the warm-up or the cool-down, or met the end of the test"
    return "no call was sent"
