"""From a panel to everything that Chameleon's part of a report says: tables, figures drawn from them, remarks.

Owns their order. Imports Altair by way of the charts: whoever has scores to print first should import this later.
"""

from __future__ import annotations

from ..table import Findings
from .charts import confidence_figure, reuse_figure, turns_figure
from .manner import unlike
from .panel import Panel
from .remarks import of_samples, remarks
from .tables_scores import (
    composition_table,
    correlations_table,
    domains_table,
    scores_table,
    shares_table,
    temperatures_table,
)
from .tables_turns import (
    completeness_table,
    confidence_table,
    contradictions_table,
    conversations_table,
    pages_table,
    reuse_by_turn_table,
    reuse_table,
    troubles_table,
    turns_table,
)


def findings(panel: Panel) -> Findings:
    """The same panel gives the same findings."""
    made = [
        scores_table(panel),
        composition_table(panel),
        confidence_table(panel),
        reuse_table(panel),
        reuse_by_turn_table(panel),
        correlations_table(panel),
        shares_table(panel),
        temperatures_table(panel),
        domains_table(panel),
        turns_table(panel),
        contradictions_table(panel),
        completeness_table(panel),
        troubles_table(panel),
        pages_table(panel),
        conversations_table(panel),
    ]
    tables = {table.name: table for table in made}
    asked = list(panel.models)
    figures = (
        confidence_figure(tables["chameleon-figure-3-confidence"], asked),
        reuse_figure(tables["chameleon-figure-4-reuse"], asked),
        turns_figure(tables["chameleon-figure-5-turns"], asked),
    )
    return Findings(tuple(made), figures, remarks(panel), of_samples(panel.runs), unlike=unlike(panel.runs))
