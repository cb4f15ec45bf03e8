"""The published figures of the Chameleon paper, copied into `published.toml`."""

from __future__ import annotations

from collections.abc import Iterator

from ....metrics.chameleon.summary import correlations_from_means
from ....report.published import PublishedFigures

OVERALL = "Overall"
PARTNERS = {"confidence": "confidence", "changes": "stance changes"}
_FIGURES = PublishedFigures(__package__)
published_rows = _FIGURES.rows
beside_published = _FIGURES.beside


def implied_correlations() -> Iterator[tuple[str, str, float]]:
    """Yields what table 1 alone implies for the published correlations, as rows of whose, partner and r: over all
    models if r were 0 within each of its rows, and within these rows if the published r is over all of them."""
    rows = [row for row in _FIGURES.entries("chameleon-table-1-scores") if row["model"] != OVERALL]
    published = {row["partner"]: row["r"] for row in _FIGURES.entries("chameleon-correlations")}
    for kind, partner in PARTNERS.items():
        srr, other = ([(row[name], row[f"{name}_std"]) for row in rows] for name in ("srr", kind))
        pooled, within = correlations_from_means(srr, other, published[partner])
        yield "all models, if 0 within each row of table 1 (inference)", partner, pooled
        yield f"within models, if {published[partner]} is over all rows (inference)", partner, within
