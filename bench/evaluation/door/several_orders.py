"""An order that stands for several runs, as a file with several tasks does."""

from __future__ import annotations

from collections.abc import Sequence

from ....configuration.errors import UsageError
from .benchmark import Order


class SeveralOrders(UsageError):
    """Raised by a benchmark for an order that stands for several; `orders` has these, each with a folder of its own
    within the order's."""

    def __init__(self, message: str, orders: Sequence[Order]) -> None:
        super().__init__(message)
        self.orders = tuple(orders)
