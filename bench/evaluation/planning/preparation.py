"""A run that is ready to begin: folder, work, engine settings, and the manifest's contents.

Holds what all benchmarks share before anything is sent, and the checks that need no benchmark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

from msgspec import structs

from ....configuration.configuration import check_prices
from ....configuration.declared_options import absolute_value
from ....configuration.errors import UsageError
from ....configuration.options import SENDING, SendingOptions
from ....engine.attempts.money import why_unbounded, worst_cost
from ....engine.call import Call
from ....engine.endpoint import EncodeError
from ....engine.estimate import TokenEstimate
from ....engine.fault import LocalFault
from ....engine.pairs import Pair
from ....engine.runs.run_folder import MANIFEST, read_manifest
from ....engine.store.snapshot import DamagedSnapshot, digest_of
from ....providers.llm.protocol import is_effort
from ....providers.model_remarks import remarks_on
from ....providers.pages.guard import parse_allowed
from ....providers.retrieval import CORPUS_LANE
from ....providers.search.access import is_search
from ....wiring import Settings, access_to, keyless_endpoint_to
from ..door.judges import takes_temperature
from ..door.kept_options import kept_options
from ..door.prepared_run import PreparedRun
from ..door.treatments import pairs_in


def begun_with(out: Path, benchmark: str, option: str, decided: str) -> Mapping[str, Any]:
    """Returns what was decided by the table of models for the run that has begun in a folder, by its name in the
    specification: a run keeps it. Empty if none has begun, or if `option` had decided."""
    manifest = begun_manifest(out)
    decision = (manifest.get("specification") or {}).get(decided)
    return decision if kept_options(manifest, benchmark).get(option) is None and isinstance(decision, dict) else {}


def begun_manifest(out: Path) -> Mapping[str, Any]:
    """Returns the manifest of the run in a folder; empty if none has begun there."""
    # Whether the folder is usable, and belongs to this run, is checked when it is opened.
    with suppress(LocalFault):
        return read_manifest(out) if (out / MANIFEST).exists() else {}
    return {}


def pairs_of(
    models: Sequence[str],
    temperatures: Sequence[float | None],
    efforts: Sequence[str],
    settings: Settings,
    out: Path,
) -> tuple[tuple[Pair, ...], tuple[str, ...]]:
    """Returns every model at every temperature and effort, and sentences on temperatures that are not sent. A
    run that has begun in `out` goes on with its temperatures, whatever the table of models says by now."""
    pairs: list[Pair] = []
    without: list[str] = []
    before = pairs_in(begun_manifest(out).get("specification") or {})
    for model, effort in product(models, efforts or (None,)):
        plain = Pair(model, None, effort)
        for pair in (Pair(model, temperature, effort) for temperature in temperatures or (None,)):
            takes = pair in before or takes_temperature(model, effort, settings)
            if pair.temperature is not None and not takes:
                without.append(str(plain))
            pairs.append(pair if takes else plain)
    without = list(dict.fromkeys(without))
    verb = "takes no temperature: it" if len(without) == 1 else "take no temperature: each"
    notes = (f"{', '.join(without)} {verb} is asked once, without one",) if without else ()
    return tuple(dict.fromkeys(pairs)), notes


def address_of(lane: str, settings: Settings) -> str:
    """Returns the address of a lane as in the cache keys of its calls; for documents on this machine, their digest."""
    if lane != CORPUS_LANE or settings.corpus is None:
        return access_to(lane, settings).target.specified
    from ....providers.search.documents import CorpusError, digest_of, list_documents

    try:
        return f"corpus:{digest_of(list_documents(settings.corpus))}"
    except CorpusError as error:
        raise UsageError(f"--corpus: {error}") from error


def check_cost_is_bounded(max_tokens: Mapping[str, int | None], settings: Settings, *, has_option: bool = True) -> None:
    """Raises UsageError if --max-cost can't be kept: a model has no price, or nothing bounds its answers' length.
    `max_tokens`: what each model's calls set. `has_option`: whether --max-tokens sets it."""
    check_prices(max_tokens, settings)
    if settings.max_cost is None or settings.mode == "strict":
        return
    prices, estimate = settings.price_table(), TokenEstimate()
    for model, limit in max_tokens.items():
        price, call = prices.get(model), Call(model, "", max_tokens=limit)
        if price is not None and worst_cost(call, price, estimate) is None:
            raise UsageError(why_unbounded(call, price, has_option=has_option))


def model_remarks(run: PreparedRun) -> Iterator[str]:
    """Yields what should be read about a run's models before they are asked."""
    settings = run.settings
    for model, limit in run.max_tokens.items():
        if not is_search(model):
            facts, is_declared = settings.facts_of(model), model in settings.models
            yield from remarks_on(model, facts, settings.day(), limit, is_declared=is_declared)


def check_models_take(calls: Iterable[Call], settings: Settings) -> None:
    """Raises UsageError if a model is known to refuse a parameter of its call, since every call of a run would fail."""
    for call in calls:
        access, effort = access_to(call.model, settings), call.reasoning_effort
        if effort is not None:
            levels = settings.facts_of(call.model).efforts
            _check_effort(call.model, effort, access.protocol.efforts_among(levels), is_by_table=levels is not None)
        try:
            keyless_endpoint_to(access).encode(call)
        except EncodeError as error:
            raise UsageError(str(error)) from error


def _check_effort(model: str, effort: str, words: Sequence[str], *, is_by_table: bool) -> None:
    if is_effort(effort, words):
        return
    of_these = f"a reasoning effort of {', '.join(words).replace('N', 'or a number of tokens')}"
    more = f'; efforts under [models."{model}"] in a --config file says otherwise' if is_by_table else ""
    raise UsageError(f"{model}: expected {of_these if words else 'no reasoning effort at all'}, got {effort}{more}")


def check_snapshot(settings: Settings) -> None:
    """Raises an error for an unusable snapshot, before a folder is created."""
    if settings.snapshot is None:
        return
    try:
        digest_of(settings.snapshot)
    except DamagedSnapshot:
        raise
    except LocalFault as fault:
        raise UsageError(f"--snapshot: expected a file that `millstream cache export` wrote; {fault}") from fault


def check_hosts(settings: Settings) -> None:
    """Raises an error for a wrong --allow-host, before a folder is created."""
    for host in settings.allow_hosts:
        try:
            parse_allowed(host)
        except ValueError as error:
            raise UsageError(f"--allow-host {error}") from error


def check_sinks(settings: Settings) -> None:
    """Raises an error for an unknown sink, before a folder is created. It is opened when the run begins."""
    if settings.sink is not None:
        settings.others.sink(settings.sink.partition(":")[0])


def kept(sending: SendingOptions) -> dict[str, Any]:
    """Returns the sending options as a manifest stores them, with absolute paths."""
    paths = {name: absolute_value(SENDING[name], value, Path()) for name, value in sending.given().items()}
    return structs.asdict(structs.replace(sending, **paths))


def of_one_sweep(runs: tuple[PreparedRun, ...]) -> tuple[PreparedRun, ...]:
    """Returns the runs of one sweep, each with the folders of the others, which it knows even when it is resumed
    alone."""
    if len(runs) == 1:
        return runs
    return tuple(in_sweep(run, tuple(other.out.name for other in runs if other is not run)) for run in runs)


def in_sweep(run: PreparedRun, sweep: tuple[str, ...]) -> PreparedRun:
    return structs.replace(run, sweep=sweep, kept={**run.kept, "sweep": list(sweep)})


def with_settings(prepared: PreparedRun, **changes: Any) -> PreparedRun:
    return structs.replace(prepared, settings=structs.replace(prepared.settings, **changes))
