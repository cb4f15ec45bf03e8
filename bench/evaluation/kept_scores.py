"""scores.json of a run's folder: written with the run, and by each command that computes its scores again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from ...engine.fault import LocalFault
from ...engine.folder_file import keep_whole
from ...engine.remarks import remark

SCORES = "scores.json"


def write_scores(folder: Path, scores: dict[str, Any]) -> None:
    keep_whole(folder / SCORES, orjson.dumps(scores, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def keep_scores(folder: Path, scores: dict[str, Any], why_not: str = "") -> dict[str, Any]:
    """Writes scores that were computed anew, and returns them. `why_not`: what scores.json keeps in their place, for a
    remark; they are then only shown. A folder that can't be written is a remark too."""
    if why_not:
        remark(f"{folder}/{SCORES} keeps {why_not}")
        return scores
    try:
        write_scores(folder, scores)
    except LocalFault as fault:
        remark(str(fault))
    return scores
