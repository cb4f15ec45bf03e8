"""Figures as files: SVG and PNG, in a plain light look, made in this process and without a network; the library that
draws them.

The same figure gives the same bytes, as long as the fonts of the machine are the same.
"""

from __future__ import annotations

import resource
from functools import cache
from importlib import import_module
from typing import Any

from ..engine.fault import LocalFault
from .colours import COLOURS, in_light
from .table import Figure

_PAPER = COLOURS["paper"].light

# Measured with vl-convert 1.9: it starts with 70 GB and dies with 60. Nearly all of it is never used.
_ADDRESSES = 66 << 30


@cache
def drawing_library() -> Any:
    """Returns vl_convert. Raises LocalFault where a limit of address space would kill the process: V8 reserves some."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    if allowed != resource.RLIM_INFINITY and allowed < _ADDRESSES:
        raise LocalFault(
            f"charts need {_ADDRESSES >> 30} GiB of address space, nearly all of it unused, and the limit here is "
            f"{allowed / (1 << 30):.0f} GiB: raise it (ulimit -v unlimited); `score` needs none"
        )
    return import_module("vl_convert")


def svg(figure: Figure) -> str:
    """Returns the figure as SVG; raises ValueError if it has nothing to draw."""
    if figure.spec is None:
        raise ValueError(f"{figure.name} has nothing to draw: {figure.empty}")
    return str(drawing_library().vegalite_to_svg({**in_light(figure.spec), "background": _PAPER}))


def png(drawn: str, scale: float = 2) -> bytes:
    """Returns a figure's SVG as PNG, enlarged by `scale`."""
    return bytes(drawing_library().svg_to_png(drawn, scale=scale))
