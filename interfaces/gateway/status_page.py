"""The gateway's page for a browser: its counts and its lanes, as they are now. Pure: numbers in, HTML out.

Holds no script, no address and no token. The browser asks for it again every few seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


_LANE_HEADS = ("model", "in flight", "last minute, by all programs with this quota", "state")


def status_page(counts: Mapping[str, int], cost: str, lanes: Sequence[tuple[str, int, int, str]]) -> bytes:
    """Returns the page in UTF-8. `counts` are by their headings. Each lane has its model, its calls in flight, the
    requests that all programs with its quota sent in the last minute, and its state."""
    return _PAGE.format(
        again=_AGAIN_S,
        heads="".join(f"<th>{name}</th>" for name in counts),
        counts="".join(f"<td>{number:,}</td>" for number in counts.values()),
        cost=cost,
        lanes=_table(lanes) if lanes else "<p>No model was asked yet.</p>",
    ).encode()


def _table(lanes: Sequence[tuple[str, int, int, str]]) -> str:
    rows = "".join(
        f"<tr><td>{in_html(model)}</td><td>{in_flight:,}</td><td>{last_minute:,}</td>"
        f'<td class="text">{in_html(state)}</td></tr>'
        for model, in_flight, last_minute, state in lanes
    )
    heads = "".join(f"<th>{head}</th>" for head in _LANE_HEADS)
    return f"<table><tr>{heads}</tr>{rows}</table>"
