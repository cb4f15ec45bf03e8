"""`millstream judge`: a run's kept answers judged anew, by any judges, and what the panel of judges says."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....configuration.declared_options import flag, read_kept
from ....configuration.errors import DONE, WITH_FAILURES, UsageError
from ....configuration.options import SendingOptions, add_output, add_sending
from ....configuration.values import EFFORT, ModelName
from ...terminal.output import note, say, say_error, say_result
from .resume import manifest_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ....bench.evaluation.door.prepared_run import PreparedRun

HELP = "judge a run's answers again by other judges, and compare the judges; asks no model under test"
EXAMPLES = (
    "judge runs/first --judge openai/gpt-6.2-sol anthropic/claude-sonnet-5-5 --plan",
    "judge runs/first --judge openai/gpt-6.2-sol --max-cost 20",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the run's folder")
    parser.add_argument(
        "--judge",
        type=flag(ModelName()),
        nargs="+",
        action="extend",
        metavar="PROVIDER/MODEL",
        help="who judges every kept answer, by the prompts and rules of the run; give several, or add one later: what "
        "is judged already is not asked again (default: none; what the judges said so far is compared)",
    )
    parser.add_argument(
        "--judge-reasoning-effort",
        type=flag(EFFORT),
        metavar="LEVEL",
        help="the judges' effort, as none, low, high (default: not sent; to the run's own judge as in the run)",
    )
    parser.add_argument(
        "--plan", action="store_true", help="tell calls, tokens, cost and time of the judges, and send nothing"
    )
    parser.add_argument(
        "--no-cache-check",
        action="store_true",
        help="with --plan: don't look up which judgements the cache already has",
    )
    add_sending(
        parser,
        helps={"max_cost": "stop before the judgements can cost more; those that the folder already holds count"},
    )
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    folder = Path(options.folder).absolute()
    if not options.judge:
        if options.plan:
            raise UsageError("--plan: expected the judges to plan for, with --judge PROVIDER/MODEL, got none")
        return _tell(folder, None, options)
    prepared = _prepared(folder, options)
    return _planned(prepared, options) if options.plan else _judged(prepared, options)


def _prepared(folder: Path, options: argparse.Namespace) -> PreparedRun:
    from ....bench.evaluation.door.registry import benchmark_of
    from ....bench.evaluation.reading.judging.preparation import prepare
    from ....configuration.configuration import read_configuration

    manifest = manifest_of(folder)
    sending: SendingOptions = options.sending.over(_sending_of_judges(folder)).over(_sending_of(manifest))
    return prepare(
        folder,
        benchmark_of(folder).judging(manifest),
        options.judge,
        sending,
        read_configuration(sending.config, may_hold_runs=True),
        effort=options.judge_reasoning_effort,
        needs_keys=not options.plan,
    )


def _sending_of(manifest: Mapping[str, Any]) -> SendingOptions:
    """Returns where a run's own calls were sent, and by which configuration and cache. Quotas, limits and mode are not
    taken over: they were the run's."""
    kept = (manifest.get("options") or {}).get("sending") or {}
    return SendingOptions(base_url=kept.get("base_url"), config=kept.get("config"), cache=kept.get("cache"))


def _sending_of_judges(folder: Path) -> SendingOptions:
    """Returns how the judges so far were sent their calls; no option is set if there are none."""
    from ....bench.evaluation.door.judgement import FILES
    from ....engine.runs.run_folder import read_manifest

    if not (folder / FILES.manifest).exists():
        return SendingOptions()
    return read_kept(SendingOptions, read_manifest(folder, FILES.manifest)["options"]["sending"])


def _planned(prepared: PreparedRun, options: argparse.Namespace) -> int:
    from ....bench.evaluation.planning.forecast import forecast_of, tell
    from ....bench.evaluation.reading.judging.preparation import forecast

    for remark in prepared.notes:
        note(f"millstream: {remark}")
    planned = forecast_of(prepared, forecast(prepared, looks_into_cache=not options.no_cache_check))
    say_result(options.json, lambda: planned.as_json(), lambda: tell(planned))
    return DONE


def _judged(prepared: PreparedRun, options: argparse.Namespace) -> int:
    from ....bench.evaluation.running.execution import execute
    from ...terminal.progress import watch_on_stderr
    from ..run_summary import as_json, causes, tell

    for remark in prepared.notes:
        note(f"millstream: {remark}")
    watch = watch_on_stderr(is_shown=not options.no_progress)
    # A judgement that failed is tried again by the same command.
    result = execute(prepared, retry=True, watch=watch)
    if options.json:
        _tell(prepared.out, as_json([result]), options)
    else:
        say_error(causes([result]))
        say(tell([result]))
        _tell(prepared.out, None, options)
    if result.end.fault is not None:
        note(f"millstream: {result.end.fault}")
    return result.exit_code


def _tell(folder: Path, summary: dict[str, Any] | None, options: argparse.Namespace) -> int:
    """Prints the judgements so far, and returns their exit code. `summary`: of the judges that were asked now, for
    `--json`."""
    from ....bench.evaluation.door.registry import benchmark_of
    from ....bench.evaluation.reading.agreement_text import panel_json, panel_text
    from ....bench.evaluation.reading.judging.folder_panel import read_panel

    manifest = manifest_of(folder)
    panel = read_panel(folder, benchmark_of(folder).judging(manifest))
    if panel is None:
        raise UsageError(f"{folder} holds no judgements yet: name a judge with --judge PROVIDER/MODEL")
    say_result(options.json, lambda: {**(summary or {}), "panel": panel_json(panel)}, lambda: panel_text(panel))
    return WITH_FAILURES if any(each.is_unmeasured for each in panel.replies) else DONE
