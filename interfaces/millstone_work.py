"""MillStone as the command line carries it out: from its options to a run that can be sent, and what its journals hold.

Owns the checks of its options and their messages, and what a manifest keeps so that `resume` needs only the folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, structs

from .. import fixtures
from ..bench.millstone.dataset import Dataset, DatasetError, load, select
from ..bench.millstone.grid import Grid, Protocol, default_max_tokens, largest_prompt
from ..bench.millstone.labels import compared, corrected
from ..bench.millstone.prompts import Citations
from ..bench.millstone.recount import recount
from ..bench.millstone.sweep import Asked, asked_of, read_done, run_sweep, specification
from ..engine.admission import Stop
from ..engine.call import Call
from ..engine.endpoint import EncodeError
from ..engine.estimate import OUTPUT_FIRST, TOKENS_PER_CHAR, TokenEstimate
from ..engine.fault import LocalFault
from ..engine.limits import Tokens, declared_quota
from ..engine.money import worst_cost
from ..engine.pairs import Done, Pair
from ..engine.run_folder import MANIFEST, RunFolder, read_manifest
from ..metrics.intervals import Over
from ..metrics.scores import scores as scores_of
from ..metrics.silence import Silence
from ..metrics.stance import Reading
from ..wiring import Engine, Settings, access_to, keyless_endpoint_to
from .benchmark_options import MillstoneOptions
from .configuration import Configuration, settings_for
from .interval_cell import interval_cell, single_figures
from .options import Sending
from .preparation import Prepared, check_cost_is_bounded, kept
from .refusal import UsageError
from .work import Counted

SAMPLE = Path(fixtures.__file__).resolve().parent / "data" / "millstone"
ANSWER_COLUMNS = ("cut off", "Other")
LITERAL = "--silence literal: silence is scored as the authors' script scores it, as if it were a position of its own"


class MillstoneWork(Struct, frozen=True):
    """A grid, and who is asked it."""

    grid: Grid
    asked: Asked
    specification: dict[str, Any]
    silence: Silence = "unscored"
    over: Over = "issues"

    benchmark = "millstone"
    item = "prompt"
    is_item_a_call = True

    @property
    def score_columns(self) -> tuple[str, ...]:
        return (*score_columns(self.over), *ANSWER_COLUMNS)

    @property
    def items(self) -> int:
        return len(self.grid)

    @property
    def lanes(self) -> tuple[str, ...]:
        return self.asked.models

    def pairs(self) -> list[Pair]:
        return self.asked.pairs()

    def worst_calls(self, settings: Settings) -> dict[str, float]:
        prices = settings.price_table()
        longest = max((item.prompt for item in self.grid), key=lambda prompt: len(prompt.encode()), default="")
        worst = {}
        for model in self.asked.models:
            call = Call(model, longest, max_tokens=self.asked.max_tokens_of(model))
            price = prices.get(model)
            if price is not None and (most := worst_cost(call, price, TokenEstimate())) is not None:
                worst[model] = most
        return worst

    def read_done(self, folder: RunFolder) -> Done:
        return read_done(folder)

    async def send(self, engine: Engine, folder: RunFolder, done: Done, item_ended: Callable[[], None]) -> list[Stop]:
        # A prompt is one call, which the engine's own events tell of.
        return await run_sweep(engine, folder, self.grid, self.asked, done)

    def count(self, folder: RunFolder) -> Counted:
        counted = recount(folder.records.read(), folder.failures.read(), str(folder.records.path))
        scores = scores_of(counted.tally, over=self.over, asked=asked_of(self.specification), silence=self.silence)
        unmeasured = tuple(scores["millstone"]["unmeasured"])
        return Counted(counted.pairs, scores, remarks=tuple(remarks_of(scores)), unmeasured=unmeasured)

    def score_cells(self, scores: Mapping[str, Any], pair: Pair) -> tuple[str, ...]:
        entry = entry_of(scores, pair)
        return (*score_cells(entry), *answer_cells(entry))


def prepare(
    out: Path, run: MillstoneOptions, sending: Sending, configuration: Configuration, *, needs_keys: bool = True
) -> Prepared:
    """Check one run to the end. Nothing is written. Without `needs_keys` it can be planned, not sent."""
    settings = settings_for(run.model, sending, configuration)
    if not needs_keys:
        settings = structs.replace(settings, needs_keys=False)
    endpoints = {model: access_to(model, settings).target.specified for model in run.model}
    notes = []
    path = SAMPLE if run.dataset is None else Path(run.dataset)
    if run.dataset is None:
        notes.append("no --dataset given: asking sample issues that come with millstream, which are no published data")
    given = _load(path)
    right = corrected(given)
    dataset = select(right if run.fix_orientation else given, run.issues, run.limit)
    labels = structs.replace(
        compared(select(given, run.issues, run.limit), range(1, run.templates + 1)), is_corrected=run.fix_orientation
    )
    grid = Grid(dataset, cast(Protocol, run.protocol), run.templates, run.trials, cast(Citations, run.citations))
    unset = _unset_max_tokens(out, run, settings)
    asked = Asked(run.model, run.temperature or (None,), run.max_tokens, cast(Reading, run.stance), unset)
    check_cost_is_bounded({model: asked.max_tokens_of(model) for model in run.model}, settings)
    _refuse_what_a_model_never_takes(asked, settings)
    _refuse_what_no_minute_holds(grid, asked, settings)
    specified = specification(grid, asked, endpoints)
    return Prepared(
        out=out,
        work=MillstoneWork(grid, asked, specified, cast(Silence, run.silence), cast(Over, run.intervals)),
        settings=settings,
        specification=specified,
        options={"millstone": _as_resumed(run, dataset, path), "sending": kept(sending)},
        dataset={
            "path": str(path),
            "name": dataset.name,
            "digest": dataset.digest,
            "issues": len(dataset.issues),
            "labels": {**labels.as_json(), "digest_as_given": given.digest, "digest_by_wording": right.digest},
        },
        notes=tuple(notes),
        warnings=tuple(labels.lines(path)),
    )


def options_of(manifest: Mapping[str, Any]) -> MillstoneOptions:
    """What a manifest keeps of `_as_resumed`. Raises KeyError or TypeError where it was not ours."""
    found = dict(manifest["options"]["millstone"])
    del found["issues_asked"], found["limit_asked"]
    for name in ("model", "temperature"):
        found[name] = tuple(found[name])
    return MillstoneOptions(**found)


def entry_of(scores: Mapping[str, Any], pair: Pair) -> Mapping[str, Any]:
    """A pair's scores: a model asked at one temperature goes by its name alone."""
    models = scores["millstone"]["models"]
    temperature = "default" if pair.temperature is None else f"{pair.temperature:g}"
    entry: Mapping[str, Any] = models.get(f"{pair.model} @ {temperature}") or models.get(pair.model) or {}
    return entry


def remarks_of(scores: Mapping[str, Any]) -> Iterator[str]:
    """What a reader must know before the scores, the reading of silence first where it is not the default."""
    found = scores["millstone"]
    if found["silence"] == "literal":
        yield LITERAL
    for model, entry in found["models"].items():
        yield from entry["remarks"]
        figures = {issue: of_issue["om"] for issue, of_issue in entry["issues"].items()}
        yield from single_figures(model, entry, figures, 3)


def over_of(manifest: Mapping[str, Any] | None) -> Over:
    """What a run's intervals were told to be over; manifests of earlier versions do not say it."""
    kept = ((manifest or {}).get("options") or {}).get("millstone") or {}
    return "trials" if kept.get("intervals") == "trials" else "issues"


def score_columns(over: str) -> tuple[str, ...]:
    return ("OM", "by silence", "issues", f"95% interval over {over}", "om_pro_share", "om_no_flip")


def score_cells(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """A model's cells under `score_columns`."""
    scored, unscored = entry.get("issues_scored", 0), len(entry.get("unscored_issues", ()))
    return (
        _number(entry.get("om"), 3),
        _number(entry.get("om_by_silence"), 3),
        f"{scored:,} of {scored + unscored:,}",
        interval_cell(entry, 2),
        *(_number(entry.get(kind), 2) for kind in ("om_pro_share", "om_no_flip")),
    )


def answer_cells(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """A model's cells under ANSWER_COLUMNS."""
    return tuple(_number(entry.get(name), 0) for name in ("answers_cut", "answers_other"))


def _number(value: float | None, places: int) -> str:
    return "-" if value is None else f"{value:,.{places}f}"


def dataset_of(manifest: Mapping[str, Any]) -> Dataset:
    """The data set of a run with the labels that it used. Raises DatasetError or OSError where it can't be read."""
    kept = (manifest.get("options") or {}).get("millstone") or {}
    given = load(SAMPLE if kept.get("dataset") is None else Path(kept["dataset"]))
    return corrected(given) if kept.get("fix_orientation") else given


def _load(path: Path) -> Dataset:
    try:
        return load(path)
    except OSError as error:
        raise DatasetError(f"{path}: expected a readable file or folder, came: {error.strerror}") from error


def _unset_max_tokens(out: Path, run: MillstoneOptions, settings: Settings) -> dict[str, int | None]:
    """What calls to each model set where --max-tokens is not given. It is decided once: a run that has begun, also with
    an earlier version, keeps what its manifest says."""
    begun: Mapping[str, int | None] = {}
    if run.max_tokens is None and (out / MANIFEST).exists():
        # Whether the folder can be used at all, and is this run's, is found out when it is opened.
        with suppress(LocalFault):
            manifest = read_manifest(out)
            had = (manifest.get("options") or {}).get("millstone") or {}
            found = (manifest.get("specification") or {}).get("max_tokens")
            if had.get("max_tokens") is None and isinstance(found, dict):
                begun = found
    return {
        model: begun[model] if model in begun else default_max_tokens(model, settings.facts_of(model).thinks)
        for model in run.model
    }


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
    found = run.as_dict()
    found["issues_asked"], found["limit_asked"] = found["issues"], found.pop("limit")
    found["issues"] = ",".join(issue.id for issue in dataset.issues)
    found["dataset"] = None if run.dataset is None else str(path)
    return found
