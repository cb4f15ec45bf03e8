"""The file that counts an engine's cost against its limit: the one in its settings, else one beside the cache.

Owns the rule by which two engines belong to the same program. How a budget is kept: the engine's budget_file and
program_budget.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ..engine.attempts.budget_file import BudgetFile, Leftover
from ..engine.attempts.money import CostBudget
from ..engine.attempts.program_budget import forget_leftovers, program_budget
from .settings import Settings

FOLDER = "budgets"


def budgets_folder(settings: Settings) -> Path:
    """Returns the folder of budgets that belong to no run's folder."""
    return settings.cache_folder() / FOLDER


def attach_budget(budget: CostBudget, settings: Settings) -> None:
    """Counts an engine's spending in a file, if it has a limit. Raises LocalFault if the file can't be used."""
    if settings.max_cost is None or settings.mode == "strict" or budget.is_attached:
        return
    if settings.budget is not None:
        budget.attach(BudgetFile(settings.budget, settings.max_cost))
        return
    # What was spent before is no part of what a killed engine leaves.
    budget.attach(program_budget(budgets_folder(settings), _identity(settings), settings.max_cost - budget.spent))


def attach_new_budget(budget: CostBudget, settings: Settings) -> list[Leftover]:
    """Counts spending in a new file. Returns what killed programs of the same identity may have spent, and forgets
    it."""
    if budget.limit is None:
        return []
    identity = _identity(settings)
    left = forget_leftovers(budgets_folder(settings), identity)
    budget.attach(program_budget(budgets_folder(settings), identity, budget.limit, takes_up=False))
    return left


def _identity(settings: Settings) -> str:
    """Returns a text that is equal for two engines of one program: from its file, its lanes' models and its limit."""
    models = sorted(lane.model for lane in settings.lanes)
    return json.dumps([settings.budget_name or _main_program(), models, settings.max_cost])


def _main_program() -> str:
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    return str(Path(path).resolve()) if path else f"interactive in {Path.cwd()}"
