"""The published figures of the Chameleon paper, copied into `published.toml`."""

from __future__ import annotations

from ....report.published import PublishedFigures

OVERALL = "Overall"
_FIGURES = PublishedFigures(__package__)
published_rows = _FIGURES.rows
beside_published = _FIGURES.beside
