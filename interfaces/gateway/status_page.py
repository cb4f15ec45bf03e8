"""The gateway's page for a browser: its counts, models and last requests, as they are now. Pure: facts in, HTML out.

Holds no address and no token. Its script asks for it again every few seconds and writes in what has changed, so that
focus and scrolling stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...report.escaping import in_html
from ...report.page_policy import policy

STATUS_PAGE_TYPE = "text/html; charset=utf-8"
# Nobody who looks away or selects a text is disturbed.
_SCRIPT = """
setInterval(async () => {
  if (document.hidden || !getSelection().isCollapsed) return;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!answer?.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const [old, now] = [document.querySelector("main"), page.querySelector("main")];
  if (old.children.length !== now.children.length) return old.replaceWith(now);
  [...now.children].forEach((one, at) => {
    if (old.children[at].innerHTML !== one.innerHTML) old.children[at].innerHTML = one.innerHTML;
  });
}, 3000);
"""
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
h2 { font-size: 1.15rem; margin: 2rem 0 0 }
div { overflow-x: auto }
table { border-collapse: collapse; margin: .5rem 0 }
th, td { padding: .25rem .9rem .25rem 0; text-align: left; vertical-align: bottom; border-bottom: 1px solid #8884 }
td { white-space: nowrap }
.number { text-align: right }
:root { color-scheme: light dark }
"""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Millstream gateway</title>
<meta http-equiv="Content-Security-Policy" content="{policy}"><meta name="viewport" content="width=device-width">
<style>{style}</style><script>{script}</script></head><body><main>
<h1>Millstream gateway</h1>
{sections}
</main></body></html>
"""
_POLICY = policy(_STYLE, [_SCRIPT], "connect-src 'self'")


class PageTable(NamedTuple):
    """A table under a heading. Whole numbers in `rows` are written with commas; `note` says what the columns mean, or
    that there is no row."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str | int]]
    note: str = ""


def status_page(began: str, counts: Mapping[str, int], cost: str, tables: Iterable[PageTable]) -> bytes:
    """Returns the page in UTF-8. `began` says since when which version runs; `counts` are by their headings."""
    sections = [f"<p>{in_html(began)}</p>", _table(PageTable("Requests", list(counts), [list(counts.values())]))]
    sections.append(f"<p>Cost of the calls that were sent: {in_html(cost)}.</p>")
    for table in tables:
        sections += [f"<h2>{in_html(table.title)}</h2>"] if table.rows or table.note else []
        sections += [_table(table)] if table.rows else []
        sections += [f"<p>{in_html(table.note)}</p>"] if table.note else []
    return _PAGE.format(policy=_POLICY, style=_STYLE, script=_SCRIPT, sections="\n".join(sections)).encode()


def _table(table: PageTable) -> str:
    kinds = [' class="number"' if isinstance(cell, int) else "" for cell in table.rows[0]]
    head = "".join(f'<th scope="col"{kind}>{in_html(name)}</th>' for name, kind in zip(table.heads, kinds, strict=True))
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows)
    box = f'<div role="region" tabindex="0" aria-label="{in_html(table.title)}">'
    return f"{box}<table><tr>{head}</tr>{body}</table></div>"


def _cell(cell: str | int) -> str:
    return f'<td class="number">{cell:,}</td>' if isinstance(cell, int) else f"<td>{in_html(cell)}</td>"
