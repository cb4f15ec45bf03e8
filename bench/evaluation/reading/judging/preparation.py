"""Prepares the judging of a run's kept answers from the run's folder and the names of the judges, and forecasts it.

Owns what `judgements.json` keeps, and the checks before anything is sent. Adding judges, or answers, goes on in the
same files; another server behind a judge's name does not.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from .....configuration.configuration import Configuration, settings_for
from .....configuration.errors import UsageError
from .....configuration.options import SendingOptions
from .....engine.runs.pairs import Pair
from .....engine.runs.run_folder import RECORDS, read_manifest
from .....wiring import Settings, access_to
from .....wiring.lane_names import unused_lanes
from ...door.expected import Expected
from ...door.judgement import BUDGET, FILES, JUDGEMENTS, Judgement, judgement_id, read_judgements
from ...door.judges import judge_note
from ...door.judging import Judging
from ...door.prepared_run import PreparedRun
from ...planning.forecast import expected_of
from ...planning.item_plan import calls_of, checked
from ...planning.preparation import check_cost_is_bounded, check_models_take, kept
from .judged_answers import JudgedAnswers
from .kept_answers import KeptAnswers


class JudgingOrder(Struct, frozen=True, kw_only=True):
    """The request to judge a run's answers anew."""

    folder: Path
    """The run's folder."""
    judging: Judging
    """How the run's answers are judged."""
    judges: tuple[str, ...]
    """The judges."""
    sending: SendingOptions
    """The options of how their calls are sent."""
    configuration: Configuration
    """Lanes, providers and prices."""
    effort: str | None = None
    """The reasoning effort of the judges; None: the run's own, and none for other judges."""
    needs_keys: bool = True
    """Whether calls will be sent; a plan needs no API key."""


def prepare(order: JudgingOrder) -> PreparedRun:
    """Checks a judging completely and returns it ready to begin. Writes nothing."""
    folder, judging, manifest = order.folder, order.judging, read_manifest(order.folder)
    benchmark = manifest["specification"]["benchmark"]
    judges = tuple(dict.fromkeys(order.judges))
    judging.effort = order.effort
    settings = settings_for(judges, order.sending, order.configuration, needs_keys=order.needs_keys)
    answers = KeptAnswers(folder / RECORDS, judging)
    if not len(answers):
        raise UsageError(f"{folder}: expected answers that a judge reads, got none: nothing to judge")
    judged = JudgedAnswers(benchmark, judging, answers, judges, settings)
    items = judged.items()
    first = next(iter(items))
    calls = [judged.call(first, None, Pair(judge, None)) for judge in judges]
    check_cost_is_bounded({call.model: call.max_tokens for call in calls}, settings, has_option=False)
    check_models_take(calls, settings)
    words = [f"--judge={judge}" for judge in judges]
    words += [] if order.effort is None else [f"--judge-reasoning-effort={order.effort}"]
    prepared = PreparedRun(
        benchmark=judged,
        out=folder,
        settings=settings,
        items=items,
        limits={Pair(call.model, None): call.max_tokens for call in calls},
        specification={
            "benchmark": benchmark,
            "run": manifest["specification_hash"],
            "judging": dict(judging.rules),
        },
        kept={"judges": _servers(order, settings), "sending": kept(order.sending)},
        dataset=items.dataset,
        notes=(
            *_notes(folder, judges, judging.own, manifest),
            *(note for judge in judges for note in judge_note(judge, judging.effort_of(judge), settings)),
            # The configuration is the run's, whose models have lanes in it.
            *unused_lanes([settings], manifest["specification"].get("endpoints", ())),
        ),
        files=FILES,
        budget_name=BUDGET,
        command=shlex.join(["millstream", "judge", str(folder), *words]),
    )
    return checked(prepared)


def _servers(order: JudgingOrder, settings: Settings) -> dict[str, Any]:
    """Returns the server and effort of every judge so far. Raises UsageError if one has others than before."""
    folder = order.folder
    before: Mapping[str, Any] = {}
    if (folder / FILES.manifest).exists():
        before = read_manifest(folder, FILES.manifest).get("options", {}).get("judges", {})
    servers = {}
    for judge in order.judges:
        effort, server = order.judging.effort_of(judge), access_to(judge, settings).target.specified
        servers[judge] = server if effort is None else f"{server}, effort {effort}"
    for judge, server in servers.items():
        if before.get(judge, server) != server:
            raise UsageError(
                f"{folder}: {judge} judged at {before[judge]} before, and would judge at {server} now: give that "
                f"--base-url and --judge-reasoning-effort, or move {FILES.manifest} and {JUDGEMENTS} away"
            )
    return {**before, **servers}


def _notes(folder: Path, judges: Sequence[str], own: str, manifest: Mapping[str, Any]) -> tuple[str, ...]:
    notes = []
    if own in judges:
        notes.append(f"{own} is the run's own judge, asked again")
    if manifest.get("ended") is None:
        notes.append(f"{folder}: the run has not ended: the same command judges what it answers later")
    return tuple(notes)


def forecast(prepared: PreparedRun, *, looks_into_cache: bool = True) -> Expected:
    """Returns what the missing judgements are expected to take."""
    done = defaultdict[str, set[str]](set)
    for line in read_judgements(prepared.out, Judgement):
        if (name := judgement_id(line)) in prepared.items.steps:
            done[line.judge].add(name)
    expected = expected_of(
        prepared,
        lambda pair: (call for _, call in calls_of(prepared, pair, done[pair.model].__contains__)),
        looks_into_cache=looks_into_cache,
    )
    answers, there = len(prepared.items), sum(len(done[pair.model]) for pair in prepared.pairs)
    expected.what = f"{answers:,} kept answers, {there:,} of {prepared.total:,} judgements are there"
    expected.remarks.append("a reply that can't be read is asked for once more: such calls are not counted")
    expected.more["items"] = answers
    return expected
