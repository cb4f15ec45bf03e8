"""`ask` as the author of a benchmark of several steps has it: messages in, a reply out.

Owns the numbers of samples and steps, and what an author's code may not catch. Every call goes through the item's
`Ask`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import iscoroutine
from typing import Any, Literal, TypeVar, cast

import msgspec
from msgspec import structs

from ...engine.call import TRIAL_MAX, Call, Message, Outcome, Reply
from ...engine.content import Native, Tool, ToolCall, ToolResult
from ...engine.fault import LocalFault, Stopped
from ...format import count_text
from ...providers.tool_results import PROVIDER as TOOL
from ...providers.tool_results import result_in
from ..evaluation.door.ask import Ask, CallFailed, Role, StepFailed
from ..evaluation.door.defect import STEPS_EXCEEDED, BenchmarkDefect
from ..tools.toolset import AnyTool, CarryOut, Offer, ToolSet
from .messages import Said, messages_in
from .records import Record
from .rows import TaskError, canonical, shown
from .task import Task
from .transcript import AskedCall

_OF_A_CALL = frozenset(
    {"max_tokens", "top_p", "stop", "seed", "extra", "json_schema", "logprobs", "tool_choice", "parallel_tools"}
)
# For the model under test, the run decides these.
_OF_A_PAIR = frozenset({"temperature", "reasoning_effort"})
# Every program that reads JSON holds a whole number of 53 bits exactly.
_SAMPLE_BITS = 53


class ItemEnded(BaseException):
    """Raised in an author's code when its item can't go on: sending has stopped, its calls are used up, or the code
    itself is at fault. It passes `except Exception`."""

    def __init__(self, error: Stopped | LocalFault | BenchmarkDefect | StepFailed) -> None:
        super().__init__(str(error))
        self.error = error
        """What ended the item."""


_T = TypeVar("_T")
# The tool's call in which the code runs: what it asks there has samples of its own, which are the same if a kept result
# stands for the tool.
_CARRYING: ContextVar[str] = ContextVar("the tool that is carried out", default="")


class StepAsk:
    """The sender of the calls of one item: `reply = await ask([ms.user("…")], model=None, tools=(), sample=None)`. It
    raises CallFailed for a call without a reply.

    messages: a text, or messages and replies in their order; they are copied when `ask` is called.
    model: one of the names in `models`; None: the model under test.
    tools: what the model may ask for; `ms.tool_loop` carries it out.
    sample: the number of the sample: equal calls with the same number have one answer. None: equal calls of an item, of
    its trials and of other items are different samples. Another model answers an equal call about the same item and
    trial once for all models under test.
    Others are parameters of the call: max_tokens, top_p, stop, seed, extra, json_schema, logprobs, tool_choice or
    parallel_tools; of another model than the one under test also temperature and reasoning_effort.
    """

    def __init__(self, ask: Ask, item: str, task: Task, author: Any, tools: ToolSet) -> None:
        self.item = item
        """The item and its trial, as in the record's `id`."""
        self.model = ask.pair.model
        """The model under test."""
        self.asked: list[AskedCall] = []
        """The calls so far."""
        self.ended: ItemEnded | None = None
        """What ended the item, also where the author's code caught it; None: nothing did."""
        self._ask = ask
        self._task = task
        # A Benchmark, which names this class in turn.
        self._author = author
        self._tools = tools
        self._is_over = False
        self._steps = 0
        self._equal = Counter[bytes]()
        # The calls that nobody has awaited yet.
        self._unawaited: dict[int, Coroutine[Any, Any, Reply]] = {}
        self._servers = tools.of_item()

    def __repr__(self) -> str:
        return f"<StepAsk [{self.item} of {self._ask.pair}: {self._steps} of at most {self._author.steps_max} calls]>"

    def __call__(
        self,
        messages: Said,
        *,
        model: str | None = None,
        tools: Sequence[Any] = (),
        sample: int | None = None,
        **parameters: Any,
    ) -> Coroutine[Any, Any, Reply]:
        """Returns what sends one call, when it is awaited, and returns its reply."""
        self._check()
        with self._ending():
            made = self._asked_call(messages_in(messages), model, tools, sample, parameters)
        work = self._unawaited[id(made)] = self._answered(made)
        return work

    def begin(self, work: Said | Coroutine[Any, Any, _T], **options: Any) -> asyncio.Task[Any]:
        """Begins what is awaited later: a call, with the arguments of `ask`, or a coroutine of the author's. `later =
        ask.begin(talk)`, and `reply = await later`. It belongs to the item, which ends after it."""
        return self._ask.begin(cast(Coroutine[Any, Any, _T], work) if iscoroutine(work) else self(work, **options))  # type: ignore[arg-type]

    async def offer(self, tools: Sequence[AnyTool] | None = None, *, keep: bool = True) -> Offer:
        """Returns tools as they are offered to a model (None: those of the benchmark): `await ask(talk,
        tools=offer.declared)`. `keep`: as in `ms.tool_loop`."""
        self._check()
        with self._ending():
            return await self._tools.offer(tools, self._servers, self._listed, is_kept=keep)

    async def carry_out(self, offer: Offer, calls: Sequence[ToolCall]) -> list[Message]:
        """Carries out a model's calls of tools, all at once, and returns a message with each result, in their order."""
        self._check()
        made = [AskedCall(call) for call in calls]
        self.asked += made
        work = [self._ask.begin(self._carried_out(offer, call, each)) for call, each in zip(calls, made, strict=True)]
        with self._ending():
            # The awaiting code may be cancelled, but the tools have begun: their results are kept.
            return [await asyncio.shield(each) for each in work]

    async def finish(self) -> None:
        """Waits for what was begun, then for the calls of tasks that the author's code left behind: these ask no
        more."""
        await self._ask.finish()
        self._is_over = True
        await self._ask.finish()

    async def close(self) -> None:
        """Ends what is still under way, and closes calls that nobody awaited and the item's servers."""
        self._is_over = True
        for work in self._unawaited.values():
            work.close()
        await self._ask.finish(cancel=True)
        await self._servers.close()

    def missed(self) -> TaskError | None:
        """Returns the error of code that left calls out, whatever it returned without them; None: it left none out."""
        if self._unawaited:
            return TaskError(
                f"run() did not await {count_text(len(self._unawaited), 'call')} of ask: write `await ask(…)`"
            )
        return None if self._steps else TaskError("run() ended without a call: what it returned is no model's")

    def _asked_call(
        self,
        turns: tuple[Message, ...],
        model: str | None,
        tools: Sequence[Any],
        sample: int | None,
        parameters: dict[str, Any],
    ) -> AskedCall:
        name, role = self._who(model)
        pair = self._ask.pair
        settled: dict[str, Any] = {"max_tokens": self._task.max_tokens}
        if role == "subject":
            settled |= {"temperature": pair.temperature, "reasoning_effort": pair.effort or self._task.reasoning_effort}
        self._check_parameters(parameters, role)
        for tool in tools:
            if not isinstance(tool, Tool | Native):
                raise TypeError(f"ask: tools: expected ms.Tool, or functions through ms.tool_loop, got {shown(tool)}")
        call = Call(name, turns, **{**settled, **parameters, "tools": tuple(tools) or None})
        self._steps += 1
        if self._steps > (most := self._author.steps_max):
            detail = f"its code asked more than steps_max = {most:,} calls: raise steps_max, or let run() end before"
            raise StepFailed(1, Record(status=STEPS_EXCEEDED, role="subject", error=detail), detail)
        return AskedCall(structs.replace(call, trial=self._sample(call, sample)), role, parameters, sample)

    def _who(self, model: str | None) -> tuple[str, str]:
        """Returns the model that is meant, and its role."""
        if model is None or model == self.model:
            return self.model, "subject"
        for role, name in self._author.models.items():
            if model in (role, name):
                return name, role
        name = model if "/" in model else "provider/model"
        role = "judge" if "/" in model else model
        raise self._defect(f'ask(model="{model}"): declare it on the class, as models = {{"{role}": "{name}"}}')

    def _check_parameters(self, parameters: dict[str, Any], role: str) -> None:
        allowed = _OF_A_CALL if role == "subject" else _OF_A_CALL | _OF_A_PAIR
        for name in parameters.keys() - allowed:
            if name in _OF_A_PAIR:
                raise self._defect(f"ask({name}=…): the run decides it: set {name} on the class")
            raise self._defect(f"ask({name}=…): expected {', '.join(sorted(allowed))}")

    def _sample(self, call: Call, sample: int | None) -> int:
        """Returns the sample number of a call: the author's own, or one of its item, trial and place among equal calls
        of the item. So it stays the same however many items and trials there are, and in whatever order they run."""
        if sample is not None:
            if not isinstance(sample, int) or isinstance(sample, bool) or not 0 <= sample <= TRIAL_MAX:
                raise TypeError(f"ask: sample: expected a whole number of 0 or more, got {shown(sample)}")
            return sample
        within = _CARRYING.get()
        alike = hashlib.sha256(within.encode() + msgspec.json.encode(call)).digest()
        place = self._equal[alike]
        self._equal[alike] += 1
        digest = hashlib.sha256(f"{self.item}\0{place}{within}".encode()).digest()
        return int.from_bytes(digest[:8]) >> (64 - _SAMPLE_BITS)

    async def _answered(self, asked: AskedCall) -> Reply:
        del self._unawaited[id(asked)]
        self._check()
        # The awaiting code may be cancelled, but the call is paid for: its answer is kept.
        return await asyncio.shield(self._ask.begin(self._sent(asked)))

    async def _sent(self, asked: AskedCall) -> Reply:
        assert isinstance(asked.call, Call)
        self.asked.append(asked)
        role: Literal["subject", "judge"] = "subject" if asked.role == "subject" else "judge"
        with self._ending():
            asked.outcome = await self._ask.outcome(asked.call, role=role)
        return _reply_of(asked.outcome, role)

    async def _carried_out(self, offer: Offer, call: ToolCall, made: AskedCall) -> Message:
        """Returns the message with the result of a model's call."""
        begun = offer.begun(call)
        if isinstance(begun, ToolResult):
            result = begun
        elif offer.is_kept:
            question, carry_out = begun
            made.outcome = await self._kept(call.name, {**question, "pair": str(self._ask.pair)}, carry_out)
            result = result_in(_reply_of(made.outcome, "tool"))
        else:
            result = await begun[1]()
        made.result = Message("tool", (structs.replace(result, id=call.id, name=call.name),))
        return made.result

    async def _listed(self, question: Mapping[str, Any], carry_out: CarryOut) -> ToolResult:
        # The same for all items.
        return result_in(_reply_of(await self._kept("mcp", question, carry_out, sample=0), "tool"))

    async def _kept(
        self, name: str, question: Mapping[str, Any], carry_out: CarryOut, sample: int | None = None
    ) -> Outcome:
        """Returns the outcome of a tool's call from the store, else carries it out and stores it like an answer."""
        call = Call(f"{TOOL}/{name}", canonical({"benchmark": self._task.name, **question}).decode())
        call = structs.replace(call, trial=self._sample(call, sample))
        raised: list[BaseException] = []

        async def carried_out() -> ToolResult:
            _CARRYING.set(f"\0{call.trial} {call.model} {call.input}")
            try:
                return await carry_out()
            except (Exception, asyncio.CancelledError, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001 (as ItemEnded in a call of the tool's own: no result)
                raised.append(error)
                task.cancel()
                return await asyncio.Future()  # until the call is left

        task = self._ask.begin(self._ask.outcome(structs.replace(call, tag=carried_out), role="tool"))
        try:
            return await task
        except asyncio.CancelledError:
            if raised:
                raise raised[0] from None
            raise

    def _check(self) -> None:
        """Raises what ended the item, if its author's code caught that and goes on. A task that outlives the item ends
        without a word."""
        if self._is_over:
            raise asyncio.CancelledError(f"item {self.item!r} has ended")
        if self.ended is not None:
            raise self.ended

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Lets what stops the run, and what is no failure of a call, end the item."""
        try:
            yield
        except CallFailed:
            raise
        except (Stopped, LocalFault, BenchmarkDefect, StepFailed) as error:
            self.ended = self.ended or ItemEnded(error)
            raise self.ended from error

    def _defect(self, what: str) -> BenchmarkDefect:
        return BenchmarkDefect(f"item {self.item!r}: {what}")


def _reply_of(outcome: Outcome, role: Role) -> Reply:
    if outcome.failure is not None:
        raise CallFailed(outcome.call, role, 1, outcome.failure)
    assert outcome.reply is not None
    return outcome.reply
