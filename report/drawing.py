"""The library that draws charts, checked before its first use: V8 in it ends the process where its reserve of address
space is refused.
"""

from __future__ import annotations

import resource
from functools import cache
from importlib import import_module
from typing import Any

from ..engine.fault import LocalFault

# Measured with vl-convert 1.9: it starts with 70 GB and dies with 60. Nearly all of it is never used.
_ADDRESSES = 66 << 30


@cache
def drawing_library() -> Any:
    """Returns vl_convert. Raises LocalFault where a limit of address space would kill the process."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    if allowed != resource.RLIM_INFINITY and allowed < _ADDRESSES:
        raise LocalFault(
            f"charts need {_ADDRESSES >> 30} GiB of address space, nearly all of it unused, and the limit here is "
            f"{allowed / (1 << 30):.0f} GiB: raise it (ulimit -v unlimited); `score` needs none"
        )
    return import_module("vl_convert")
