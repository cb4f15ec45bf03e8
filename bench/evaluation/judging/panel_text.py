"""A panel as lines for a terminal and as plain values for `--json`."""

from __future__ import annotations

from typing import Any

import msgspec

from ....engine.runs.pairs import Pair
from ....format import decimal_text
from ....report.text import table
from .panel import Panel


def as_text(panel: Panel) -> str:
    """Returns the scores under each judge, side by side."""
    rows = [("model", "judge", *panel.score_names)]
    for pair in dict.fromkeys(pair for pairs in panel.scores.values() for pair in pairs):
        for judge, pairs in panel.scores.items():
            found = pairs.get(pair, {})
            cells = (decimal_text(found[name].value, 3) if name in found else "-" for name in panel.score_names)
            rows.append((str(Pair(*pair)), judge, *cells))
    return "\n".join(
        (table(rows, (0, 1)), f"scores over the {panel.scores_of:,} answers that all {len(panel.judges)} judges judged")
    )


def as_json(panel: Panel) -> dict[str, Any]:
    """Returns the panel's scores as plain values."""
    return {
        "judges": list(panel.judges),
        "own": panel.own,
        "answers": len(panel.answers),
        "judged_by_all": panel.scores_of,
        "scores": {
            judge: {
                str(Pair(*pair)): {name: msgspec.to_builtins(score) for name, score in found.items()}
                for pair, found in pairs.items()
            }
            for judge, pairs in panel.scores.items()
        },
    }
