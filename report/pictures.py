"""Figures as files: SVG and PNG, in a plain light look, made in this process and without a network.

The same figure gives the same bytes, as long as the fonts of the machine are the same.
"""

from __future__ import annotations

from typing import Any

from .colours import COLOURS, in_light
from .drawing import drawing_library
from .table import Figure

_PAPER = COLOURS["paper"].light


def svg(figure: Figure) -> str:
    """Returns the figure as SVG; raises ValueError if it has nothing to draw."""
    return str(drawing_library().vegalite_to_svg(_standing_alone(figure)))


def png(figure: Figure, scale: float = 2) -> bytes:
    """Returns the figure as PNG, enlarged by `scale`; raises ValueError if it has nothing to draw."""
    return bytes(drawing_library().vegalite_to_png(_standing_alone(figure), scale=scale))


def _standing_alone(figure: Figure) -> dict[str, Any]:
    if figure.spec is None:
        raise ValueError(f"{figure.name} has nothing to draw: {figure.empty}")
    return {**in_light(figure.spec), "background": _PAPER}
