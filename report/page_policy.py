"""The texts that our pages are made of, and the policy of a page that runs only its own scripts."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

_NONE = "'none'"


def source_of(name: str, package: str = __package__) -> str:
    """Returns the text of a script, a style sheet or a frame."""
    return files(package).joinpath(name).read_text("utf-8")


def policy(style: str, scripts: Sequence[str], *more: str) -> str:
    """Returns the policy that allows this style, these scripts, images in the page itself, and `more`."""
    return "; ".join(
        (
            f"default-src {_NONE}",
            f"script-src {' '.join(map(_hash, scripts)) if scripts else _NONE}",
            f"style-src {_hash(style)}",
            "img-src data:",
            f"base-uri {_NONE}",
            f"form-action {_NONE}",
            *more,
        )
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
