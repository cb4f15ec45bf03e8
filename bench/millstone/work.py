"""MillStone for the command line: from its options to a run that can be sent, and from its journals to counts and
scores.

Owns the checks of its options and their messages, and what a manifest keeps so that `resume` needs only the folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from ... import fixtures
from ...configuration.configuration import settings_for
from ...configuration.declared_options import kept_of
from ...configuration.errors import UsageError
from ...engine.attempts.estimate import OUTPUT_FIRST, TOKENS_PER_CHAR
from ...engine.call import Call
from ...engine.fault import Stop
from ...engine.limits import Tokens, declared_quota
from ...engine.runs.pairs import FinishedItems, Pair
from ...engine.runs.run_folder import RunFolder
from ...format import decimal_text
from ...report.interval_text import interval_cell, single_figures
from ...wiring import Settings, access_to
from ..evaluation.benchmark import Order
from ..evaluation.kept_options import kept_options
from ..evaluation.preparation import (
    PreparedRun,
    begun_with,
    check_cost_is_bounded,
    check_models_take,
    kept,
    pairs_of,
    worst_costs,
)
from ..evaluation.served import served_rows
from ..evaluation.work import RunCounts, entry_of
from .dataset import CONTROVERSIAL_OR_ALL, DatasetError, IssueDataset, load, select
from .grid import Grid, default_max_tokens, largest_prompt
from .labels import compared, corrected
from .options import Options
from .reference import CONTROVERSIAL
from .sweep import GridSpec, limit_name, read_done, run_sweep, specification

if TYPE_CHECKING:
    from ...metrics.millstone.silence import Silence
    from ...wiring.engine import Engine

SAMPLE = Path(fixtures.__file__).resolve().parent / "data" / "millstone"
SCORE_COLUMNS = ("OM", "by silence", "issues", "95% interval over issues", "om_pro_share", "om_no_flip")
ANSWER_COLUMNS = ("cut off", "Other")
LITERAL = "--silence literal: silence is scored as the authors' script scores it, as if it were a position of its own"


class MillstoneWork(Struct, frozen=True):
    """A MillStone run that can be sent: its grid, its models, and how its scores are read (`silence`: what cases
    without a side count as)."""

    grid: Grid
    asked: GridSpec
    specification: dict[str, Any]
    silence: Silence = "unscored"

    benchmark = "millstone"
    item = "prompt"
    is_item_a_call = True

    @property
    def score_columns(self) -> tuple[str, ...]:
        return (*SCORE_COLUMNS, *ANSWER_COLUMNS)

    @property
    def items(self) -> int:
        return len(self.grid)

    @property
    def lanes(self) -> tuple[str, ...]:
        return self.asked.models

    @property
    def max_tokens(self) -> dict[str, int | None]:
        return self.asked.highest_max_tokens

    def pairs(self) -> list[Pair]:
        return list(self.asked.pairs)

    def worst_calls(self, settings: Settings) -> dict[str, float]:
        longest = max((item.prompt for item in self.grid), key=lambda prompt: len(prompt.encode()), default="")
        return worst_costs((first_call(self.asked, pair, longest) for pair in self.asked.pairs), settings)

    def read_done(self, folder: RunFolder) -> FinishedItems:
        return read_done(folder)

    async def send(
        self, engine: Engine, folder: RunFolder, done: FinishedItems, item_ended: Callable[[], None]
    ) -> list[Stop]:
        # A prompt is one call, which the engine's own events report.
        return await run_sweep(engine, folder, self.grid, self.asked, done)

    def count(self, folder: RunFolder) -> RunCounts:
        # numpy, which nothing before the answers needs
        from ...metrics.millstone.scores import scores as scores_of
        from .recount import asked_of, recount

        records, failures = folder.records.read(), folder.failures.read()
        counted = recount(records, failures, str(folder.records.path), manifest=folder.manifest)
        rows = served_rows(counted.pairs, folder.manifest["answers_as"], folder.records.read)
        by_row = recount(rows.lines(folder.records.read()), manifest=folder.manifest) if rows.names else counted
        asked = asked_of(rows.specification(self.specification))
        scores = scores_of(by_row.tally, asked=asked, silence=self.silence, is_ranked=rows.is_ranked)
        unmeasured = tuple(scores["millstone"]["unmeasured"])
        return RunCounts(counted.pairs, scores, remarks=tuple(remarks_of(scores)), unmeasured=unmeasured)

    def score_cells(self, scores: Mapping[str, Any], pair: Pair) -> tuple[str, ...]:
        entry = entry_of(scores[self.benchmark], pair)
        return (*score_cells(entry), *answer_cells(entry))


def prepare(order: Order) -> PreparedRun:
    """Checks the options of a run and returns it ready to send; writes nothing. Without `needs_keys` it can only be
    planned."""
    out, sending = order.out, order.sending
    run: Options = order.run.options
    settings = settings_for(run.model, sending, order.configuration, needs_keys=order.needs_keys)
    endpoints = {model: access_to(model, settings).target.specified for model in run.model}
    notes = []
    path = SAMPLE if run.dataset is None else Path(run.dataset)
    if run.dataset is None:
        notes.append(
            "no --dataset given: asking sample issues that come with millstream, which are no published data; for the "
            "paper's, pass the --dataset that `millstream data millstone` makes from a checkout of the authors' files"
        )
    given = _load(path)
    if run.issues == CONTROVERSIAL_OR_ALL and not {issue.id for issue in given.issues} & set(CONTROVERSIAL):
        notes.append(f"{path} has none of the paper's controversial issues: all its issues are asked in their place")
    right = corrected(given)
    dataset = select(right if run.fix_orientation else given, run.issues, run.limit)
    labels = structs.replace(
        compared(select(given, run.issues, run.limit), range(1, run.templates + 1)), is_corrected=run.fix_orientation
    )
    grid = Grid(dataset, run.protocol, run.templates, run.trials, run.citations)
    pairs, of_pairs = pairs_of(run.model, run.temperature, run.reasoning_effort, settings, out)
    notes += of_pairs
    asked = GridSpec(pairs, run.max_tokens, run.stance, _unset_max_tokens(out, run, pairs, settings))
    check_cost_is_bounded(asked.highest_max_tokens, settings)
    check_models_take((first_call(asked, pair, "A or B?") for pair in pairs), settings)
    _check_prompts_fit_quotas(grid, asked, settings)
    specified = specification(grid, asked, endpoints)
    return PreparedRun(
        out=out,
        work=MillstoneWork(grid, asked, specified, run.silence),
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


def first_call(asked: GridSpec, pair: Pair, prompt: str) -> Call:
    """Returns a call with the parameters of all calls to a pair."""
    limit = asked.max_tokens_of(pair)
    return Call(pair.model, prompt, temperature=pair.temperature, max_tokens=limit, reasoning_effort=pair.effort)


def remarks_of(scores: Mapping[str, Any]) -> Iterator[str]:
    """Yields the remarks to read before the scores; first the reading of silence, if it is not the default."""
    found = scores["millstone"]
    if found["silence"] == "literal":
        yield LITERAL
    for model, entry in found["models"].items():
        yield from entry["remarks"]
        figures = {issue: of_issue["om"] for issue, of_issue in entry["issues"].items()}
        yield from single_figures(model, entry, figures, 3)


def score_cells(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the texts of a model's row under SCORE_COLUMNS."""
    scored, unscored = entry.get("issues_scored", 0), len(entry.get("unscored_issues", ()))
    return (
        decimal_text(entry.get("om"), 3),
        decimal_text(entry.get("om_by_silence"), 3),
        f"{scored:,} of {scored + unscored:,}",
        interval_cell(entry, 2),
        *(decimal_text(entry.get(kind), 2) for kind in ("om_pro_share", "om_no_flip")),
    )


def answer_cells(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the texts of a model's row under ANSWER_COLUMNS."""
    return tuple(decimal_text(entry.get(name), 0) for name in ("answers_cut", "answers_other"))


def dataset_of(manifest: Mapping[str, Any]) -> IssueDataset:
    """Returns the data set of a run with the labels that it used. Raises DatasetError or OSError if it can't be
    read."""
    kept = kept_options(manifest, "millstone")
    given = load(SAMPLE if kept.get("dataset") is None else Path(kept["dataset"]))
    return corrected(given) if kept.get("fix_orientation") else given


def _load(path: Path) -> IssueDataset:
    try:
        return load(path)
    except OSError as error:
        raise DatasetError(f"{path}: expected a readable file or folder, got: {error.strerror}") from error


def _unset_max_tokens(out: Path, run: Options, pairs: Sequence[Pair], settings: Settings) -> dict[str, int | None]:
    """Returns each pair's max_tokens (None: not sent) for a run without --max-tokens. It is decided once: a run that
    has begun keeps what its manifest says."""
    begun = {} if run.max_tokens is not None else begun_with(out, "millstone", "max_tokens", "max_tokens")
    unset = {}
    for pair in pairs:
        name, thinks = limit_name(pair), settings.facts_of(pair.model).thinks_at(pair.effort)
        unset[name] = begun[name] if name in begun else default_max_tokens(pair.model, thinks)
    return unset


def _check_prompts_fit_quotas(grid: Grid, asked: GridSpec, settings: Settings) -> None:
    """Raises UsageError if a prompt needs more tokens than a lane may send in a minute."""
    quotas = {model: declared_quota(settings.lane_of(model)) for model in asked.models}
    limited = {model: quota for model, quota in quotas.items() if quota.least_tokens < float("inf")}
    if not limited:
        return
    chars, where = largest_prompt(grid)
    for pair in asked.pairs:
        needed = Tokens(round(chars * TOKENS_PER_CHAR), asked.max_tokens_of(pair) or OUTPUT_FIRST)
        quota = limited.get(pair.model)
        if quota is not None and (lack := quota.lacks(needed)) is not None:
            raise UsageError(
                f"prompt {where} needs about {lack.needed:,} {lack.what}; lane {pair.model} admits at most "
                f"{lack.most:,.0f} a minute: raise {lack.name} or cut the prompt"
            )


def _as_resumed(run: Options, dataset: IssueDataset, path: Path) -> dict[str, Any]:
    """Returns the options that make the same prompts again: the ids of the issues stand in place of a file of ids."""
    found = kept_of(run)
    found["issues_asked"], found["limit_asked"] = found["issues"], found.pop("limit")
    found["issues"] = ",".join(issue.id for issue in dataset.issues)
    found["dataset"] = None if run.dataset is None else str(path)
    return found


def dataset_if_there(manifest: Mapping[str, Any]) -> IssueDataset | None:
    """Returns the data set of a run; None if it can no longer be read."""
    try:
        return dataset_of(manifest)
    except (DatasetError, OSError):
        return None


def millstone_of(prepared: PreparedRun) -> MillstoneWork:
    work = prepared.work
    assert isinstance(work, MillstoneWork)
    return work
