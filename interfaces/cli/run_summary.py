"""The summary of runs: a table and sentences for a person, or one JSON object for a program.

Pure functions of results. Gives advice for everything that is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...bench.evaluation.door.defect import RAISED, STEPS_EXCEEDED
from ...bench.evaluation.door.registry import benchmark_named
from ...bench.evaluation.door.run_counts import entry_of
from ...bench.evaluation.reading.run_comparison import compared_folders, comparison_lines
from ...bench.evaluation.running.execution import RunResult, counts_of
from ...bench.evaluation.running.scoring import SCORES
from ...bench.evaluation.running.stop_reasons import (
    ending_as_json,
    failures_as_json,
    kinds_of,
    meaning_of,
    reasons_of,
    remarks_of,
    why,
)
from ...configuration import errors as refusal
from ...engine.pairs import Pair, failures_of
from ...format import count_text
from ...report.text import table
from ...wiring.folder_budget import money_as_json, money_lines

_REJECTED = (
    "check the model's name and the options; to change them, start again with another --out (answers stay in the "
    "cache); if the provider accepts the same calls later: "
)
_ELSEWHERE = "to ask in another way, start again with another --out (answers stay in the cache)"
_AT_ITS_ADDRESS = "the address, or the base_url behind its identity, is right"
# The reasons of stops whose text says what to correct.
_CORRECTED = {"dead_key", "empty_account"}
_COLUMNS = ("answers", "refused", "failed", "pending", "from cache", "cost")


def exit_code_of(results: Sequence[RunResult]) -> int:
    """Returns the most serious exit code of several: a signal's before 5, before 4, before 3."""
    codes = [result.exit_code for result in results]
    return max(codes, default=refusal.DONE)


def causes(results: Sequence[RunResult]) -> str:
    """Returns why items are pending and how to go on, a line for each run; empty if nothing is pending."""
    return "\n".join(filter(None, map(_cause, results)))


def tell(results: Sequence[RunResult]) -> str:
    """Returns the summary text, which follows the causes: one table for each set of score columns, then each run's
    remarks. A run without any outcome has no row."""
    by_columns: dict[tuple[str, ...], list[Sequence[str]]] = {}
    # A judge's call that several models need is sent once, and whoever needed it first has its cost.
    is_judged = any(result.counted.judges for result in results)
    counts = (*_COLUMNS, *(["of which judges"] if is_judged else []))
    for result in filter(_has_outcome, results):
        columns = result.prepared.benchmark.columns
        rows = by_columns.setdefault(columns, [("model", *columns, *counts)])
        place = f"{result.prepared.out.name}: " if len(results) > 1 else ""
        rows += [row for pair in result.pairs() for row in _rows(result, pair, place, is_judged=is_judged)]
    parts = [table(rows) for rows in by_columns.values()]
    parts += _compared([result for result in results if result.answered and result.prepared.has_scores])
    for result in results:
        name = f"{result.prepared.out.name}:\n" if len(results) > 1 else ""
        parts += [f"{name}{tables}" for tables in _more_tables(result)]
        parts.append("\n".join(_remarks(result)))
    return "\n\n".join(parts)


def tell_briefly(results: Sequence[RunResult]) -> str:
    """Returns one table of all models, with the first score of their benchmarks and its interval, and the number of
    remarks, which the report has."""
    rows: list[Sequence[str]] = [("model", "measured", "score", "95% interval")]
    answered = cached = remarks = 0
    for result in results:
        answered += result.answered
        cached += sum(result.counted.of(pair).cached for pair in result.pairs())
        benchmark, counted = result.prepared.benchmark, result.counted
        remarks += len(counted.remarks) + len(counted.unmeasured)
        interval = next((at for at, title in enumerate(benchmark.columns) if "interval" in title), None)
        part = counted.scores.get(benchmark.scores_name(result.prepared.specification), {"models": {}})
        for row in (row for pair in result.pairs() for row in counted.rows.pairs(pair)):
            cells = benchmark.cells(entry_of(part, row))
            score = f"{benchmark.title} {benchmark.columns[0]}"
            rows.append((str(row), score, cells[0], "-" if interval is None else cells[interval]))
    noted = f"; {count_text(remarks, 'remark')}: see the report" if remarks else ""
    return f"{table(rows, (0, 1))}\n{count_text(answered, 'answer')}, {cached:,} of them from the cache{noted}"


def _compared(results: Sequence[RunResult]) -> Iterator[str]:
    """Yields the comparisons of those runs that have rows in common, as one text for each benchmark."""
    for name in dict.fromkeys(result.prepared.benchmark.name for result in results if len(results) > 1):
        outs = [result.prepared.out for result in results if result.prepared.benchmark.name == name]
        every = compared_folders(benchmark_named(name), {out.name: out for out in outs}, {})
        if lines := comparison_lines([compared for compared in every if compared.rows]):
            yield "\n".join(lines)


def _more_tables(result: RunResult) -> Iterator[str]:
    """Yields what `score` prints below the table of scores, as one text."""
    run = result.prepared
    if run.has_scores and result.answered:
        part = result.counted.scores[run.benchmark.scores_name(run.specification)]
        if tables := run.benchmark.more_tables(part):
            yield "\n\n".join(tables)


def _has_outcome(result: RunResult) -> bool:
    """Whether anything was answered or failed: if not, tables and scores would be about nothing."""
    return bool(result.answered or result.failed)


def _cause(result: RunResult) -> str:
    if not result.pending:
        return "" if result.end.fault is None else f"{result.end.fault}"
    items = count_text(result.pending, result.prepared.benchmark.unit)
    be = "is" if result.pending == 1 else "are"
    return f"{items} {be} pending: {why(result.end)}; {_how_to_go_on(result)}"


def _rows(result: RunResult, pair: Pair, place: str, *, is_judged: bool) -> Iterator[tuple[str, ...]]:
    """Yields a pair's row; of several, since several models answered, the first has the pair's counts."""
    run, scores, ended = result.prepared, result.counted.scores, result.counted.of(pair)
    numbers = (ended.answered, ended.refused, ended.failures, result.pending_of(pair), ended.cached)
    judges = result.counted.judges.get(pair)
    of_judges = ["-" if judges is None else f"${judges:,.4f}"] if is_judged else []
    counts = (*(f"{number:,}" for number in numbers), _cost_cell(result, pair), *of_judges)
    for row in result.counted.rows.pairs(pair):
        part = scores[run.benchmark.scores_name(run.specification)] if run.has_scores else {"models": {}}
        yield (f"{place}{row}", *run.benchmark.cells(entry_of(part, row)), *counts)
        counts = ("",) * len(counts)


def _cost_cell(result: RunResult, pair: Pair) -> str:
    """Returns the cost of a pair; `-` where nothing was answered at a price that is known."""
    cost = result.counted.of(pair).cost
    if cost is not None:
        return f"${cost:,.4f}"
    return "no price" if result.prepared.settings.price_table().get(pair.model) is None else "-"


def _remarks(result: RunResult) -> list[str]:
    out = result.prepared.out
    lines = [f"{out}: {', '.join(_files_of(result).values())}"]
    if _has_outcome(result):
        lines = [_answers(result), *lines, *_failures(result), *result.counted.remarks, *result.counted.unmeasured]
    if (labels := result.prepared.dataset.get("labels")) and (labels["differ"] or labels["unread"]):
        lines.append(labels["summary"])
    sweep = len(result.prepared.sweep)
    lines += money_lines(result.end.money, result.prepared.settings.max_cost, shared_by=sweep)
    if (money := result.end.money) and result.pending and (beside := money.spent - result.cost) >= 5e-5:
        # The answer of an item whose judge was not asked any more, say.
        lines.append(f"${beside:,.4f} of it is in no row of the table: it went to what is pending or was asked again")
    unsure = sum(result.counted.of(pair).maybe_billed for pair in result.pairs())
    lines += remarks_of("run", result.end, unsure)
    lines += meaning_of(result.exit_code, result.end.signal, has_failures=result.failed > 0)
    return lines


def _how_to_go_on(result: RunResult) -> str:
    prepared, reasons = result.prepared, {stop.reason for stop in result.end.stops}
    # Calls that were rejected with the same message are not sent again by `resume`.
    if "rejected" in reasons:
        return f"{_REJECTED}{prepared.retry_command}"
    if "truncated" in reasons:
        return "start again with another --max-tokens and another --out: this folder keeps the max_tokens it began with"
    if "redirect" in reasons:
        return _once_mended(_AT_ITS_ADDRESS, prepared.resume_command)
    again = f"{'then run' if reasons & _CORRECTED else 'to go on'}: {prepared.resume_command}"
    if reasons & {"interrupted", "patience"} and not (result.answered or result.failed or prepared.command):
        # The address of a server is part of what makes a run.
        again += "; if the address is wrong, give the run command again with another --base-url and another --out"
    return again


def _files_of(result: RunResult) -> dict[str, str]:
    """Returns the names of the files that a run has written, without its failures."""
    files = result.prepared.files
    scores = {"scores": SCORES} if result.prepared.has_scores else {}
    return {"records": files.records, **scores, "manifest": files.manifest}


def _once_mended(there: str, command: str) -> str:
    """Returns advice: start again in another folder, or run `command` once `there` is true."""
    return f"{_ELSEWHERE}; once {there}: {command}"


def _failures(result: RunResult) -> list[str]:
    """Returns each kind of failure with its number, its most frequent message, and what to do about it."""
    failed, prepared = failures_of(map(result.counted.of, result.pairs())), result.prepared
    if not failed:
        return []
    again = f"ask them again: {prepared.retry_command}"
    if set(failed) == {"rejected"}:
        # The cause says it too.
        again = "" if result.pending else f"{_REJECTED}{prepared.retry_command}"
    elif set(failed) <= {RAISED, STEPS_EXCEEDED}:
        again = "correct the code and run it with another --out: what was answered comes from the cache"
    elif set(failed) == {"redirect"}:
        again = _once_mended(_AT_ITS_ADDRESS, prepared.resume_command)
    line = f"failed: {kinds_of(failed)} ({prepared.files.failures} says why of each)"
    return [f"{line}; {again}" if again else line, *reasons_of(failed)]


def _answers(result: RunResult) -> str:
    answered = result.answered
    cached = sum(result.counted.of(pair).cached for pair in result.pairs())
    judged = sum(result.counted.of(pair).judged for pair in result.pairs())
    text = count_text(answered, "answer")
    if result.already and not result.pending and result.already == answered + result.failed:
        return f"{text}, all there before; nothing was sent"
    is_sent = result.cost > 0 or judged > 0
    if answered and cached == answered and not (is_sent or result.failed or result.pending or result.already):
        return f"{text}, all from the cache; nothing was sent ({result.seconds:.1f} s)"
    before = f", {result.already:,} there before" if result.already else ""
    sent = f"; judges' calls were sent for {judged:,}" if cached and judged else ""
    return f"{text}, {cached:,} of them from the cache{before}{sent} ({result.seconds:.1f} s)"


def as_json(results: Sequence[RunResult]) -> dict[str, Any]:
    return {"exit_code": exit_code_of(results), "runs": [_run_as_json(result) for result in results]}


def _run_as_json(result: RunResult) -> dict[str, Any]:
    out = result.prepared.out
    files = _files_of(result) | {"failures": result.prepared.files.failures}
    return {
        "folder": str(out),
        "exit_code": result.exit_code,
        "answered": result.answered,
        "failed": result.failed,
        "pending": result.pending,
        "already": result.already,
        "maybe_billed_pending": result.end.maybe_billed,
        "in_flight_at_kills": result.end.in_flight_at_kills,
        "money": money_as_json(result.end.money, result.prepared.settings.max_cost),
        "seconds": round(result.seconds, 3),
        "counts": counts_of(result),
        "failures": failures_as_json(failures_of(map(result.counted.of, result.pairs()))),
        **({"details": result.counted.details} if result.counted.details else {}),
        "unmeasured": list(result.counted.unmeasured),
        **({"labels": labels} if (labels := result.prepared.dataset.get("labels")) else {}),
        "scores": result.counted.scores,
        **ending_as_json(result.end),
        "files": {name: str(out / file) for name, file in files.items()},
    }
