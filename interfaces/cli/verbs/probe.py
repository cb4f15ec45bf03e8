"""`millstream probe`: finds a provider's quotas by sending calls, under hard caps, and write them as a lanes file.

Owns the arguments and the announcement. How quotas are found: bench/probe.
"""

from __future__ import annotations

import argparse

from ....bench.probe.caps import IN_FLIGHT, MAX_CALLS, MAX_COST, TIMEOUT_S
from ....configuration import values
from ....configuration.declared_options import flag
from ....configuration.options import add_output, add_sending
from ...terminal.output import note, note_error, say_result

HELP = "find a provider's quotas under a spending cap, and write them as a lanes file"
EXAMPLES = ("probe openai/gpt-6-luna --max-cost 0.20 --out lanes.toml",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "models",
        nargs="+",
        type=flag(values.ModelName()),
        metavar="PROVIDER/MODEL",
        help="whose quotas to find, one after the other",
    )
    parser.add_argument(
        "--max-calls",
        type=flag(values.WholeNumber("calls")),
        default=MAX_CALLS,
        metavar="N",
        help=f"send at most N calls to all models together (default: {MAX_CALLS:,})",
    )
    parser.add_argument(
        "--out",
        type=flag(values.Text("a file that does not exist yet")),
        metavar="FILE",
        help="the lanes file to write, for --config (default: a file named after the model in the cache's folder "
        "probes, or the next number that is free); what exists is never overwritten",
    )
    add_output(parser)
    helps = {
        "rpm": "try no more requests a minute than this (default: as many as --max-calls allows, at most 22,000)",
        "tpm": "try no more tokens at once than this (default: no limit but --max-cost)",
        "concurrency": f"try no more calls in flight than this (default: {IN_FLIGHT:,})",
        "max_cost": f"spend no more dollars than this, of all models together; what is in flight counts at its worst "
        f"(default: {MAX_COST:g})",
        "cache": "whose ledgers of the last minute are kept, so that a run right after it keeps to the quota "
        "(default: the user's cache folder)",
        # Every call is sent, and no answer is taken or kept.
        "mode": argparse.SUPPRESS,
        "timeout": f"deadline for a whole call (default: {TIMEOUT_S:.0f}s)",
    }
    add_sending(parser, ("base_url", "tier", *helps), helps)


def run(options: argparse.Namespace) -> int:
    import sys
    from functools import partial

    from ....bench.probe.lanes_file import as_json, check_place, lanes_text, tell, write_new
    from ....bench.probe.run import carry_out
    from ....bench.probe.spec import announced, spec_of
    from ...terminal.probe_display import ProbeDisplay

    sending = options.sending
    spec = spec_of(tuple(dict.fromkeys(options.models)), sending, options.max_calls)
    place = check_place(options.out, spec.models, spec.settings.cache_folder())
    for line in announced(spec):
        note(f"millstream: {line}")
    # A process started with stderr closed has none.
    report = carry_out(spec, partial(ProbeDisplay, None if options.no_progress else sys.stderr))
    say_result(options.json, lambda: as_json(report), lambda: tell(report))
    if report.end.fault is not None:
        note_error(f"millstream: {report.end.fault}")
    text = lanes_text(report)
    if text:
        place = write_new(place, text, may_rename=options.out is None)
        note(f"millstream: written to {place}, which --config reads")
    else:
        note("millstream: nothing was found that a lanes file could hold, so none was written")
    return report.exit_code
