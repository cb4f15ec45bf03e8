"""The summary of a batch: sentences for a person, or one JSON object for a program.

Pure functions of results. Gives advice for everything that is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from ...bench.evaluation.running.stop_reasons import (
    ending_as_json,
    failures_as_json,
    kinds_of,
    meaning_of,
    reasons_of,
    remarks_of,
    why,
)
from ...engine.call import FailureKind
from ...engine.pairs import failures_of
from ...format import count_text
from ...wiring.folder_budget import money_as_json, money_lines
from .run import BatchResult


def tell(result: BatchResult) -> str:
    lines = [_answers(result), *_files(result), *_failures(result)]
    if result.is_cut_short:
        how = "go on: the same command" if result.place is not None else "ask again: what was answered is in the cache"
        what = (
            f"{count_text(result.pending, 'request')} {'is' if result.pending == 1 else 'are'}"
            if result.pending
            else "what was not read is"
        )
        lines.append(f"{what} pending: {why(result.end)}; {how}")
    elif result.end.fault is not None:
        lines.append(str(result.end.fault))
    lines += money_lines(result.end.money, result.max_cost)
    lines += remarks_of("batch", result.end, result.ended.maybe_billed)
    lines += meaning_of(result.exit_code, result.end.signal)
    return "\n".join(lines)


def _answers(result: BatchResult) -> str:
    ended = result.ended
    cost = "no price" if ended.cost is None else f"${ended.cost:,.4f}"
    text = f"{count_text(result.requests, 'request')}: {count_text(ended.answered, 'answer')}"
    text += f" ({ended.refused:,} of them refusals)" if ended.refused else ""
    text += f", {ended.failures:,} failed" if ended.failures else ""
    text += f", {result.pending:,} pending" if result.pending else ""
    if result.already and not result.pending and result.already >= result.requests:
        return f"{text}; all there before, nothing was sent; {cost}"
    text += f"; {ended.cached:,} from the cache"
    text += f", {result.already:,} there before" if result.already else ""
    return f"{text}; {cost} ({result.seconds:.1f} s)"


def _files(result: BatchResult) -> list[str]:
    place = result.place
    if place is None:
        return []
    lines = [f"{place.out}: answers{'' if place.errors else ' and errors'}"]
    return [*lines, f"{place.errors}: errors"] if place.errors is not None else lines


def _failures(result: BatchResult) -> list[str]:
    failed = failures_of([result.ended])
    if not failed:
        return []
    return [f"failed: {kinds_of(failed)}{_again(result, failed.keys())}", *reasons_of(failed)]


def _again(result: BatchResult, failed: Iterable[str]) -> str:
    """Returns advice to repeat the command, for failures that another attempt can change; empty: there is none."""
    sent = [kind for kind in failed if kind in get_args(FailureKind)]
    if not sent:
        return "; such lines are never sent: correct them in a file of their own"
    return f"; to ask {', '.join(sent)} again: the same command with --retry" if result.place is not None else ""


def as_json(result: BatchResult) -> dict[str, Any]:
    ended, end, place = result.ended, result.end, result.place
    return {
        "exit_code": result.exit_code,
        "out": None if place is None else str(place.out),
        "errors": None if place is None or place.errors is None else str(place.errors),
        "requests": result.requests,
        "answered": ended.answered,
        "refused": ended.refused,
        "failed": ended.failures,
        "pending": result.pending,
        "already": result.already,
        "cached": ended.cached,
        "truncated": ended.truncated,
        "usage": {"input": ended.input_tokens, "output": ended.output_tokens},
        "cost": ended.cost,
        "maybe_billed": ended.maybe_billed,
        "maybe_billed_pending": end.maybe_billed,
        "in_flight_at_kills": end.in_flight_at_kills,
        "money": money_as_json(end.money, result.max_cost),
        "seconds": round(result.seconds, 3),
        "failures": failures_as_json(failures_of([ended])),
        **ending_as_json(end),
    }
