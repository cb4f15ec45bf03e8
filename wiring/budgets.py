"""Where the limit on an engine's cost is counted on disk: in the file that its settings name, else beside the cache.

Owns what makes two engines the same program's. How a budget is kept: the engine room's budget_file and
program_budget.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ..engine.budget_file import BudgetFile, Leftover
from ..engine.money import Purse
from ..engine.program_budget import forget_leftovers, identity_of, program_budget
from .settings import Settings

FOLDER = "budgets"


def budgets_folder(settings: Settings) -> Path:
    """Where budgets lie that no other folder holds."""
    return settings.cache_folder() / FOLDER


def attach_budget(purse: Purse, settings: Settings) -> None:
    """Have an engine's purse counted on disk, where it has a limit. Raises LocalFault."""
    if settings.max_cost is None or settings.mode == "strict":
        return
    if settings.budget is not None:
        purse.attach(BudgetFile(settings.budget, settings.max_cost))
        return
    # What was spent before is no part of what a killed engine leaves.
    purse.attach(program_budget(budgets_folder(settings), _identity(settings), settings.max_cost - purse.spent))


def attach_new_budget(purse: Purse, settings: Settings) -> list[Leftover]:
    """Have a purse counted on disk that goes on with nobody's: what killed programs of the same identity may have
    spent, which is forgotten then."""
    if purse.limit is None:
        return []
    identity = _identity(settings)
    left = forget_leftovers(budgets_folder(settings), identity)
    purse.attach(program_budget(budgets_folder(settings), identity, purse.limit, takes_up=False))
    return left


def _identity(settings: Settings) -> str:
    models = [lane.model for lane in settings.lanes]
    return identity_of(settings.budget_name or _main_program(), models, settings.max_cost)


def _main_program() -> str:
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    return str(Path(path).resolve()) if path else f"interactive in {Path.cwd()}"
