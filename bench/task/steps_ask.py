"""`ask` as the author of a benchmark of several steps has it: messages in, a reply out.

Owns the numbers of samples and steps, and what an author's code may not catch. Every call goes through the item's
`Ask`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from inspect import iscoroutine
from typing import Any, Literal, NoReturn, Protocol, TypeVar, cast

import msgspec
from msgspec import Struct

from ...engine.call import TRIAL_MAX, Call, Message, Outcome, Reply
from ...engine.content import Native, Tool, ToolCall, ToolResult
from ...engine.fault import LocalFault, Stopped
from ...providers.tool_results import PROVIDER as TOOL
from ...providers.tool_results import result_of
from ..evaluation.door.ask import Ask, CallFailed, StepFailed
from ..evaluation.door.defect import STEPS_EXCEEDED, BenchmarkDefect
from ..tools.toolbox import AnyTool, Kept, KeptFor, Offer, Toolbox, ToolSet
from .messages import Said, messages_in
from .records import Record
from .rows import canonical, shown
from .transcript import TranscriptWriter

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


class StepRules(Struct, frozen=True):
    """What a benchmark allows the calls of its items, and sends with them."""

    steps_max: int
    """How many calls an item may make."""
    models: Mapping[str, str]
    """The other models, by the names that its code gives them."""
    parameters: Mapping[str, Any]
    """The parameters of all calls to the model under test."""
    tools: ToolSet
    """Its tools."""
    name: str
    """The benchmark's name."""


class Closable(Protocol):
    """Something that belongs to an item and is closed at its end."""

    async def close(self) -> None: ...


_Closable = TypeVar("_Closable", bound=Closable)
_T = TypeVar("_T")


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

    def __init__(self, ask: Ask, rules: StepRules, item: str) -> None:
        self.item = item
        """The item and its trial, as in the record's `id`."""
        self.model = ask.pair.model
        """The model under test."""
        self.transcript = TranscriptWriter()
        """The transcript so far."""
        self.ended: ItemEnded | None = None
        """What ended the item, also where the author's code caught it; None: nothing did."""
        self._ask = ask
        self._rules = rules
        self._is_over = False
        self._steps = 0
        self._equal = Counter[bytes]()
        # The calls that nobody has awaited yet.
        self._unawaited: dict[int, Coroutine[Any, Any, Reply]] = {}
        self._held: dict[int, tuple[object, Closable]] = {}

    def __repr__(self) -> str:
        return f"<StepAsk [{self.item} of {self._ask.pair}: {self._steps} of at most {self._rules.steps_max} calls]>"

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
        call, role = self._call(messages, model, tools, sample, parameters)
        work = self._unawaited[self._steps] = self._answered(self._steps, call, role, parameters, sample)
        return work

    def begin(self, work: Said | Coroutine[Any, Any, _T], **options: Any) -> asyncio.Task[Any]:
        """Begins what is awaited later: a call, with the arguments of `ask`, or a coroutine of the author's. `later =
        ask.begin(talk)`, and `reply = await later`. It belongs to the item, which ends after it."""
        return self._ask.begin(cast(Coroutine[Any, Any, _T], work) if iscoroutine(work) else self(work, **options))  # type: ignore[arg-type]

    async def offer(self, tools: Sequence[AnyTool] | None = None, *, keep: bool = True) -> Offer:
        """Returns tools as they are offered to a model (None: those of the benchmark): `await ask(talk,
        tools=offer.declared)`. `keep`: as in `ms.tool_loop`."""
        self._check()
        box = self.held(self._rules.tools, lambda: Toolbox(self._rules.tools, self._kept))
        try:
            return await box.offer(tools, keep=keep)
        except BenchmarkDefect as error:
            self._end(error)

    async def carry_out(self, offer: Offer, calls: Sequence[ToolCall]) -> list[Message]:
        """Carries out a model's calls of tools, all at once, and returns a message with each result, in their order."""
        self._check()
        results = [(call, self._ask.begin(offer.result(call))) for call in calls]
        messages = []
        for call, result in results:
            # The awaiting code may be cancelled, but the tool has begun: its result is kept.
            kept = await asyncio.shield(result)
            self.transcript.add_tool(call, kept.result, replayed=kept.is_replayed, seconds=kept.seconds)
            messages.append(Message("tool", (kept.result,)))
        return messages

    def held(self, owner: object, make: Callable[[], _Closable]) -> _Closable:
        """Returns what the item holds for an owner, such as the toolbox of a sequence of tools: made at the first
        request, and closed (`await it.close()`) when the item ends, however it ends."""
        if id(owner) not in self._held:
            # The owner is kept, so that no other object gets its id.
            self._held[id(owner)] = owner, make()
        return cast(_Closable, self._held[id(owner)][1])

    async def finish(self) -> None:
        """Waits for what was begun, then for the calls of tasks that the author's code left behind: these ask no
        more."""
        await self._ask.finish()
        self._is_over = True
        await self._ask.finish()

    async def close(self) -> None:
        """Closes what the item holds, and calls that nobody awaited."""
        for work in self._unawaited.values():
            work.close()
        for _, it in self._held.values():
            await it.close()
        self._held.clear()

    def _call(
        self, messages: Said, model: str | None, tools: Sequence[Any], sample: int | None, parameters: dict[str, Any]
    ) -> tuple[Call, str]:
        """Returns the call and the role of its model."""
        self._check()
        turns = messages_in(messages)
        name, role = self._who(model)
        pair = self._ask.pair
        settled = {name: value for name, value in self._rules.parameters.items() if name == "max_tokens"}
        if role == "subject":
            settled = {**self._rules.parameters, "temperature": pair.temperature}
            settled |= {} if pair.effort is None else {"reasoning_effort": pair.effort}
        self._check_parameters(parameters, role)
        settled |= parameters
        if tools:
            settled["tools"] = self._declared(tools)
        call = Call(name, turns, **settled)
        self._steps += 1
        if self._steps > self._rules.steps_max:
            self._end(self._exceeded())
        return msgspec.structs.replace(call, trial=self._sample(call, sample)), role

    def _who(self, model: str | None) -> tuple[str, str]:
        """Returns the model that is meant, and its role."""
        if model is None or model == self.model:
            return self.model, "subject"
        for role, name in self._rules.models.items():
            if model in (role, name):
                return name, role
        name = model if "/" in model else "provider/model"
        role = "judge" if "/" in model else model
        self._end(self._defect(f'ask(model="{model}"): declare it on the class, as models = {{"{role}": "{name}"}}'))

    def _check_parameters(self, parameters: dict[str, Any], role: str) -> None:
        allowed = _OF_A_CALL if role == "subject" else _OF_A_CALL | _OF_A_PAIR
        for name in parameters.keys() - allowed:
            is_runs = name in _OF_A_PAIR
            why = (
                f"the run decides it: set {name} on the class" if is_runs else f"expected {', '.join(sorted(allowed))}"
            )
            self._end(self._defect(f"ask({name}=…): {why}"))

    def _declared(self, tools: Sequence[Any]) -> tuple[Tool | Native, ...]:
        for tool in tools:
            if not isinstance(tool, Tool | Native):
                raise TypeError(f"ask: tools: expected ms.Tool, or functions through ms.tool_loop, got {shown(tool)}")
        return tuple(tools)

    def _sample(self, call: Call, sample: int | None) -> int:
        """Returns the sample number of a call: the author's own, or one of its item, trial and place among equal calls
        of the item. So it stays the same however many items and trials there are, and in whatever order they run."""
        if sample is not None:
            if not isinstance(sample, int) or isinstance(sample, bool) or not 0 <= sample <= TRIAL_MAX:
                raise TypeError(f"ask: sample: expected a whole number of 0 or more, got {shown(sample)}")
            return sample
        alike = hashlib.sha256(msgspec.json.encode(call)).digest()
        place = self._equal[alike]
        self._equal[alike] += 1
        digest = hashlib.sha256(f"{self.item}\0{place}".encode()).digest()
        return int.from_bytes(digest[:8]) >> (64 - _SAMPLE_BITS)

    @property
    def unawaited(self) -> int:
        """How many calls of `ask` were never awaited, and so never sent."""
        return len(self._unawaited)

    async def _answered(
        self, number: int, call: Call, role: str, parameters: dict[str, Any], sample: int | None
    ) -> Reply:
        del self._unawaited[number]
        self._check()
        # The awaiting code may be cancelled, but the call is paid for: its answer is kept.
        return await asyncio.shield(self._ask.begin(self._sent(call, role, parameters, sample)))

    async def _sent(self, call: Call, role: str, parameters: dict[str, Any], sample: int | None) -> Reply:
        at = self.transcript.begin(call, role, parameters, sample)
        of: Literal["subject", "judge"] = "subject" if role == "subject" else "judge"
        outcome = await self._outcome(call, of)
        self.transcript.end(at, outcome)
        return self._reply(outcome, of)

    async def _kept(
        self, name: str, question: Mapping[str, Any], work: Callable[[], Awaitable[ToolResult]], kept_for: KeptFor
    ) -> Kept:
        """Returns a tool's result from the store, else that of its work, once it is stored like an answer."""
        if kept_for == "nobody":
            return Kept(await self._or_ended(work()))
        whole = {"benchmark": self._rules.name, **question}
        if kept_for == "item":
            whole |= {"pair": str(self._ask.pair), "item": self.item}
        end: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

        async def going_on() -> ToolResult:
            try:
                return await work()
            except (Exception, asyncio.CancelledError, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001 (as ItemEnded in a call of the tool's own: no result)
                end.set_result(error)
                return await asyncio.Future()  # until the call is left

        call = Call(f"{TOOL}/{name}", canonical(whole).decode(), tag=going_on)
        task = self._ask.begin(self._outcome(call, "tool"))
        try:
            await asyncio.wait((task, end), return_when=asyncio.FIRST_COMPLETED)
            if end.done():
                raise end.result()
            outcome = task.result()
        finally:
            task.cancel()
        reply = self._reply(outcome, "tool")
        seconds = None if outcome.latency_ms is None or outcome.cached else round(outcome.latency_ms / 1000, 3)
        return Kept(result_of(reply), outcome.cached, seconds)

    async def _outcome(self, call: Call, role: Literal["subject", "judge", "tool"]) -> Outcome:
        return await self._or_ended(self._ask.outcome(call, role=role))

    async def _or_ended(self, work: Awaitable[_T]) -> _T:
        """Returns the result of work; what stops the run ends the item."""
        try:
            return await work
        except (Stopped, LocalFault) as error:
            self.ended = self.ended or ItemEnded(error)
            raise self.ended from error

    def _reply(self, outcome: Outcome, role: Literal["subject", "judge", "tool"]) -> Reply:
        if outcome.failure is not None:
            raise CallFailed(outcome.call, role, 1, outcome.failure)
        assert outcome.reply is not None
        return outcome.reply

    def _check(self) -> None:
        """Raises what ended the item, if its author's code caught that and goes on. A task that outlives the item ends
        without a word."""
        if self._is_over:
            raise asyncio.CancelledError(f"item {self.item!r} has ended")
        if self.ended is not None:
            raise self.ended

    def _end(self, error: BenchmarkDefect | StepFailed) -> NoReturn:
        self.ended = ItemEnded(error)
        raise self.ended

    def _defect(self, what: str) -> BenchmarkDefect:
        return BenchmarkDefect(f"item {self.item!r}: {what}")

    def _exceeded(self) -> StepFailed:
        most = self._rules.steps_max
        detail = f"its code asked more than steps_max = {most:,} calls: raise steps_max, or let run() end before"
        return StepFailed(1, Record(status=STEPS_EXCEEDED, role="subject", error=detail), detail)
