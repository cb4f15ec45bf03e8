"""`millstream load`: a load test, from its options to its figures."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ....bench.load.options import add_arguments as add_arguments
from ....configuration.errors import UsageError
from ...terminal.output import note, note_error, say, say_json, say_result

if TYPE_CHECKING:
    from ....bench.load.spec import LoadSpec

HELP = "measure a model under load: at a rate, in steps, with N in flight, or up to a goal"
EXAMPLES = (
    "load openai/gpt-6-luna --rate 10 --duration 2m --max-cost 1 --out tests/first",
    'load vllm/llama-3.1-8b --goal "p99 first token <= 2 s and errors <= 0.1%" --from 2 --to 50 --out tests/highest',
    "load vllm/llama-3.1-8b --steps 2,5,10 --plan",
)


def run(options: argparse.Namespace) -> int:
    from ....bench.load.forecast import as_json, forecast_of, tell
    from ....bench.load.spec_from_options import spec_from

    spec = spec_from(options)
    forecast = forecast_of(spec)
    for remark in spec.notes:
        note(f"millstream: {remark}")
    if options.plan:
        say_json(as_json(spec, forecast)) if options.json else say(tell(spec, forecast))
        return 0
    note(f"millstream: {tell(spec, forecast)}")
    return _carried_out(spec, options)


def _carried_out(spec: LoadSpec, options: argparse.Namespace) -> int:
    """Runs the test and returns the exit code. Prints the figures before the report is drawn, since that can fail."""
    import sys

    import msgspec

    from ....bench.load.execution import carry_out
    from ....bench.load.summary import tell
    from ...terminal.load_display import LoadDisplay

    # A process started with stderr closed has none.
    carried = carry_out(spec, LoadDisplay(None if options.no_progress else sys.stderr).showing)
    say_result(options.json, lambda: msgspec.to_builtins(carried.load), lambda: tell(carried.load, spec.out))
    if carried.end.fault is not None:
        note_error(f"millstream: {carried.end.fault}")
        return carried.exit_code
    if carried.load.ending in ("fault", "stopped"):
        note(f"millstream: {carried.load.ending_detail}")
    if not options.no_report:
        _report(spec, options)
    return carried.exit_code


def _report(spec: LoadSpec, options: argparse.Namespace) -> None:
    from ....bench.load.report.write import write
    from ....engine.fault import LocalFault

    try:
        page = write([spec.out], spec.out).page
    except (LocalFault, UsageError) as error:
        # The test is done and its figures are written: a missing page is no failure of it.
        note(f"millstream: no report was written: {error}")
        return
    note(f"millstream: report: {page}") if options.json else say(f"report: {page}")
