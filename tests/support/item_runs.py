"""Records of a task as another program writes them, for the table of items by models."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ONE, TWO = "lab/one", "lab/two"


def answer(item: str, model: str, text: str, *, score: float | None = None, **fields: Any) -> dict[str, Any]:
    """An answer's line; `fields` replace or add others, as `trial`, `cost`, `prompt`, `judge`."""
    trial = fields.get("trial", 0)
    common = {"id": f"{item}/{trial}", "item": item, "trial": trial, "step": 1, "model": model, "temperature": None}
    row = {"answer": f"right of {item}"}
    return {**common, "status": "ok", "text": text, "score": score, "row": row, "prompt": f"What of {item}?", **fields}


def write_records(folder: Path, records: Iterable[dict[str, Any]], name: str = "records.jsonl") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in records), "utf-8")
    return folder


FEW = (
    # Both right; the first model's trials differ; no score; wrong, and dear; cut off; refused.
    *(answer("same", model, "A", score=1.0, cost=0.001, group="north") for model in (ONE, TWO)),
    answer("torn", ONE, "A", score=1.0, group="north"),
    answer("torn", ONE, "B", score=0.0, trial=1, group="north"),
    answer("torn", TWO, "A", score=1.0, group="north"),
    answer("unread", ONE, "who knows", problem="the answer names no letter for certain", group="north"),
    answer("unread", TWO, "A", score=1.0, group="north"),
    answer("dear", ONE, "The right words stand here.", score=1.0, cost=0.01, group="south"),
    answer("dear", TWO, "The wrong words stand here.", score=0.0, cost=2.5, group="south"),
    answer("cut", ONE, "x" * 500, score=0.0, truncated=True, group="south"),
    answer("refused", TWO, "I will not.", status="refused", group="south"),
)
