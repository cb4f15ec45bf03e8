"""A run that can begin: its folder, its work, the settings of its engine, and what its manifest keeps.

Owns what every benchmark's run has in common before it is sent, and the checks that no benchmark is needed for. How
options become a benchmark's work: millstone_work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from ..engine.call import Call
from ..engine.estimate import TokenEstimate
from ..engine.fault import LocalFault
from ..engine.money import why_unbounded, worst_cost
from ..engine.snapshot import DamagedSnapshot, digest_of
from ..providers.pages.guard import parse_allowed
from ..wiring import ConfigurationError, Settings, accesses_to
from .configuration import read_configuration, settings_for_any
from .options import Sending
from .refusal import UsageError
from .work import Work


class Prepared(Struct, frozen=True, kw_only=True):
    """One run, ready to begin. `sweep`: the names of the folders beside it that share its --max-cost. `notes` are
    about its options and are told once; `warnings` are about its data and are told by every command."""

    out: Path
    work: Work
    settings: Settings
    specification: dict[str, Any]
    options: dict[str, Any]
    dataset: dict[str, Any]
    sweep: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Items of all pairs."""
        return self.work.items * len(self.work.pairs())


def settings_of(sending: Sending) -> Settings:
    """What an engine for whatever models are asked is built from. A lane of the file whose key is missing is left out:
    it is only missed once its model is asked for."""
    settings = settings_for_any(sending, read_configuration(sending.config))
    return structs.replace(
        settings, lanes=tuple(lane for lane in settings.lanes if _is_reachable(lane.model, settings))
    )


def _is_reachable(model: str, settings: Settings) -> bool:
    try:
        accesses_to(model, settings)
    except ConfigurationError:
        return False
    return True


def refuse_what_has_no_price(lanes: Iterable[str], settings: Settings) -> None:
    """A hard limit can't be kept over calls of unknown cost."""
    if settings.max_cost is None:
        return
    prices = settings.price_table()
    for model in lanes:
        if prices.get(model) is None:
            raise UsageError(
                f"model {model} has no price, so --max-cost can't be kept: give it one under "
                f'[prices."{model}"] in a --config file'
            )


def check_cost_is_bounded(max_tokens: Mapping[str, int | None], settings: Settings, *, has_option: bool = True) -> None:
    """Raises UsageError where --max-cost can't be kept over calls to some model: it has no price, or nothing bounds the
    length of its answers. `max_tokens`: what each model's calls set. `has_option`: --max-tokens sets it."""
    refuse_what_has_no_price(max_tokens, settings)
    if settings.max_cost is None or settings.mode == "strict":
        return
    prices, estimate = settings.price_table(), TokenEstimate()
    for model, limit in max_tokens.items():
        price = prices.get(model)
        if price is not None and worst_cost(Call(model, "", max_tokens=limit), price, estimate) is None:
            raise UsageError(why_unbounded(model, has_option=has_option))


def refuse_what_is_no_snapshot(settings: Settings) -> None:
    """Before a folder is begun that could only say so."""
    if settings.snapshot is None:
        return
    try:
        digest_of(settings.snapshot)
    except DamagedSnapshot:
        raise
    except LocalFault as fault:
        raise UsageError(f"--snapshot: expected a file that `millstream cache export` wrote; {fault}") from fault


def refuse_what_is_no_host(settings: Settings) -> None:
    """Before a folder is begun that could only say so."""
    for host in settings.allow_hosts:
        try:
            parse_allowed(host)
        except ValueError as error:
            raise UsageError(f"--allow-host {error}") from error


def refuse_what_is_no_sink(settings: Settings) -> None:
    """Before a folder is begun that could only say so. It is opened when the run begins."""
    if settings.sink is not None:
        settings.others.sink(settings.sink.partition(":")[0])


def kept(sending: Sending) -> dict[str, Any]:
    """How calls were sent, as a manifest keeps it."""
    found = sending.as_dict()
    for name in ("config", "cache", "snapshot"):
        if found[name] is not None:
            found[name] = str(Path(found[name]).expanduser().absolute())
    return found


def of_one_sweep(runs: tuple[Prepared, ...]) -> tuple[Prepared, ...]:
    """Runs that know of each other, also when one of them is resumed alone."""
    if len(runs) == 1:
        return runs
    return tuple(in_sweep(run, tuple(other.out.name for other in runs if other is not run)) for run in runs)


def in_sweep(run: Prepared, sweep: tuple[str, ...]) -> Prepared:
    return structs.replace(run, sweep=sweep, options={**run.options, "sweep": list(sweep)})


def with_settings(prepared: Prepared, **changes: Any) -> Prepared:
    return structs.replace(prepared, settings=structs.replace(prepared.settings, **changes))
