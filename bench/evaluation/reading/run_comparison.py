"""Compares runs on the same rows, two at a time: paired differences, what the runs differ in, and what flipped.

Runs that differ in exactly one option are a treatment, which has a p-value; of those that differ in more, or in none,
only the differences are given. Knows no benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import ndiff
from itertools import combinations, product
from pathlib import Path
from typing import Any

from msgspec import Struct

from ....engine.pairs import Pair
from ....engine.runs.run_folder import MANIFEST, read_manifest
from ....metrics.statistics.comparisons import entry_text, holm, paired_entry
from ..door.benchmark import ItemBenchmark
from ..door.run_figures import RowFigures, RunFigures
from ..running.scoring import scored_run

NONE = "none"
"""The text of an option that a run does not have."""
_RUNS_MOST = 5
_ROWS_MOST = 30
_RIGHT = 0.5
_SHORT = 60
_NAMED = 8
_SCORERS = ("scorer", "judge", "rubric")


class Difference(Struct, frozen=True):
    """An option in which two runs differ, with its text in each."""

    option: str
    a: str
    b: str

    @property
    def is_long(self) -> bool:
        """Whether its texts are shown line by line, what differs marked."""
        return self.option.startswith(("prompt", "system", "rubric")) or any(
            len(text) > _SHORT or "\n" in text for text in (self.a, self.b)
        )

    @property
    def brief(self) -> str:
        return self.option if self.is_long else f"{self.option} ({self.a}; {self.b})"

    def lines(self) -> Iterator[str]:
        """Yields the lines of both texts: `-` only in the first, `+` only in the second."""
        changed = ndiff(self.a.splitlines() or [""], self.b.splitlines() or [""])
        yield from (line.rstrip() for line in changed if not line.startswith("?"))


class Flip(Struct, frozen=True):
    """An item whose figures differ between two runs."""

    item: str
    a: float
    b: float


class RowComparison(Struct, frozen=True, kw_only=True):
    """The paired difference of a row of one run and a row of another, first minus second."""

    a: str
    b: str
    differences: tuple[Difference, ...]
    """All options in which they differ."""
    entry: dict[str, Any]
    """The difference with its interval, as an entry of scores.json. It has p-values, one of them adjusted for the rows
    of these two runs, only if they differ in exactly one option."""
    flips: tuple[Flip, ...]
    """The items that flipped, those with the largest difference first; of figures that are no shares, those that
    differ."""

    @property
    def name(self) -> str:
        return self.a if self.a == self.b else f"{self.a} minus {self.b}"


class RunComparison(Struct, frozen=True):
    """Two runs by their names, and the comparisons of their rows; without any, `why_not` says why."""

    a: str
    b: str
    rows: tuple[RowComparison, ...] = ()
    of: str = "items"
    has_right: bool = True
    is_told: bool = True
    why_not: str = ""
    scales: str = ""
    """The figures of two scorers of which nobody knows whether they have one scale; empty: they have."""
    left_out: int = 0
    """How many pairs of rows are not compared, since there are too many."""

    @property
    def differences(self) -> tuple[Difference, ...]:
        """The options in which all rows differ."""
        first, *others = (row.differences for row in self.rows)
        return tuple(each for each in first if all(each in differences for differences in others))

    @property
    def sentence(self) -> str:
        """What the two runs differ in, and what follows for reading the differences."""
        both = f"{self.a} minus {self.b}, paired by {self.of.removesuffix('s')}"
        if self.left_out:
            both += f" ({self.left_out:,} other pairs of models left out)"
        if not self.is_told:
            return f"{both}: how one of them was made is not known, so the differences may come from anything"
        shared, options = self.differences, [len(row.differences) for row in self.rows]
        names = [each.brief for each in shared]
        if max(options) > len(shared):
            names.append("what each row says")
        if not names:
            return f"{both}: made alike, so the differences are chance"
        if self.scales:
            unknown = f"it is not known whether scores {self.scales} have one scale"
            return f"{both}: they differ in {', '.join(names)}; {unknown}"
        if set(options) == {1}:
            return f"{both}: they differ in {names[0]} alone"
        which = "it" if 1 not in options else "such a row"
        return f"{both}: they differ in {', '.join(names)}; {which} is the effect of no single option and has no p"


def compared_folders(
    benchmark: ItemBenchmark[Any], folders: Mapping[str, Path], chosen: Mapping[str, Any]
) -> list[RunComparison]:
    """Returns the comparisons of every two of the runs in these folders, given by their names, with these readings in
    place of their own; none if the benchmark offers no figures."""
    runs = {}
    for name, folder in folders.items() if benchmark.compares_runs and len(folders) > 1 else ():
        manifest = read_manifest(folder) if (folder / MANIFEST).exists() else None
        runs[name] = benchmark.run_figures(scored_run(benchmark, folder, manifest, chosen))
    return compared_runs(runs)


def compared_runs(runs: Mapping[str, RunFigures]) -> list[RunComparison]:
    """Returns the comparisons of every two of the runs, given by their names; of many runs, of each with the first."""
    names = list(runs)
    pairs = combinations(names, 2) if len(names) <= _RUNS_MOST else ((names[0], other) for other in names[1:])
    return [_compared(a, b, runs[a], runs[b]) for a, b in pairs]


def _compared(a: str, b: str, first: RunFigures, second: RunFigures) -> RunComparison:
    options = tuple(_option_differences(first, second))
    within = first.within if first.within == second.within else None
    has_right, is_told = first.has_right and second.has_right, first.is_told and second.is_told
    names = [name for name in first.rows if name in second.rows]
    pairs = [(name, name) for name in names] or list(product(first.rows, second.rows))
    rows: list[RowComparison] = []
    for one, other in pairs[:_ROWS_MOST]:
        of_a, of_b = first.rows[one], second.rows[other]
        are_shares = of_a.are_shares and of_b.are_shares
        entry = paired_entry(of_a.figures, of_b.figures, within=within, of=first.of, of_shares=are_shares)
        if entry is not None:
            differing = (*_pair_differences(of_a.pair, of_b.pair, first, second), *options)
            flips = _flips(of_a, of_b, first.names, has_right)
            entry |= {"items": entry[first.of]}
            rows.append(RowComparison(a=one, b=other, differences=differing, entry=entry, flips=flips))
    if not rows:
        return RunComparison(a, b, why_not=f"{a} and {b}: no row of one with a score is in the other")
    has_scorers = any(each.option.startswith(_SCORERS) for each in options)
    scales, are_other = _scales(first, second) if has_scorers or (first.within and second.within) else ("", False)
    if are_other:
        return RunComparison(a, b, why_not=f"{a} and {b}: their scores have other scales ({scales})")
    # A difference in one option alone is a treatment.
    has_p = [is_told and not scales and len(row.differences) == 1 for row in rows]
    p_values = [row.entry["p"] if has else None for row, has in zip(rows, has_p, strict=True)]
    for row, p, adjusted in zip(rows, p_values, holm(p_values), strict=True):
        row.entry.update(p=p, p_adjusted=adjusted)
    left_out = max(0, len(pairs) - _ROWS_MOST)
    return RunComparison(a, b, tuple(rows), first.of, has_right, is_told, scales=scales, left_out=left_out)


def _scales(first: RunFigures, second: RunFigures) -> tuple[str, bool]:
    """Returns the scales of two scorers' figures as a text if nobody knows that they are one, and whether they are
    certainly two. Figures within 0 and 1 have this scale if their scorer declares none."""
    seen, scales = [], []
    for run in (first, second):
        figures = [value for row in run.rows.values() for value in row.figures.values()]
        low, high = min(figures), max(figures)
        seen.append((low, high))
        scales.append(run.within or ((0.0, 1.0) if low >= 0 and high <= 1 else None))
    if scales[0] is not None and scales[0] == scales[1]:
        return "", False
    others = zip(scales, seen[::-1], strict=True)
    fits = None in scales and all(scale is None or scale[0] <= low <= high <= scale[1] for scale, (low, high) in others)
    ends = [each for each in scales if each] if None not in scales else seen
    return " and ".join(f"{low:g} to {high:g}" for low, high in ends), not fits


def _option_differences(first: RunFigures, second: RunFigures) -> Iterator[Difference]:
    names = dict.fromkeys([*first.options, *second.options])
    every = (Difference(name, first.options.get(name, NONE), second.options.get(name, NONE)) for name in names)
    options = [each for each in every if each.a != each.b]
    yield from options
    # Where the text of the prompt or a parameter of the file changed, other prompts follow from that.
    if any(each.option.startswith(("prompt", "system", "shots", "--set", "code of run")) for each in options):
        return
    differing = [key for key, value in first.prompts.items() if second.prompts.get(key, value) != value]
    if differing:
        key = next((key for key in differing if key in first.examples and key in second.examples), None)
        texts = ("", "") if key is None else (first.examples[key], second.examples[key])
        yield Difference("prompts as sent", *texts)


def _pair_differences(a: Pair, b: Pair, first: RunFigures, second: RunFigures) -> Iterator[Difference]:
    texts = [
        ("model", a.model, b.model),
        ("temperature", _number(a.temperature), _number(b.temperature)),
        ("reasoning effort", a.effort or NONE, b.effort or NONE),
    ]
    if a.model == b.model:
        texts.append(("address", first.addresses.get(a.model, NONE), second.addresses.get(b.model, NONE)))
    yield from (Difference(*each) for each in texts if each[1] != each[2])


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:g}"


def _flips(a: RowFigures, b: RowFigures, names: Mapping[str, str], has_right: bool) -> tuple[Flip, ...]:
    both = (Flip(names.get(key, key), value, b.figures[key]) for key, value in a.figures.items() if key in b.figures)
    differing = (flip for flip in both if flip.a != flip.b)
    flips = (flip for flip in differing if not has_right or (flip.a >= _RIGHT) != (flip.b >= _RIGHT))
    return tuple(sorted(flips, key=lambda flip: (-abs(flip.a - flip.b), flip.item)))


def runs_left_out(comparisons: Sequence[RunComparison]) -> str:
    """Returns a sentence if not every two runs are compared; else nothing."""
    names = {name for compared in comparisons for name in (compared.a, compared.b)}
    return f"Of more than {_RUNS_MOST} runs, each is compared with the first alone." if len(names) > _RUNS_MOST else ""


def comparison_lines(comparisons: Sequence[RunComparison]) -> list[str]:
    """Returns the comparisons as lines for people."""
    lines = [*filter(None, [runs_left_out(comparisons)])]
    for compared in comparisons:
        if compared.why_not:
            lines.append(f"not compared: {compared.why_not}")
            continue
        lines.append(compared.sentence)
        for each in compared.differences:
            if each.is_long:
                lines += [f"  {each.option} (- {compared.a}, + {compared.b})"]
                lines += [f"    {line}" for line in each.lines()]
        for row in compared.rows:
            lines += _row_lines(row, compared)
    return lines


def _row_lines(row: RowComparison, compared: RunComparison) -> Iterator[str]:
    tests = sum(each.entry["p"] is not None for each in compared.rows)
    difference = entry_text(row.entry, compared.of, tests, "model" if row.a == row.b else "pair")
    extra = [each.brief for each in row.differences if each not in compared.differences]
    yield f"{row.name}: {difference}" + (f"; differ in {', '.join(extra)}" if extra else "")
    ahead_in = "right only in" if compared.has_right else "higher in"
    for name, ahead in (
        (compared.a, [flip.item for flip in row.flips if flip.a > flip.b]),
        (compared.b, [flip.item for flip in row.flips if flip.a < flip.b]),
    ):
        if ahead:
            rest = f" and {len(ahead) - _NAMED:,} more" if len(ahead) > _NAMED else ""
            yield f"  {ahead_in} {name} ({len(ahead):,}): {'; '.join(ahead[:_NAMED])}{rest}"
