"""Everything that a page shows: the findings, and beside them who was asked, what is missing, and how it was made.

Owns these shapes alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from ..intervals import Over
from .explorer import Explorer
from .survey import IssueSet
from .table import Findings


class Standing(Struct, frozen=True):
    """What became of a model's prompts. `expected` counts all of them where `is_told`, as a run's manifest tells it;
    else those that the answers themselves let expect. Where an answer takes several steps, `steps` has those that
    failures were at; `held` of the pending ones wait for a failed one."""

    model: str
    expected: int
    answered: int
    refused: int = 0
    failed: Mapping[str, int] = MappingProxyType({})
    is_told: bool = True
    steps: Mapping[str, int] = MappingProxyType({})
    held: int = 0

    @property
    def failures(self) -> int:
        return sum(self.failed.values())

    @property
    def pending(self) -> int:
        return max(0, self.expected - self.answered - self.failures)

    @property
    def is_complete(self) -> bool:
        return not (self.pending or self.failures)


class Origin(Struct, frozen=True):
    """How one run's records came about: facts as pairs of a label and a value, and the command that asks the same
    again, where it is known."""

    name: str
    facts: tuple[tuple[str, str], ...]
    command: str = ""


class Contents(Struct, frozen=True):
    """`choices` are the readings that this report goes by, as pairs of label and value; `over` says what intervals are
    over; `command` makes it again."""

    title: str
    standings: tuple[Standing, ...]
    findings: Findings
    explorer: Explorer
    origins: tuple[Origin, ...]
    issue_set: IssueSet = 107
    over: Over = "issues"
    choices: tuple[tuple[str, str], ...] = ()
    command: str = ""

    @property
    def unmeasured(self) -> tuple[str, ...]:
        return self.findings.unmeasured
