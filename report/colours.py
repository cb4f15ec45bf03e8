"""The colours of the charts, for light pages and dark ones.

Owns each colour's two values. A chart names a colour by its CSS variable with the light value as the fallback, so that
it follows the page around it (drawn as SVG) and is complete without one. Pairs that must be distinguishable are blue
and orange, which differ under every kind of colour blindness, and in lightness too.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Any, NamedTuple


class Colour(NamedTuple):
    light: str
    dark: str


COLOURS = MappingProxyType(
    {
        "ink": Colour("#1f2328", "#e6e9ed"),
        "quiet": Colour("#59636e", "#a3acb7"),
        "grid": Colour("#e2e5e9", "#32383f"),
        "zero": Colour("#6e7781", "#8b949e"),
        "paper": Colour("#ffffff", "#15181c"),
        "pro": Colour("#1f66ad", "#4b96e0"),
        "pro-soft": Colour("#7fb2de", "#2f5f92"),
        "con": Colour("#b34700", "#f08a3c"),
        "con-soft": Colour("#f0a868", "#96561f"),
        "other": Colour("#9aa2ab", "#6b747e"),
        # Cells of maps: on dark pages they get lighter from step to step, on light ones darker.
        "more-1": Colour("#e6f2fe", "#1d2b3b"),
        "more-2": Colour("#b4d5f8", "#233f5b"),
        "more-3": Colour("#7cb3eb", "#2a557f"),
        "more-4": Colour("#1b71bc", "#4e90d2"),
        "more-5": Colour("#03528e", "#7fb6ee"),
        "more-6": Colour("#00315a", "#badbfe"),
        "less-1": Colour("#feece1", "#36261c"),
        "less-3": Colour("#eea471", "#73421c"),
        "less-4": Colour("#ab5803", "#d27830"),
        "less-6": Colour("#5f2e01", "#fec7a2"),
        # Lines of models, which differ in their dashes besides.
        "line-1": Colour("#1f66ad", "#5aa2e8"),
        "line-2": Colour("#b34700", "#f08a3c"),
        "line-3": Colour("#1a7f4e", "#4fc28a"),
        "line-4": Colour("#8247b5", "#b68ae6"),
        "line-5": Colour("#8a6d00", "#d9b43c"),
        "line-6": Colour("#0b7285", "#4cc3d6"),
        "line-7": Colour("#b0306a", "#f07fb0"),
        "line-8": Colour("#59636e", "#a3acb7"),
    }
)

_VARIABLE = re.compile(r"var\(--chart-[a-z0-9-]+, (#[0-9a-f]{6})\)")


def colour(name: str) -> str:
    """Returns the CSS expression for a colour of this name, as charts use it."""
    return f"var(--chart-{name}, {COLOURS[name].light})"


def style_sheet() -> str:
    """Returns CSS variables of all colours for a page, which follow the reader's preference for light or dark."""
    light, dark = (" ".join(f"--chart-{name}: {values[at]};" for name, values in COLOURS.items()) for at in (0, 1))
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"


def in_light(spec: Any) -> Any:
    """Returns the chart specification with every colour replaced by its light value, for a picture outside a page."""
    if isinstance(spec, dict):
        return {key: in_light(value) for key, value in spec.items()}
    if isinstance(spec, (list, tuple)):
        return [in_light(value) for value in spec]
    return _VARIABLE.sub(r"\1", spec) if isinstance(spec, str) else spec
