"""The options that the manifest of a run holds, and the command that repeats the run."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any


def kept_options(manifest: Mapping[str, Any] | None, part: str) -> Mapping[str, Any]:
    """Returns the options under a name, a benchmark's or `sending`; empty if the manifest has none."""
    options: Mapping[str, Any] = ((manifest or {}).get("options") or {}).get(part) or {}
    return options


def command_again(
    manifest: Mapping[str, Any], benchmark: str, words_of: Callable[[Mapping[str, Any]], Iterable[str]]
) -> str:
    """Returns the command that asks the same again; empty if the manifest lacks the options. `words_of` gives the words
    after `run` from the kept options. A report is passed on, so files are named without their folders."""
    kept, sending = kept_options(manifest, benchmark), kept_options(manifest, "sending")
    if "model" not in kept:
        return ""
    words = ["millstream", "run", *words_of(kept)]
    if sending.get("base_url"):
        words += ["--base-url", sending["base_url"]]
    for host in sending.get("allow_host") or ():
        words += ["--allow-host", host]
    if sending.get("config"):
        words += ["--config", Path(sending["config"]).name]
    return f"{shlex.join(words)} --out DIR"
