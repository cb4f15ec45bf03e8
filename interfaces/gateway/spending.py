"""A caller's budget: a file beside the cache that several gateways share and that outlives a kill.

Owns where it lies. Knows no caller's token.
"""

from __future__ import annotations

from pathlib import Path

from ...engine.attempts.budget_file import BudgetFile, BudgetPlace
from ...engine.attempts.money import CostBudget


def caller_purse(folder: Path, name: str, limit: float) -> CostBudget:
    """Returns the budget of one caller, with `limit` dollars. `folder` has all callers' files. Raises LocalFault."""
    purse = CostBudget(limit)
    purse.attach(BudgetFile(BudgetPlace(folder / f"{name}.budget", lock=folder), limit))
    return purse
