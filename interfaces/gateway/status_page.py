"""The gateway's page for a browser: its counts and its lanes, as they are now. Pure: numbers in, HTML out.

Holds no script, no address and no token. The browser asks for it again every few seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...format import cost_of_calls
from ...report.escaping import in_html

STATUS_PAGE_TYPE = "text/html; charset=utf-8"
_AGAIN_S = 3
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Millstream gateway</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta http-equiv="refresh" content="{again}"><meta name="viewport" content="width=device-width">
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }}
table {{ border-collapse: collapse; margin: 1rem 0 }}
th, td {{ padding: .25rem .9rem .25rem 0; text-align: right; border-bottom: 1px solid #8884 }}
th:first-child, td:first-child, td.text {{ text-align: left }}
:root {{ color-scheme: light dark }}
</style></head><body>
<h1>Millstream gateway</h1>
<table><tr>{heads}</tr><tr>{counts}</tr></table>
<p>Cost of the calls that were sent: {cost}.</p>
{lanes}
</body></html>
"""


class GatewayCounts(NamedTuple):
    """The counts of a gateway since it began."""

    requests: int
    failed: int
    from_cache: int
    under_way: int
    sent: int
    unpriced: int
    cost: float


_LANE_HEADS = ("model", "in flight", "last minute, by all programs with this quota", "state")


class LaneRow(NamedTuple):
    """One lane now. `last_minute`: requests that all programs
    with this quota sent in the last minute; `stopped`: why it stopped, empty: it has not."""

    model: str
    in_flight: int
    last_minute: int
    stopped: str


def status_page(counts: GatewayCounts, lanes: Sequence[LaneRow]) -> bytes:
    """Returns the page in UTF-8."""
    figures = {
        "requests": counts.requests,
        "answered": counts.requests - counts.failed,
        "failed": counts.failed,
        "from the cache": counts.from_cache,
        "waiting": counts.under_way,
        "calls sent": counts.sent,
    }
    return _PAGE.format(
        again=_AGAIN_S,
        heads="".join(f"<th>{name}</th>" for name in figures),
        counts="".join(f"<td>{number:,}</td>" for number in figures.values()),
        cost=cost_of_calls(counts.cost, counts.sent, counts.unpriced),
        lanes=_table(lanes) if lanes else "<p>No model was asked yet.</p>",
    ).encode()


def _table(lanes: Sequence[LaneRow]) -> str:
    rows = "".join(
        f"<tr><td>{in_html(lane.model)}</td><td>{lane.in_flight:,}</td><td>{lane.last_minute:,}</td>"
        f'<td class="text">{in_html(lane.stopped) or "open"}</td></tr>'
        for lane in lanes
    )
    heads = "".join(f"<th>{head}</th>" for head in _LANE_HEADS)
    return f"<table><tr>{heads}</tr>{rows}</table>"
