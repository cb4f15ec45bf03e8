"""Where the limit on an engine's cost is counted on disk: in the file that its settings name, else beside the cache.

Owns what makes two engines the same program's. How a budget is kept: the engine room's budget_file and
program_budget.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ..engine.budget_file import Amounts, BudgetFile, Leftover
from ..engine.money import Purse
from ..engine.program_budget import forget_leftovers, identity_of, program_budget
from .settings import Settings

FOLDER = "budgets"


def attach_budget(purse: Purse, settings: Settings) -> None:
    """Have an engine's purse counted on disk, where it has a limit. Raises LocalFault."""
    if settings.max_cost is None or settings.mode == "strict":
        return
    if settings.budget is not None:
        purse.attach(BudgetFile(settings.budget, settings.max_cost))
        return
    before = Amounts(purse.spent, purse.spent - purse.unsure)
    purse.attach(program_budget(_folder(settings), _identity(settings), settings.max_cost, before))


def attach_new_budget(purse: Purse, settings: Settings) -> list[Leftover]:
    """Have a purse counted on disk that goes on with nobody's: what killed programs of the same identity may have
    spent, which is forgotten then."""
    if purse.limit is None:
        return []
    identity = _identity(settings)
    left = forget_leftovers(_folder(settings), identity)
    purse.attach(program_budget(_folder(settings), identity, purse.limit, takes_up=False))
    return left


def _folder(settings: Settings) -> Path:
    return settings.cache_folder() / FOLDER


def _identity(settings: Settings) -> str:
    models = [lane.model for lane in settings.lanes]
    return identity_of(settings.budget_name or _main_program(), models, settings.max_cost)


def _main_program() -> str:
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    return str(Path(path).resolve()) if path else f"interactive in {Path.cwd()}"
