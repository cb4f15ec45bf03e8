"""From what was asked to what will be sent: everything that can be wrong is found here, before anything is sent or
written.

Owns the checks and their messages, and what a manifest keeps so that `resume` needs only the folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, structs

from .. import fixtures
from ..bench.millstone.dataset import Dataset, DatasetError, load, select
from ..bench.millstone.grid import Grid, Protocol, largest_prompt
from ..bench.millstone.prompts import Citations
from ..bench.millstone.sweep import Asked, specification
from ..engine.call import Call
from ..engine.endpoint import EncodeError
from ..engine.estimate import OUTPUT_FIRST, TOKENS_PER_CHAR
from ..engine.limits import Tokens, declared_quota
from ..metrics.stance import Reading
from ..wiring import Settings, access_to, keyless_endpoint_to
from .configuration import Configuration, settings_for
from .options import MillstoneOptions, Sending
from .refusal import UsageError

SAMPLE = Path(fixtures.__file__).resolve().parent / "data" / "millstone"


class Prepared(Struct, frozen=True, kw_only=True):
    """One run, ready to begin. `sweep`: the names of the folders beside it that share its --max-cost."""

    out: Path
    grid: Grid
    asked: Asked
    settings: Settings
    specification: dict[str, Any]
    options: dict[str, Any]
    dataset: dict[str, Any]
    sweep: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def prompts(self) -> int:
        """Of each pair of model and temperature."""
        return len(self.grid)


def prepare(
    out: Path, run: MillstoneOptions, sending: Sending, configuration: Configuration, *, needs_keys: bool = True
) -> Prepared:
    """Check one run to the end. Nothing is written. Without `needs_keys` it can be planned, not sent."""
    settings = settings_for(run.model, sending, configuration)
    if not needs_keys:
        settings = structs.replace(settings, needs_keys=False)
    endpoints = {model: access_to(model, settings).target.specified for model in run.model}
    if settings.max_cost is not None:
        prices = settings.price_table()
        for model in run.model:
            if prices.get(model) is None:
                raise UsageError(
                    f"model {model} has no price, so --max-cost can't be kept: give it one under "
                    f'[prices."{model}"] in a --config file'
                )
    notes = []
    path = SAMPLE if run.dataset is None else Path(run.dataset)
    if run.dataset is None:
        notes.append("no --dataset given: asking sample issues that come with millstream, which are no published data")
    dataset = select(_load(path), run.issues, run.limit)
    grid = Grid(dataset, cast(Protocol, run.protocol), run.templates, run.trials, cast(Citations, run.citations))
    asked = Asked(run.model, run.temperature or (None,), run.max_tokens, cast(Reading, run.stance))
    _refuse_what_a_model_never_takes(asked, settings)
    _refuse_what_no_minute_holds(grid, asked, settings)
    return Prepared(
        out=out,
        grid=grid,
        asked=asked,
        settings=settings,
        specification=specification(grid, asked, endpoints),
        options={"millstone": _as_resumed(run, dataset, path), "sending": _kept(sending)},
        dataset={"path": str(path), "name": dataset.name, "digest": dataset.digest, "issues": len(dataset.issues)},
        notes=tuple(notes),
    )


def _load(path: Path) -> Dataset:
    try:
        return load(path)
    except OSError as error:
        raise DatasetError(f"{path}: expected a readable file or folder, came: {error.strerror}") from error


def _refuse_what_a_model_never_takes(asked: Asked, settings: Settings) -> None:
    """A parameter that is known to be refused would fail every call of the grid."""
    for model, temperature in asked.pairs():
        call = Call(model, "A or B?", temperature=temperature, max_tokens=asked.max_tokens_of(model))
        try:
            keyless_endpoint_to(access_to(model, settings)).encode(call)
        except EncodeError as error:
            raise UsageError(str(error)) from error


def _refuse_what_no_minute_holds(grid: Grid, asked: Asked, settings: Settings) -> None:
    """A prompt larger than a lane's tokens a minute could never be sent."""
    quotas = {model: declared_quota(settings.lane_of(model)) for model in asked.models}
    limited = {model: quota for model, quota in quotas.items() if quota.least_tokens < float("inf")}
    if not limited:
        return
    chars, where = largest_prompt(grid)
    for model, quota in limited.items():
        needed = Tokens(round(chars * TOKENS_PER_CHAR), asked.max_tokens_of(model) or OUTPUT_FIRST)
        if (lack := quota.lacks(needed)) is not None:
            raise UsageError(
                f"prompt {where} needs about {lack.needed:,} {lack.what}; lane {model} admits at most "
                f"{lack.most:,.0f} a minute: raise {lack.name} or cut the prompt"
            )


def _as_resumed(run: MillstoneOptions, dataset: Dataset, path: Path) -> dict[str, Any]:
    """The options with which the same prompts are made again, whatever becomes of a file of ids."""
    kept = run.as_dict()
    kept["issues_asked"], kept["limit_asked"] = kept["issues"], kept.pop("limit")
    kept["issues"] = ",".join(issue.id for issue in dataset.issues)
    kept["dataset"] = None if run.dataset is None else str(path)
    return kept


def _kept(sending: Sending) -> dict[str, Any]:
    kept = sending.as_dict()
    for name in ("config", "cache"):
        if kept[name] is not None:
            kept[name] = str(Path(kept[name]).expanduser().absolute())
    return kept


def options_of(manifest: Mapping[str, Any]) -> tuple[MillstoneOptions, Sending]:
    """What a manifest keeps of `_as_resumed` and `_kept`. Raises KeyError or TypeError where it was not ours."""
    kept = dict(manifest["options"]["millstone"])
    del kept["issues_asked"], kept["limit_asked"]
    for name in ("model", "temperature"):
        kept[name] = tuple(kept[name])
    return MillstoneOptions(**kept), Sending(**manifest["options"]["sending"])


def of_one_sweep(runs: tuple[Prepared, ...]) -> tuple[Prepared, ...]:
    """Runs that know of each other, also when one of them is resumed alone."""
    if len(runs) == 1:
        return runs
    return tuple(in_sweep(run, tuple(other.out.name for other in runs if other is not run)) for run in runs)


def in_sweep(run: Prepared, sweep: tuple[str, ...]) -> Prepared:
    return structs.replace(run, sweep=sweep, options={**run.options, "sweep": list(sweep)})


def with_settings(prepared: Prepared, **changes: Any) -> Prepared:
    return structs.replace(prepared, settings=structs.replace(prepared.settings, **changes))
