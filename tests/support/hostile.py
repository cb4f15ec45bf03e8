"""Two hundred texts that want to be run, obeyed, computed or to break what holds them.

What runs would set `window.__ran`; what is fetched would be seen as a request.
"""

from __future__ import annotations

_RUN = "window.__ran=1"
_SEEDS = (
    f"<script>{_RUN}</script>",
    f"</script><script>{_RUN}</script>",
    f"</SCRIPT ><script>{_RUN}//",
    f"<!--<script>{_RUN}</script>-->",
    f"<img src=x onerror={_RUN}>",
    f'"><img src=x onerror="{_RUN}">',
    f"' onmouseover='{_RUN}' x='",
    f'" onfocus="{_RUN}" autofocus tabindex="1" x="',
    f"<svg onload={_RUN}>",
    f"<svg><animate onbegin={_RUN} attributeName=x dur=1s>",
    f"<details open ontoggle={_RUN}>",
    f"<body onload={_RUN}>",
    "<iframe srcdoc='<script>parent.__ran=1</script>'>",
    f"<a href=javascript:{_RUN}>here</a>",
    f"javascript:{_RUN}",
    f"data:text/html,<script>{_RUN}</script>",
    "<base href=//nowhere.invalid/>",
    "<meta http-equiv=refresh content='0;url=//nowhere.invalid'>",
    "<link rel=stylesheet href=//nowhere.invalid/x.css>",
    "<form action=//nowhere.invalid><input autofocus>",
    "</style><style>main{display:none}</style>",
    "</title><h1>gone</h1>",
    "</textarea></select></option><b>out</b>",
    "</td></tr></table><b>out</b>",
    "</text></svg><b>out</b>",
    "]]><b>&lt;b&gt;</b>&#60;b&#62;",
    f"{{{{constructor.constructor('{_RUN}')()}}}}",
    f"${{{_RUN}}} $policy $$ $",
    f"`${{{_RUN}}}`",
    f"'+{_RUN}+'",
    "%s %d {0} {name}",
    "=1+1",
    '=HYPERLINK("//nowhere.invalid","click")',
    "=cmd|'/c calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(1,2)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    "＝1+1",
    'a,"b",c\n"d"',
    ";=1;",
    "\x1b[2J\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x9b31m\x85\x00\x08\x7f",
    "\u202egnp.exe\u202c",
    "\u2066\u2067\u2069\u200f\u061c",
    "line\u2028line\u2029line",
    "\ufeff\u00ad\u200b\ufffe",
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "datum.model",
    "a.b['c'][0]",
    "back\\slash\\",
    "NaN",
    "null",
    "  ",
    "Z̷̲̦a̸l̶g̷o" + "\u0335" * 200,
    "👩‍👩‍👧 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "url(//nowhere.invalid/x.png)",
    "x" * 1_000_000,
    "<b>" * 300_000,
)


def hostile(count: int = 200) -> list[str]:
    """So many different ones: the seeds as they are, then behind and before something harmless, then in capitals."""
    shapes = ("{}", "position <<A>> {}", "{} position <<B>>", "A\n{}", "{0}{0}")
    every = [shape.replace("{0}", seed).replace("{}", seed) for shape in shapes for seed in _SEEDS]
    return list(dict.fromkeys(every))[:count]


def as_issue(text: str) -> str:
    """What of a text a data set takes as an issue's id: no space, slash or comma."""
    return "".join(sign for sign in text[:200] if not sign.isspace() and sign not in "/,") or "empty"
