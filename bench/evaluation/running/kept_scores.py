"""scores.json of a run's folder: written with the run, and by each command that computes its scores again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from ....engine.folder_file import keep_whole

SCORES = "scores.json"


def write_scores(folder: Path, scores: dict[str, Any]) -> None:
    keep_whole(folder / SCORES, orjson.dumps(scores, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
