"""What the paper's table 1 implies for its correlations: the published rows have it as it is computed here."""

from __future__ import annotations

import numpy as np
import pytest

from millstream.report.published import PublishedFigures


@pytest.mark.parametrize(
    "kind, partner, published", [("confidence", "confidence", 0.627), ("changes", "stance changes", 0.429)]
)
def test_the_inferences_follow_from_table_1(kind: str, partner: str, published: float) -> None:
    figures = PublishedFigures("millstream.bench.chameleon.report")
    rows = [row for row in figures.entries("chameleon-table-1-scores") if row["model"] != "Overall"]
    assert len(rows) == 9
    (x, x_std), (y, y_std) = (np.array([(row[name], row[f"{name}_std"]) for row in rows]).T for name in ("srr", kind))
    between = np.mean((x - x.mean()) * (y - y.mean()))
    within = np.sqrt(np.mean(x_std**2) * np.mean(y_std**2))
    whole = np.sqrt((x.var() + np.mean(x_std**2)) * (y.var() + np.mean(y_std**2)))
    stated = [row["r"] for row in figures.entries("chameleon-correlations") if row["partner"] == partner]
    assert stated == [published, pytest.approx(between / whole), pytest.approx((published * whole - between) / within)]
