"""What follows a commit: the lines of a journal, one flush for all of them, and only then whoever waits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from msgspec import structs

from millstream.engine.call import Call, Outcome
from millstream.engine.fault import LocalFault
from millstream.engine.sink import SinkLine
from millstream.engine.store.commit import CommitGroup, StoreRow


class Journal:
    """Notes what it is told, in order; `refuses` raises for what it does not take."""

    def __init__(self, told: list[str], refuses: Callable[[str], None] = lambda what: None) -> None:
        self.fault: LocalFault | None = None
        self._told = told
        self._refuses = refuses

    def write(self, outcome: Outcome) -> None:
        self._refuses(str(outcome.call.tag))
        self._told.append(f"line {outcome.call.tag}")

    def flush(self) -> None:
        self._refuses("flush")
        self._told.append("flush")


Errors = dict[int, Exception | None]


def _wake(told: list[str], errors: Errors, number: int, error: Exception | None) -> None:
    told.append(f"woken {number}")
    errors[number] = error


def group_of(journal: Journal, told: list[str], errors: Errors, count: int = 3) -> list[StoreRow]:
    lines = [SinkLine(journal, Outcome(Call("sim/a", "hi", tag=number))) for number in range(count)]
    return [StoreRow(None, b"", b"", partial(_wake, told, errors, line.outcome.call.tag), line) for line in lines]


def ended(
    refuses: Callable[[str], None] = lambda what: None, *, fault: LocalFault | None = None, leaves: tuple[int, ...] = ()
) -> tuple[list[str], list[Exception | None]]:
    """What happened in its order, and what each one that waited was told."""
    told: list[str] = []
    errors: Errors = {}
    rows = group_of(Journal(told, refuses), told, errors)
    for number in leaves:
        line = rows[number].line
        assert line is not None
        line.sink = None
    CommitGroup(rows, {}, {}).end(fault)
    return told, [errors[number] for number in sorted(errors)]


def refusing(*names: str) -> Callable[[str], None]:
    def refuse(what: str) -> None:
        if what in names:
            raise LocalFault(f"no {what}")

    return refuse


def test_every_line_is_flushed_before_anybody_is_woken_and_once_for_all() -> None:
    told, found = ended()
    assert told == ["line 0", "line 1", "line 2", "flush", "woken 0", "woken 1", "woken 2"]
    assert found == [None] * 3


def test_a_commit_that_failed_is_followed_by_no_line() -> None:
    fault = LocalFault("full")
    told, found = ended(fault=fault)
    assert told == ["woken 0", "woken 1", "woken 2"]
    assert found == [fault] * 3


def test_who_left_has_no_line() -> None:
    told, found = ended(leaves=(1,))
    assert told == ["line 0", "line 2", "flush", "woken 0", "woken 1", "woken 2"]
    assert found == [None] * 3


def test_a_line_that_cant_be_written_is_told_to_its_own_caller_alone() -> None:
    told, found = ended(refusing("1"))
    assert [entry for entry in told if "woken" not in entry] == ["line 0", "line 2", "flush"]
    assert [str(one) if one else None for one in found] == [None, "no 1", None]


def test_a_flush_that_fails_is_told_to_all_whose_lines_it_had() -> None:
    _, found = ended(refusing("1", "flush"))
    assert [str(one) for one in found] == ["no flush", "no 1", "no flush"]


@pytest.mark.parametrize("has_line", [True, False])
def test_journals_are_flushed_one_by_one_and_who_has_none_is_woken_too(has_line: bool) -> None:
    told: list[str] = []
    rows = group_of(Journal(told), told, {}, 1) + group_of(Journal(told), told, {}, 1)
    rows = rows if has_line else [structs.replace(row, line=None) for row in rows]
    CommitGroup(rows, {}, {}).end(None)
    lines = ["line 0", "line 0", "flush", "flush"] if has_line else []
    assert told == [*lines, "woken 0", "woken 0"]
