"""`millstream load`: a load test, from its options to its figures."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..load.arguments import add_arguments as add_arguments
from ..output import note, say, say_json
from ..refusal import UsageError

if TYPE_CHECKING:
    from ..load.order import Order

HELP = "measure a model under load: at a rate, in steps, with N in flight, or up to a goal"


def run(options: argparse.Namespace) -> int:
    from ..load.announcing import as_json, forecast_of, tell
    from ..load.ordering import order_from

    ordered = order_from(options)
    forecast = forecast_of(ordered.order)
    for remark in ordered.notes:
        note(f"millstream: {remark}")
    if options.plan:
        say_json(as_json(ordered.order, forecast)) if options.json else say(tell(ordered.order, forecast))
        return 0
    note(f"millstream: {tell(ordered.order, forecast)}")
    return _carried_out(ordered.order, options)


def _carried_out(order: Order, options: argparse.Namespace) -> int:
    """The figures are shown before the report is drawn: where it can't be, they have been all the same."""
    import msgspec

    from ..load.execution import carry_out
    from ..load.summary import tell

    carried = carry_out(order)
    if options.json:
        say_json(msgspec.to_builtins(carried.load))
    else:
        say(tell(carried.load, order.out))
    if carried.fault is not None:
        note(f"millstream: {carried.fault}")
        return carried.exit_code
    if carried.load.ending in ("fault", "stopped"):
        note(f"millstream: {carried.load.ending_detail}")
    if not options.no_report:
        _report(order, options)
    return carried.exit_code


def _report(order: Order, options: argparse.Namespace) -> None:
    from ...engine.fault import LocalFault
    from ..load.reporting import write_page

    try:
        page = write_page([order.out], order.out)
    except (LocalFault, UsageError) as error:
        # The test is done and its figures are written: a page that can't be is no failure of it.
        note(f"millstream: no report was written: {error}")
        return
    note(f"millstream: report: {page}") if options.json else say(f"report: {page}")
