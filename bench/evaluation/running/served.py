"""Who answered: which models a run's servers name, and the rows of scores that follow from it.

The answers of a pair are one row under its name, with the served model behind it if that is another than was asked.
Two served models are two rows; an answer or an item that no one of them gave alone is in none. Knows no benchmark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import field

from ....configuration.errors import UsageError
from ....engine.fault import LocalFault
from ....engine.pairs import Pair, PairCounts, order_of, pair_of
from ....engine.runs.proof import ANSWERED, Proof
from ....engine.runs.run_folder import FAILURES, RECORDS
from ....metrics.naming import row_names
from ....providers.models import bare_name, bundled_models, is_other_snapshot
from ....providers.table import PROVIDERS
from ....wiring import Settings
from ..door.item_line import NamedLine
from ..door.served_rows import ServedRows, bare_names
from .journals import decoded
from .record_lines import record_lines

UNNAMED = "without a name"
# What can be wrong with a folder's files: whoever reads them for more than names reports it.
_UNREADABLE = (OSError, ValueError, LocalFault, UsageError, msgspec.ValidationError)


def served_rows(
    ended: Mapping[Pair, PairCounts],
    answers_as: Mapping[str, str | None],
    records: Callable[[], Iterable[bytes]],
) -> ServedRows:
    """Returns the rows of a run. `answers_as` is that of `compared_names`; `records` reads the run's records."""
    # In the order of names: the records' own differs from run to run.
    ended = dict(sorted(ended.items(), key=lambda each: order_of(each[0])))
    names: dict[Pair, dict[str, str]] = {}
    remarks: list[str] = []
    unmeasured: list[str] = []
    has_two_judges = False
    judges: dict[str, Counter[str]] = {}
    for counts in ended.values():
        for judge, names_of_judge in counts.judges.items():
            judges.setdefault(judge, Counter()).update(names_of_judge)
    answered: list[tuple[Pair, Mapping[str, int], str]] = [(pair, counts.served, "") for pair, counts in ended.items()]
    answered += [(Pair(judge, None), served, "the judge ") for judge, served in sorted(judges.items())]
    rows = row_names(pair for pair, counts in ended.items() if counts.answered)
    stated: dict[str, Mapping[str, int]] = {}
    for pair, served, role in answered:
        row = rows.get(pair, pair.model)
        if served and not role:
            unnamed = ended[pair].answered - sum(served.values())
            stated[row] = dict(sorted(served.items())) | ({UNNAMED: unnamed} if unnamed > 0 else {})
        models = {bare: name for joined in sorted(served, reverse=True) for bare, name in bare_names(joined).items()}
        expected = answers_as.get(pair.model)
        # A server may name what the name stands for, or the name itself.
        is_other = expected is not None and not models.keys() <= {bare_name(expected), bare_name(pair.model)}
        if not role and (is_other or len(models) > 1):
            names[pair] = {bare: f"{pair.model} ({name})" for bare, name in models.items()}
        fact = f"{role}{row} was answered by {names_text(served)}"
        if len(models) > 1:
            has_two_judges = has_two_judges or bool(role)
            for_row = "no one model was measured, and none of its rows has a rank"
            unmeasured.append(f"{fact}: {'two models judged under one name: no model has a rank' if role else for_row}")
        elif is_other:
            remarks.append(
                f"{fact}, another model than was asked{'' if role else ': it stands beside no published row'}; "
                f'if the name stands for it, say so with answers_as under [models."{pair.model}"]'
            )
        elif len(served) > 1:
            remarks.append(f"{fact}, snapshots of one model")
        elif expected is not None and any(is_other_snapshot(expected, name) for name in served):
            remarks.append(f"{fact}, another snapshot than was asked")
    several = {pair for pair, models_of in names.items() if len(models_of) > 1}
    divided = _divided_items(records(), several) if several else frozenset[tuple[Pair, str]]()
    return ServedRows(names, tuple(remarks), tuple(unmeasured), stated, has_two_judges, divided)


class _ItemLine(NamedLine, frozen=True, kw_only=True):
    item: str = ""


def _divided_items(records: Iterable[bytes], pairs: Container[Pair]) -> frozenset[tuple[Pair, str]]:
    """Returns the items of these pairs whose records have not one served name. A record without an item is one alone,
    as of a grid."""
    models: dict[tuple[Pair, str], set[str]] = {}
    with suppress(*_UNREADABLE):
        for line in decoded(records, _ItemLine, RECORDS):
            if line.item and (pair := pair_of(line)) in pairs:
                models.setdefault((pair, line.item), set()).update(bare_names(line.served or ""))
    return frozenset(item for item, names in models.items() if len(names) > 1)


class _NamedCounts(PairCounts, kw_only=True):
    model: str
    temperature: float | None = None
    effort: str | None = None
    judges: dict[str, dict[str, int]] = field(default_factory=dict, name="served_judge")


def rows_in(folder: Path, manifest: Mapping[str, Any] | None) -> ServedRows:
    """Returns the rows of a run's folder: by the counts of its manifest, or by the records of a run that has not ended,
    as far as they can be read. Without a manifest, models of the table of models are compared with the served ones."""
    noted = _noted_names(manifest) if manifest and manifest.get("ended") is not None else {}
    ended = noted or _recounted_names(folder)
    models = {pair.model for pair in ended}.union(*(counts.judges for counts in ended.values()))
    in_table = {model: model for model in models if bundled_models().row(model) is not None}
    answers_as = in_table if manifest is None else manifest.get("answers_as") or {}
    return served_rows(ended, answers_as, lambda: record_lines(folder / RECORDS, is_quiet=True))


def stated_in(ended: PairCounts) -> dict[str, Any]:
    """Returns what the servers of a pair's answers state of themselves, with the number of answers of each name."""
    stated = {"served": ended.served, "fingerprints": ended.fingerprints, "served_judge": ended.judges}
    return {name: counts for name, counts in stated.items() if counts}


def compare_names(folder: Path, manifest: Mapping[str, Any], named: Mapping[Pair, PairCounts], proof: Proof) -> None:
    """Adds a finding for each pair for which the manifest has other names than its lines; not if lines are wrong.
    `named`: the counts of names in the lines; empty: they are read."""
    if manifest.get("ended") is None or not manifest.get("counts") or proof.wrongs:
        return
    noted, recounted = _noted_names(manifest), named or _recounted_names(folder)
    for pair in sorted(noted.keys() | recounted.keys(), key=order_of):
        has, gives = (stated_in(each.get(pair, PairCounts())) for each in (noted, recounted))
        if has != gives:
            proof.add(f"manifest.json: for {pair}, servers state {has}; {RECORDS} and {FAILURES} hold {gives}")


def _noted_names(manifest: Mapping[str, Any]) -> Mapping[Pair, PairCounts]:
    """Returns the counts of names in a manifest; none if it can't be read."""
    with suppress(msgspec.ValidationError):
        return {pair_of(row): row for row in msgspec.convert(manifest.get("counts") or [], list[_NamedCounts])}
    return {}


def _recounted_names(folder: Path) -> dict[Pair, PairCounts]:
    """Returns the counts of names in a folder's journals, as far as they can be read."""
    ended = dict[Pair, PairCounts]()
    with suppress(*_UNREADABLE):
        for name in (RECORDS, FAILURES):
            for line in decoded(record_lines(folder / name, is_quiet=True), NamedLine, name):
                counts = ended.setdefault(pair_of(line), PairCounts())
                counts.ok += line.status in ANSWERED
                line.name_in(counts)
    return ended


def compared_names(models: Iterable[str], settings: Settings) -> dict[str, str | None]:
    """Returns for each model the name that a served one is compared with: what a configuration says that it stands for,
    else its own. None for a deployment, and for a name at a server of one's own that the table of models lacks."""
    table = bundled_models()
    public = {*table.vendors, *table.offering, *table.same} - {"azure", *settings.providers}
    names: dict[str, str | None] = {}
    for model in models:
        provider = model.partition("/")[0]
        variable = getattr(PROVIDERS.get(provider), "url_variable", None)
        is_own = settings.base_url is not None or bool(variable and settings.variables.get(variable, "").strip())
        is_known = table.row(model) is not None or (not is_own and provider in public)
        names[model] = settings.facts_of(model).answers_as or (model if is_known else None)
    return names


def names_text(served: Mapping[str, int]) -> str:
    most_first = sorted(served.items(), key=lambda each: (each[0] == UNNAMED, -each[1], each[0]))
    return ", ".join(f"{count:,} {name}" if name == UNNAMED else f"{name} ({count:,})" for name, count in most_first)
