"""Prepares the judging of a run's kept answers from the run's folder and the names of the judges, and forecasts it.

Owns what `judgements.json` keeps, and the checks before anything is sent. Adding judges, or answers, goes on in the
same files; another server behind a judge's name does not.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from .....configuration.configuration import Configuration, settings_for
from .....configuration.errors import UsageError
from .....configuration.options import SendingOptions
from .....engine.runs.run_folder import RECORDS, read_manifest
from .....wiring import access_to
from .....wiring.lane_names import unused_lanes
from ...door.expected import Expected
from ...door.judgement import BUDGET, FILES, JUDGEMENTS, Judgement, read_judgements
from ...door.judges import judge_note
from ...door.judging import Judging
from ...door.prepared_run import PreparedRun
from ...planning.forecast import expected_of
from ...planning.preparation import (
    check_cost_is_bounded,
    check_hosts,
    check_models_take,
    check_sinks,
    check_snapshot,
    kept,
    model_remarks,
)
from .kept_answers import KeptAnswers
from .work import JudgingWork


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
    check_hosts(settings)
    check_snapshot(settings)
    check_sinks(settings)
    answers = KeptAnswers(folder / RECORDS, judging)
    if not len(answers):
        raise UsageError(f"{folder}: expected answers that a judge reads, got none: nothing to judge")
    work = JudgingWork(benchmark, judging, answers, judges, settings)
    check_cost_is_bounded(work.max_tokens, settings, has_option=False)
    check_models_take(work.first_calls(), settings)
    words = [f"--judge={judge}" for judge in judges]
    words += [] if order.effort is None else [f"--judge-reasoning-effort={order.effort}"]
    return PreparedRun(
        out=folder,
        work=work,
        settings=settings,
        specification={
            "benchmark": benchmark,
            "run": manifest["specification_hash"],
            "judging": dict(judging.rules),
        },
        options={"judges": _servers(folder, judges, work), "sending": kept(order.sending)},
        dataset={"path": str(answers.path), "answers": len(answers)},
        notes=(
            *_notes(folder, judges, judging.own, manifest),
            *(note for judge in judges for note in judge_note(judge, judging.effort_of(judge), settings)),
            # The configuration is the run's, whose models have lanes in it.
            *unused_lanes([settings], manifest["specification"].get("endpoints", ())),
            *model_remarks(work, settings),
        ),
        files=FILES,
        budget_name=BUDGET,
        command=shlex.join(["millstream", "judge", str(folder), *words]),
    )


def _servers(folder: Path, judges: Sequence[str], work: JudgingWork) -> dict[str, Any]:
    """Returns the server and effort of every judge so far. Raises UsageError if one has others than before."""
    before: Mapping[str, Any] = {}
    if (folder / FILES.manifest).exists():
        before = read_manifest(folder, FILES.manifest).get("options", {}).get("judges", {})
    servers = {}
    for judge in judges:
        effort, server = work.judging.effort_of(judge), access_to(judge, work.settings).target.specified
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
    work = prepared.work
    assert isinstance(work, JudgingWork)
    done = work.finished(read_judgements(prepared.out, Judgement))
    expected = expected_of(
        prepared,
        lambda pair: work.calls(pair, done),
        lambda pair: work.max_tokens.get(pair.model),
        looks_into_cache=looks_into_cache,
    )
    there = sum(len(done.of(pair)) for pair in work.pairs())
    expected.what = f"{work.items:,} kept answers, {there:,} of {prepared.total:,} judgements are there"
    expected.remarks.append("a reply that can't be read is asked for once more: such calls are not counted")
    expected.more["items"] = work.items
    return expected
