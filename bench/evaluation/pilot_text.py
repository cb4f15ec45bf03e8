"""The estimates of a pilot as lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...format import count_text, decimal_text, dollars, rough_minutes

MEANING = (
    "in brackets: 95% intervals, of tokens, cost and time by a bootstrap over the pilot's answers, of shares the "
    "exact ones; tokens, cost and time are those of a run that has every prompt left answered at its first sending"
)


def tell(model: str, found: Mapping[str, Any]) -> str:
    """Returns one model's estimates as lines for people."""
    lines = [_headline(model, found)]
    if found["pending"]:
        why = "" if found["stop"] is None else f": {' '.join(found['stop']['detail'].split())}"
        lines.append(f"  pending        {found['pending']:,} of them{why}")
    if found["input_tokens"] is None:
        lines.append(f"  no estimate    {_why_none(found)}")
    else:
        lines += _estimate_lines(found)
    for name, told in (("failed", "failed"), ("refused", "refused"), ("truncated", "cut short")):
        share = found[name]
        if share["of"]:
            low, high = share["ci95"]
            lines.append(f"  {told:13}  {share['calls']:,} of {share['of']:,} ({low:.1%} to {high:.1%})")
    if any(2 * found[name]["calls"] >= found[name]["of"] > 0 for name in ("refused", "truncated")):
        lines.append("  no score       a run of which half is refused or cut short has none")
    for kind, failure in found["failures"].items():
        lines.append(f"  {kind:13}  {failure['calls']:,}, the first: {failure['detail']}")
    if found["maybe_billed"]:
        lines.append(f"  maybe billed   attempts that brought no whole answer: {found['maybe_billed']:,}")
    return "\n".join(lines)


def _headline(model: str, found: Mapping[str, Any]) -> str:
    cost = "" if found["spent"] is None else f"; it cost {dollars(found['spent'])}"
    return (
        f"pilot of {model}: {found['calls']:,} of its prompts, {found['sent']:,} sent, {found['from_cache']:,} from "
        f"the cache{cost}"
    )


def _why_none(found: Mapping[str, Any]) -> str:
    if not found["answered"]:
        return "all its calls failed" if found["failed"]["calls"] else "no call was answered"
    if not found["usages"]:
        return "no answer came with its usage: this provider reports none"
    return "not every temperature has an answer with its usage"


def _estimate_lines(found: Mapping[str, Any]) -> list[str]:
    lines = [f"  still to send  {count_text(found['left'], 'prompt')}"]
    each, output = found["tokens_per_character"], found["output_tokens_each"]
    lines.append(
        f"  input tokens   {_with_interval(found['input_tokens'], decimal_text)}" + _per(each, "3f", "a character")
    )
    lines.append(
        f"  output tokens  {_with_interval(found['output_tokens'], decimal_text)}" + _per(output, "1f", "an answer")
    )
    if found["cost"] is not None:
        all_in = _with_interval(found["cost_with_pilot"], dollars)
        lines.append(f"  cost           {_with_interval(found['cost'], dollars)}; with the pilot {all_in}")
    minutes = found["minutes"]
    if minutes is not None:
        bound = f", bound by {minutes['bound_by']}{_latency(found['latency_ms'])}" if minutes["bound_by"] else ""
        lines.append(f"  time           {_with_interval(minutes, rough_minutes)}{bound}")
    else:
        lines.append("  time           unknown: nothing was sent, and --rpm and --tpm were not given")
    if found["usages"] < found["answered"]:
        lines.append(f"  left out       answers without a usage: {found['answered'] - found['usages']:,}")
    return lines


def _per(value: float | None, form: str, what: str) -> str:
    return "" if value is None else f"; {value:.{form}} {what}"


def _latency(milliseconds: float | None) -> str:
    return (
        "; latency unknown, nothing was sent" if milliseconds is None else f"; an answer takes {milliseconds:,.0f} ms"
    )


def _with_interval(figure: Mapping[str, Any], write: Any) -> str:
    if figure["ci95"] is None:
        return f"{write(figure['estimate'])} (too few answers for an interval)"
    low, high = figure["ci95"]
    return f"{write(figure['estimate'])} ({write(low)} to {write(high)})"
