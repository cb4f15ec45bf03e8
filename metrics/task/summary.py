"""The scores of a task: for each model a mean with its interval, by group, and paired comparisons of models.

Owns the shape of a task's part of `scores.json`: keys in a stable order, None where there is no score, never a NaN.
`trials` combines trials.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from ...format import count_text, part_of
from ..statistics.comparisons import holm, paired_entry
from ..statistics.intervals import Bounds, are_binary, interval_entry, mean_interval, range_text
from .trials import FUNCTION_RAISED, GAVE_NONE, OF_FUNCTION, ModelAnswers, Problems, ReadingRules, Values

OF = "items"
# The comparisons of every two of more models than these would fill the page, and nobody would read them.
ALL_PAIRS_MOST = 30
_TOO_MANY = "half of them or more"
_MEND = " Mend the function, then `millstream rescore DIR --task FILE` scores these answers again without a call."
_CUT_PERCENT, _WITHOUT_PERCENT, _UNSCORED_PERCENT = 1, 1, 10


def scores(models: Sequence[ModelAnswers], rules: ReadingRules) -> dict[str, Any]:
    """Returns a task's part of `scores.json`."""
    within = rules.within or seen_bounds(models)
    values = {each.name: each.values(rules) for each in models}
    comparable = [each for each in models if not np.isnan(values[each.name]).all()]
    entries = {each.name: _entry(each, values[each.name], rules, within) for each in models}
    _adjust([row for entry in entries.values() for row in entry.get("variant_pairs", ())])
    pairs = _pairs(comparable, values, within)
    _adjust(pairs)
    unmeasured = [sentence for each in models for sentence in _unmeasured(each, values[each.name], rules)]
    return {
        "combine": rules.combine,
        "unreadable": rules.unreadable,
        "within": None if within is None else list(within),
        "models": entries,
        "pairs": pairs,
        "pairs_left_out": _left_out(len(comparable)),
        "unmeasured": [*unmeasured, *_raised(models)],
    }


def seen_bounds(models: Sequence[ModelAnswers]) -> Bounds | None:
    """Returns (0, 1) if every score is 0 or 1, since no mean lies outside; else None."""
    every = np.concatenate([np.zeros(0), *(each.column() for each in models)])
    return (0.0, 1.0) if not np.isnan(every).all() and are_binary(every) else None


def _entry(model: ModelAnswers, item_values: Values, rules: ReadingRules, within: Bounds | None) -> dict[str, Any]:
    of_shares = rules.within == (0, 1) or are_binary(model.column())
    entry = _mean(item_values, within, of_shares)
    scored = entry.pop(OF)
    entry |= {
        OF: rules.items if rules.items is not None else len(model.items),
        "items_scored": scored,
        "trials": model.trials,
        "answers": model.count,
        "answers_without_score": model.without_score(),
        "answers_empty": sum(model.is_empty),
        "answers_cut": sum(model.is_truncated),
        "refused": sum(model.is_refused),
        "mean_with_unreadable_as_0": _mean_with_zeros(model, rules),
        "problems": dict(model.problems[None].most_common()),
        "groups": _groups(model, item_values, within, of_shares),
    }
    if model.parts:
        entry["scores"] = {part: _mean_of_part(model, rules, part) for part in model.parts}
    if model.variants:
        entry |= _variants(model, rules, within, of_shares)
    entry["remarks"] = list(_remarks(model, entry, rules))
    return entry


def _mean(values: Values, within: Bounds | None, of_shares: bool) -> dict[str, Any]:
    """Returns a mean over items. `of_shares` says whether all their scores are 0 or 1."""
    numbers = values[~np.isnan(values)]
    shares = numbers if of_shares else None
    held = None if not numbers.size else mean_interval(numbers, within=within, of=OF, shares=shares)
    return {"mean": None if held is None else held.mean, **interval_entry(held, OF), OF: int(numbers.size)}


def _mean_of_part(model: ModelAnswers, rules: ReadingRules, part: str) -> dict[str, Any]:
    is_main = part in model.firsts
    is_share = are_binary(model.column(part)) or (is_main and rules.within == (0, 1))
    entry = _mean(model.values(rules, part), (0.0, 1.0) if is_share else None, is_share)
    if entry["mean"] is None and model.count:
        entry["ci95_note"] = (
            f"no interval: {model.without_score(part):,} of {count_text(model.count, 'answer')} have no score"
        )
    return {**entry, "problems": dict(model.problems[part].most_common())} if model.has_own_problems(part) else entry


def _mean_with_zeros(model: ModelAnswers, rules: ReadingRules) -> float | None:
    values = model.values(replace(rules, unreadable="zero", within=None))
    numbers = values[~np.isnan(values)]
    return float(numbers.mean()) if numbers.size and model.without_score() else None


def _groups(model: ModelAnswers, values: Values, within: Bounds | None, of_shares: bool) -> dict[str, Any]:
    names = sorted({group for group in model.groups if group is not None})
    of_item = np.array(model.groups, dtype=object)
    return {name: _mean(values[of_item == name], within, of_shares) for name in names}


def _variants(model: ModelAnswers, rules: ReadingRules, within: Bounds | None, of_shares: bool) -> dict[str, Any]:
    """Returns the model's scores in each variant of the prompt, and the paired comparisons of the variants."""
    each = [model.of_variant(name) for name in sorted(model.variants)]
    values = {one.name: one.values(rules) for one in each}
    measured = [one for one in each if not np.isnan(values[one.name]).all()]
    return {
        "variants": {name: _mean(found, within, of_shares) for name, found in values.items()},
        "variant_pairs": _pairs(measured, values, within),
    }


def _pairs(models: Sequence[ModelAnswers], values: Mapping[str, Values], within: Bounds | None) -> list[dict[str, Any]]:
    """Returns the comparison of every two models over the items scored for both, or of each with the next in the order
    of their means, if there are more than ALL_PAIRS_MOST."""
    figures_of = {each.name: dict(zip(each.items, values[each.name].tolist(), strict=True)) for each in models}
    are_shares = {each.name: are_binary(each.column()) for each in models}
    rows: list[dict[str, Any]] = []
    ranked = sorted(figures_of, key=lambda name: -np.nanmean(values[name]))
    for a, b in pairwise(ranked) if _left_out(len(models)) else combinations(figures_of, 2):
        first, second = figures_of[a], figures_of[b]
        entry = paired_entry(first, second, within=within, of=OF, of_shares=are_shares[a] and are_shares[b])
        if entry is not None:
            rows.append({"a": a, "b": b, **entry})
    return rows


def _adjust(rows: Sequence[dict[str, Any]]) -> None:
    """Gives each comparison its p-value adjusted by Holm over all of these."""
    for row, adjusted in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_adjusted"] = adjusted


def _left_out(models: int) -> int:
    """Returns how many pairs of this many models are not compared."""
    return (models - 1) * (models - 2) // 2 if models > ALL_PAIRS_MOST else 0


def _unmeasured(model: ModelAnswers, values: Values, rules: ReadingRules) -> Iterator[str]:
    """Yields a sentence on the model if it has no meaningful score, and on each other score that it lacks."""
    if (sentence := _without_main(model, values, rules)) is not None:
        yield sentence
    for part in filter(model.has_own_problems, model.parts):
        if model.is_worthless(part):
            yield f"{model.name}: {part} has no score: {_lost(model, part)}, {_TOO_MANY}.{_advice(model, part)}"


def _without_main(model: ModelAnswers, values: Values, rules: ReadingRules) -> str | None:
    if rules.within is not None and (outside := model.outside(rules.within)):
        return (
            f"{model.name} has no score: {part_of(outside, model.count)} have one outside {range_text(rules.within)}, "
            "which the scorer never gives. `millstream rescore DIR --task FILE` scores them again without a call."
        )
    if model.is_worthless():
        return f"{model.name} has no score: {_lost(model)}, {_TOO_MANY}.{_advice(model)}"
    planned = model.trials * max(1, len(model.variants))
    if model.count and (2 * np.bincount(model.item) < planned).all():
        trials = f"none of its items has half of its {model.trials:,} trials yet"
        return f"{model.name} has no score: {trials} ({count_text(model.count, 'answer')})."
    if np.isnan(values).all():
        return f"{model.name} has no score: none of its items has one ({model.count:,} answers)."
    if len(model.firsts) > 1:
        names = ", ".join(sorted(model.firsts))
        return f"{model.name}: its main score mixes several ({names}): let score give the same first name each time."
    return None


def _raised(models: Sequence[ModelAnswers]) -> Iterator[str]:
    """Yields a sentence on each score function that raised errors: on how many answers of all models, and which."""
    names_of = defaultdict[tuple[tuple[str, int], ...], list[str]](list)
    for part in dict.fromkeys(part for model in models for part in model.parts) or (None,):
        raised = Problems()
        for model in models:
            for problem, number in model.problems[part if part in model.parts else None].raised.items():
                raised.add(problem, number)
        names_of[tuple(raised.most_common())].append(part or "")
    for errors, names in names_of.items():
        numbers = [number for _, number in errors]
        several = len(errors) > 1
        causes = [error.removeprefix(FUNCTION_RAISED).strip() + f" ({number:,})" * several for error, number in errors]
        if errors:
            yield (
                f"{', '.join(filter(None, names))}{': ' if any(names) else ''}{FUNCTION_RAISED} on {sum(numbers):,} of "
                f"{sum(model.count for model in models):,} answers: {'; '.join(causes)}.{_MEND}"
            )


def _remarks(model: ModelAnswers, entry: Mapping[str, Any], rules: ReadingRules) -> Iterator[str]:
    """Yields sentences that qualify the model's scores."""
    how = "count as 0" if rules.unreadable == "zero" else "are left out"
    for part in filter(model.has_own_problems, model.parts):
        if _WITHOUT_PERCENT * model.count < 100 * model.without_score(part) and not model.is_worthless(part):
            yield f"{model.name}: {part}: {_lost(model, part)}; they {how}.{_advice(model, part)}"
    if model.is_worthless() or entry["mean"] is None:
        return
    if 100 * model.without_score() > _WITHOUT_PERCENT * model.count:
        if rules.unreadable != "zero":
            how += f"; as 0 they would make its mean {entry['mean_with_unreadable_as_0']:.3f}"
        yield f"{model.name}: {_lost(model)}; they {how}.{_advice(model)}"
    cut = sum(model.is_truncated)
    if 100 * cut > _CUT_PERCENT * model.count:
        yield f"{model.name}: {part_of(cut, model.count)} are cut off at max_tokens, above {_CUT_PERCENT}%."
    missing = entry[OF] - entry["items_scored"]
    if 100 * missing > _UNSCORED_PERCENT * entry[OF]:
        yield (
            f"{model.name} is scored on {entry['items_scored']:,} of {entry[OF]:,} items: its mean is of these alone, "
            f"so compare models by the paired differences."
        )


def _lost(model: ModelAnswers, part: str | None = None) -> str:
    without, raised = model.without_score(part), model.problems[part].raised.total()
    empty = min(model.silent(part), without - raised)
    why = f"{empty:,} empty, {without - empty - raised:,} that cannot be read"
    if raised:
        why += f", {raised:,} whose score function raised an error"
    return f"{part_of(without, model.count)} have no score ({why})"


def _advice(model: ModelAnswers, part: str | None = None) -> str:
    if 2 * sum(model.is_truncated) >= max(1, model.without_score(part)):
        return " A larger max_tokens, or none, would leave them room."
    problems = (model.problems[part] - model.problems[part].raised).most_common(1)
    if not problems:
        return ""
    problem = problems[0][0]
    return f" Most often: {problem}.{_MEND if problem.startswith(OF_FUNCTION) and problem != GAVE_NONE else ''}"
