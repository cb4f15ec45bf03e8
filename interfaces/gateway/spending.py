"""A caller's budget: a file beside the cache that several gateways share and that outlives a kill.

Owns where it lies, and reads what earlier versions kept there: an append-only file with two lines a call, of which a
call without its second line counts at its worst. Knows no caller's token.
"""

from __future__ import annotations

import zlib
from pathlib import Path

from ...engine.attempts.budget_file import Amounts, BudgetFile, BudgetPlace
from ...engine.attempts.money import CostBudget
from ...engine.fault import LocalFault

_EARLIER, _COUNTED = ".spent", ".spent-counted"
_RESERVED = "+"


def caller_purse(folder: Path, name: str, limit: float) -> CostBudget:
    """Returns the budget of one caller, with `limit` dollars. `folder` has all callers' files. Raises LocalFault."""
    earlier = folder / f"{name}{_EARLIER}"
    before = _earlier_amounts(earlier)
    file = BudgetFile(BudgetPlace(folder / f"{name}.budget", before, lock=folder), limit)
    if earlier.exists():
        # Where both exist a gateway was stopped between these two steps, or an earlier version ran again.
        lacking = max(0.0, before.granted - file.own.granted)
        file.settle(-lacking, 0.0)
        try:
            earlier.rename(folder / f"{name}{_COUNTED}")
        except OSError as error:
            raise LocalFault(
                f"{earlier} can't be renamed ({error.strerror}): what a caller spent is counted in {file.path} now; "
                f"make the folder writable, or use another one with --cache"
            ) from error
    purse = CostBudget(limit)
    purse.attach(file)
    return purse


def _earlier_amounts(path: Path) -> Amounts:
    """Returns the amounts in an earlier version's file; zero without one. A torn last line is of a call that wasn't
    sent."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except (FileNotFoundError, NotADirectoryError):
        return Amounts()
    except OSError as error:
        raise LocalFault(
            f"{path} can't be read ({error.strerror}), and a caller's spending is counted there: make it readable"
        ) from error
    reserved: dict[str, float] = {}
    settled = 0.0
    for line in lines:
        text, _, crc = line.decode("ascii", "replace").rpartition(" ")
        words = text.split(" ")
        if len(words) != 3 or crc != f"{zlib.crc32(text.encode()):08x}":
            raise LocalFault(
                f"{path} is damaged, so what a caller spent is not known: mend it, or remove it to begin from nothing"
            )
        sign, mark, amount = words[0], words[1], float(words[2])
        if sign == _RESERVED:
            reserved[mark] = amount
        else:
            reserved.pop(mark, None)
            settled += amount
    return Amounts(settled + sum(reserved.values()), settled)
