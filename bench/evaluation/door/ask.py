"""`ask`: how an item of several calls reaches models, searches and pages.

Counts what each step's calls cost, and finishes calls in flight even where the code that awaits them is cancelled.
Writes no journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from msgspec import structs

from ....engine.call import Call, Citation, Failure, Outcome, Reply
from ....engine.fault import LocalFault, Stopped
from ....engine.pairs import Pair
from .defect import BenchmarkDefect
from .item import Item
from .judges import Judges
from .outside import CallCosts, Outside
from .record import StepRecord, failed_call

Role = Literal["subject", "judge", "search", "page", "tool"]
SEARCH_COUNT = 20
_T = TypeVar("_T")


class StepFailed(Exception):
    """Raised for a step that failed for good: later steps of the item are not asked."""

    def __init__(self, step: int, record: StepRecord, detail: str) -> None:
        super().__init__(detail)
        self.step = step
        """The step of the item, from 1."""
        self.record = record
        """The record of the failure."""


class CallFailed(StepFailed):
    """Raised for a call that failed for good. If the benchmark doesn't catch it, the call's step is a failure and later
    steps of the item are not asked."""

    def __init__(self, call: Call, role: Role, step: int, failure: Failure) -> None:
        super().__init__(step, failed_call(failure, role), f"{call.model}: {failure.detail}")
        self.call = call
        """The call that failed."""
        self.role = role
        """The call's role: `subject`, `judge`, `search`, `page` or `tool`."""
        self.failure = failure
        """The failure: what happened, and what to do."""


class Ask:
    """The sender of the calls of one item: `reply = await ask(Call(ask.pair.model, "...", ask.pair.temperature))`.

    A call's cost is recorded with the next record that the item yields. A call for a later step says so: `ask(call,
    step=3)`, as where one answer is judged while the next turn is asked.
    """

    def __init__(
        self,
        outside: Outside,
        title: str,
        item: Item,
        pair: Pair,
        options: Any = None,
        judges: Judges | None = None,
        specification: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.pair = pair
        """The model under test and its treatment: temperature and reasoning effort."""
        self.options = options
        """The options of the run."""
        self.specification = specification
        """The specification of the run: the values that decide prompts and answers."""
        self.step = 0
        """The step that is due, from 1: the next record that the item yields is its record."""
        self.judges = judges or Judges()
        """How judges are asked; shared by all items of a run."""
        self._outside = outside
        self._title = title
        self._item = item
        self._open: dict[int, CallCosts] = {}
        self._written: set[int] = set()
        self._under_way: set[asyncio.Task[Any]] = set()
        self._ends: dict[int, Stopped | LocalFault] = {}

    def __repr__(self) -> str:
        return f"<Ask [{self._item.id} of {self.pair}: step {self.step}, {len(self._under_way)} calls in flight]>"

    async def __call__(self, call: Call, *, role: Role = "subject", step: int | None = None) -> Reply:
        """Sends one call and returns its reply. Raises CallFailed if it has none.

        `role` says what the call is for: `subject` is the model under test; `judge` is any other model, which is sent
        no temperature if it takes none (`judges.as_sent(call)` is what it was sent); a `search` has the query as its
        input, and its reply has `hits`; a `page` has the address as its input, and its reply has the page's text, or an
        empty text with the reason as its `finish_reason`.
        """
        at = self._checked(call, role, step)
        # The awaiting code may be cancelled, but the call is paid for: its answer is kept.
        return await asyncio.shield(self.begin(self._send(call, role, at)))

    async def outcome(
        self, call: Call, *, role: Literal["subject", "judge", "tool"], step: int | None = None
    ) -> Outcome:
        """Sends one call to a model or a tool and returns its outcome, a failure too, for code that handles failures
        itself, with which it is cancelled."""
        # No task: the call is in its lane's queue before those of work that was begun just now, as of the next step.
        return await self._outcome(call, role, self._checked(call, role, step))

    def begin(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Begins work whose result is awaited later, such as the retrieval for the next step. It belongs to the item:
        after a stop it is finished, and it is cancelled with the item. Its calls say their step."""
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._over)
        return task

    @property
    def unrecorded(self) -> float:
        """The dollars of calls whose step has no journal line yet."""
        return sum(spent.cost or 0.0 for spent in self._open.values())

    @property
    def outside(self) -> Outside:
        """The engine, for code that counts the costs of its calls itself, in `costs`."""
        return self._outside

    def costs(self, step: int | None = None) -> CallCosts:
        """Returns the costs of a step so far (None: of the step that is due)."""
        return self._spent(self.step if step is None else step)

    def has_line(self, step: int) -> bool:
        """Returns whether the line of this step, counted from 1, has been written."""
        return step in self._written

    def take(self, step: int) -> CallCosts:
        """Returns the costs of a step's calls, for the step's journal line, and marks the line as written."""
        self._written.add(step)
        return self._open.pop(step, None) or CallCosts()

    def take_all(self, step: int) -> CallCosts:
        """Returns the costs of a failed step's calls, with those of later steps added.

        Later steps get no line; their answers are in the cache and cost nothing when the item is retried.
        """
        spent = self.take(step)
        for other in [*self._open]:
            spent.add_unrecorded(self._open.pop(other))
        return spent

    def check_ended(self, step: int | None = None) -> None:
        """Raises the stop or fault that ended sending for this step or an earlier one (None: for any step), even if the
        benchmark caught it."""
        for at, error in self._ends.items():
            if step is None or at <= step:
                raise error

    async def finish(self, *, cancel: bool = False) -> None:
        """Waits until no call and no other work of the item is under way; with `cancel`, cancels it first."""
        if cancel:
            for task in self._under_way:
                task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _checked(self, call: Call, role: Role, of_step: int | None) -> int:
        """Returns the step that a call belongs to. Raises BenchmarkDefect if the item may not send it."""
        step = self.step if of_step is None else of_step
        where = f"{self._title}, item {self._item.id!r}"
        if not isinstance(call, Call):
            raise BenchmarkDefect(f"{where}: ask() takes a Call, it got a {type(call).__name__}")
        if not 1 <= step <= self._item.steps or step in self._written:
            raise BenchmarkDefect(
                f"{where}: ask() was called for step {step}, and of {self._item.steps} steps {sorted(self._written)} "
                f"have their record already"
            )
        if role == "subject":
            check_pair(call, self.pair, where)
        return step

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._under_way.discard(task)
        # The exception reaches the code that awaits the task; if the benchmark awaits it no longer, the loop must not
        # report it.
        if not task.cancelled():
            task.exception()

    async def _send(self, call: Call, role: Role, step: int) -> Reply:
        try:
            if role == "search":
                return await self._search(call, step)
            if role == "page":
                return await self._read(call, step)
        except (Stopped, LocalFault) as error:
            self._ends.setdefault(step, error)
            raise
        return self._reply(await self._outcome(call, role, step), role, step)

    async def _outcome(self, call: Call, role: Role, step: int) -> Outcome:
        ask = self._outside.ask
        try:
            outcome = await (self.judges.ask(call, ask) if role == "judge" else ask(call))
        except (Stopped, LocalFault) as error:
            self._ends.setdefault(step, error)
            raise
        spent = self._spent(step)
        if role == "tool":
            spent.add_tool(outcome)
        elif role == "subject":
            spent.add_answer(outcome)
        else:
            spent.add_judgement(outcome)
        return outcome

    def _reply(self, outcome: Outcome, role: Role, step: int) -> Reply:
        if outcome.reply is None:
            failure = outcome.failure
            assert failure is not None
            if role == "judge":
                failure = structs.replace(failure, detail=f"the judge {outcome.call.model}: {failure.detail}")
            raise CallFailed(outcome.call, role, step, failure)
        return outcome.reply

    async def _search(self, call: Call, step: int) -> Reply:
        outcome = await self._outside.search(call.model, str(call.input), SEARCH_COUNT)
        self._spent(step).add_search(outcome)
        if outcome.failure is not None:
            raise CallFailed(call, "search", step, outcome.failure)
        return Reply("\n".join(outcome.remarks), hits=tuple(outcome.hits))

    async def _read(self, call: Call, step: int) -> Reply:
        page = await self._outside.read(str(call.input))
        self._spent(step).add_page(page.keys, is_cached=page.cached)
        source = Citation(page.final_url or page.url, page.title or None)
        return Reply(page.text, finish_reason=page.status, citations=(source,))

    def _spent(self, step: int) -> CallCosts:
        # For a step that has its line already this opens new totals: such a call's cost stays unrecorded.
        return self._open.setdefault(step, CallCosts())


def check_pair(call: Call, pair: Pair, where: str) -> None:
    """Raises BenchmarkDefect if a call to the model under test has another model or treatment than the pair."""
    if call.model != pair.model:
        raise BenchmarkDefect(
            f'{where}: {call.model} was asked as the model under test, which is {pair.model}: others are a "judge"'
        )
    if call.temperature != pair.temperature:
        raise BenchmarkDefect(
            f"{where}: {call.model} was asked at temperature {call.temperature}, and the pair's is {pair.temperature}: "
            f"pass temperature=pair.temperature"
        )
    if pair.effort is not None and call.reasoning_effort != pair.effort:
        raise BenchmarkDefect(
            f"{where}: {call.model} was asked with reasoning effort {call.reasoning_effort}, and the pair's is "
            f"{pair.effort}: pass reasoning_effort=pair.effort"
        )
