"""What calls cost, and the budget that holds a run to its limit. Amounts are dollars."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
from msgspec import Struct, structs

from ..call import Call, Reply
from ..estimate import TokenEstimate, call_weight, most_input
from ..fault import LocalFault
from ..limits import Tokens
from ..prices import Price, asks_hour
from .budget_file import Amounts, BudgetFile, BudgetSource, Leftover

# What providers call the number of answers to one prompt, and the most tokens of an answer.
_SEVERAL = re.compile(
    r"n|best_of|candidate_?count|(n|num)_(samples|return_sequences|generations|completions|outputs|beams)|samples|"
    r"beam_width",
    re.IGNORECASE,
)
_LENGTH = re.compile(r"max[_-]?\w*tokens\w*|max_length|max_gen\w*|n_predict|num_predict", re.IGNORECASE)
# Tokens to think that some providers grant beside the most tokens of an answer.
_BESIDE = re.compile(r"(thinking|reasoning)_\w*budget", re.IGNORECASE)
# A block is this share of a budget's limit, so that hardly a call waits for a write of the budget's file.
_BLOCK_SHARE = 1 / 200
# Amounts on disk are whole billionths of a dollar.
_ROUNDING = 1e-9


class CostBound(Struct, frozen=True):
    """The most that one attempt of a call can cost: its tokens as far as the request bounds them (`most`), and dollars
    a million tokens of input (`rate`) and times the price (`factor`) at the dearest."""

    price: Price
    most: Tokens
    rate: float
    factor: float

    def dollars(self, input_least: int = 0) -> float:
        """Returns it in dollars, if at least `input_least` tokens of input are to be expected."""
        read = max(self.most.input, input_least)
        return self.price.in_dollars(read, read * self.rate, self.most.output, self.factor)


def cost_bound(call: Call, price: Price) -> CostBound | None:
    """Returns the bound of a call's cost; None: there is none, as `why_unbounded` says."""
    if price.extra is not None:
        call = _as_sent(call, price)
    most, marks = _most_sent(call, price), _marks_in(call)
    factor = price.plain_factor if call.extra is None else price.factor_at_most(call)
    if most is None or factor is None:
        return None
    return CostBound(price, most, price.input_most(marks) if marks else price.plain_input, factor)


def worst_cost(call: Call, price: Price, estimate: TokenEstimate) -> float | None:
    """Returns the most that one attempt of this call can cost, in dollars, which a budget has to reserve before it is
    sent; None: there is no bound."""
    bound = cost_bound(call, price)
    return None if bound is None else bound.dollars(estimate.most_by_weight(call_weight(call)))


def _as_sent(call: Call, price: Price) -> Call:
    """Returns the call with the fields that all requests of its model have."""
    return call if price.extra is None else structs.replace(call, extra={**price.extra, **(call.extra or {})})


def cost_range(price: Price, input_tokens: Sequence[float], output_tokens: Sequence[float]) -> tuple[float, float]:
    """Returns what the lower and the upper numbers of tokens cost in dollars, at the prices of short prompts: the upper
    if the provider writes all prompts to its cache that it may, neither if it reads any from there."""
    highest = structs.replace(price, input=price.input_most(repr(price.extra)))
    return price.of(input_tokens[0], output_tokens[0]), highest.of(input_tokens[1], output_tokens[1])


def _marks_in(call: Call) -> str:
    """Returns a text of all parts of a call that may ask for something to be cached."""
    has_parts = call.extra is not None or call.tools is not None
    if not has_parts and not isinstance(call.input, str):
        for message in call.input:
            has_parts |= message.content.__class__ is not str
    return repr((call.extra, call.tools, call.input)) if has_parts else ""


def _most_sent(call: Call, price: Price) -> Tokens | None:
    output = call.max_tokens if call.max_tokens is not None else price.output_max
    if output is None:
        if price.output or (price.long is not None and price.long.output):
            return None
        output = 0
    if call.extra is not None:
        output = _output_with(call.extra, output)
    tokens = most_input(call)
    if (unsized := price.unsized(call)) is not None:
        if unsized.is_run or price.window is None:
            return None
        tokens = max(tokens, price.window)
    return Tokens(tokens, output)


def _output_with(extra: Mapping[str, Any], output: int) -> int:
    """Returns the most output tokens of a call whose `extra` fields, under any provider's names, may ask for longer
    answers than `output` or for several."""
    answers, beside = 1, 0
    waiting: list[Mapping[str, Any]] = [extra]
    while waiting:
        for name, value in waiting.pop().items():
            if name == "prediction":
                # Of the text that the model is to expect, what it doesn't use is billed as output.
                beside += len(orjson.dumps(value, default=str))
            elif isinstance(value, Mapping):
                waiting.append(value)
            elif (count := _count_in(value)) and _SEVERAL.fullmatch(str(name)):
                answers *= count
            elif count and _LENGTH.fullmatch(str(name)):
                output = max(output, count)
            elif count and _BESIDE.fullmatch(str(name)):
                beside += count
    return answers * (output + beside)


def _count_in(value: Any) -> int:
    """Returns the number in a field, rounded up, also if it stands there as a text; 0 if there is none."""
    try:
        number = float(value) if isinstance(value, int | float | str) else 0.0
    except (ValueError, OverflowError):
        return 0
    return math.ceil(number) if 0 < number < math.inf else 0


def why_unbounded(call: Call, price: Price | None, limit: str = "--max-cost", *, has_option: bool = True) -> str:
    """Returns the message for a call whose worst cost has no bound: why `limit` can't be kept, and what to set.
    `has_option`: an option or a field sets the call's max_tokens."""
    model, call = call.model, call if price is None else _as_sent(call, price)
    if price is not None and price.factor_asked(call) is None:
        return (
            f"{model}: what the tier of service that is asked for costs is not known, so {limit} can't be kept: give "
            f'its factor in tiers under [prices."{model}"] in a --config file, or leave the tier out'
        )
    if price is not None and (unsized := price.unsized(call)) is not None:
        if unsized.is_run:
            return (
                f"{model}: the provider runs {unsized.name} itself and nothing bounds what that costs, so {limit} "
                f"can't be kept: leave it out, or set no limit"
            )
        if price.window is None:
            return (
                f"{model}: how many tokens {unsized.name} stands for is not known, nor is the model's window, so "
                f'{limit} can\'t be kept: give window under [models."{model}"] in a --config file, or send the text'
            )
    option = "set --max-tokens (max_tokens of a call), or " if has_option else "no option sets it for all calls; give "
    return (
        f"{model}: how long an answer can be is not known and max_tokens is not set, so {limit} can't be kept: {option}"
        f'max_output under [models."{model}"] in a --config file'
    )


class CostBudget:
    """Money spent and reserved under a hard limit, in dollars (`limit` None: it is only counted).

    `spent` counts everything that was charged; `unsure` is the part of it that may not have been billed: attempts
    without a whole answer, and what was in flight at a kill. `at_worst` is the cost of answers whose tokens were not
    all reported, so that they count at their worst. With a file, `spent + reserved` never exceeds what the file
    grants, so that the limit holds over kills too. `overrun` is the largest ratio of a call's cost to its highest
    cost so far (1.0: none was dearer): all reservations are multiplied by it, in other processes and after kills too.
    """

    def __init__(self, limit: float | None = None, spent: float = 0.0) -> None:
        self.limit = limit
        self.spent = spent
        self.unsure = 0.0
        self.at_worst = 0.0
        self.overrun = 1.0
        self.is_exhausted = False
        self._reserved = 0.0
        self._file: BudgetSource | None = None
        # What counts without any file: dollars, and those of them that may not have been billed.
        self._elsewhere = (spent, 0.0)
        # The same with what others were granted by the file, before this process or beside it.
        self._before = (spent, 0.0)
        # What the file grants to this process, and what of the money that is certainly spent is already written to it.
        self._granted = 0.0
        self._written = 0.0
        self._wakers: dict[Callable[[], None], None] = {}

    def __repr__(self) -> str:
        limit = "no limit" if self.limit is None else f"limit ${self.limit:.4f}"
        return f"<CostBudget [${self.spent:.4f} spent, ${self.reserved:.4f} reserved, {limit}]>"

    def attach(self, file: BudgetSource) -> None:
        """Counts in a file from now on; all that it has granted so far counts as spent."""
        amounts, (spent, unsure) = file.all, self._elsewhere
        self._file, self._granted, self._written = file, 0.0, 0.0
        self._before = (spent + amounts.granted, unsure + amounts.granted - amounts.spent)
        self.spent, self.unsure = self._before
        self.overrun = max(self.overrun, file.overrun)

    def detach(self) -> None:
        """Writes what was truly spent to the file and closes it. What is still reserved counts at its worst."""
        file, self._file = self._file, None
        if file is None:
            return
        try:
            if self._granted:
                file.settle(self._granted - self.own - self.reserved, self._sure - self._written, self.overrun)
        except LocalFault:
            pass  # the file's amount is higher than what was spent
        if file.ends:
            self._elsewhere = (self.spent, self.unsure)
        file.close(is_finished=not (self.is_exhausted and file.leftover))

    @property
    def leftover(self) -> Leftover | None:
        """The budget file of a killed program that this program continues; None: it continues none."""
        return None if self._file is None else self._file.leftover

    @property
    def amounts(self) -> Amounts:
        """The dollars of all that counts against the limit."""
        return Amounts(self.spent, self.spent - self.unsure, self.at_worst)

    @property
    def own(self) -> float:
        """The dollars that this process itself was charged."""
        return self.spent - self._before[0]

    @property
    def _sure(self) -> float:
        return self.own - (self.unsure - self._before[1])

    @property
    def charged(self) -> float:
        """The dollars that count against the limit: all that was granted to others, and what this process was charged.
        What it has reserved is left out, since it may come back."""
        if self._file is None:
            return self.spent
        return self._elsewhere[0] + self._file.all.granted - self._granted + self.own

    @property
    def left(self) -> float:
        """The dollars that nobody has spent or reserved; infinite without a limit."""
        return math.inf if self.limit is None else max(0.0, self.limit - self.charged - self.reserved)

    @property
    def reserved(self) -> float:
        """The dollars that calls in flight may cost."""
        return self._reserved * self.overrun

    def watch(self, waker: Callable[[], None]) -> None:
        """Adds a function that is called once, when the next reservation is settled: a waiting call may then fit."""
        self._wakers[waker] = None

    def fits(self, cost: float) -> bool:
        """Whether `cost` dollars can be reserved now. Raises LocalFault if the budget's file can't be written."""
        if self.limit is None:
            return True
        if self._file is None:
            return self.spent + (self._reserved + cost) * self.overrun <= self.limit
        if self._lacks(cost) <= _ROUNDING:
            return True
        self._granted += self._file.draw(self._lacks(cost), self.limit * _BLOCK_SHARE)
        if self._file.overrun > self.overrun:  # another process has learned it
            self.overrun = self._file.overrun
            return self.fits(cost)
        return self._lacks(cost) <= _ROUNDING

    def _lacks(self, cost: float) -> float:
        return self.own + (self._reserved + cost) * self.overrun - self._granted

    @property
    def is_overdrawn(self) -> bool:
        """Whether calls cost so much more than was reserved for them that what is still reserved passes the limit."""
        return self.overrun > 1 and self.limit is not None and self.charged + self.reserved > self.limit + _ROUNDING

    @property
    def is_attached(self) -> bool:
        return self._file is not None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in flight that could still give money back, and no more can be granted."""
        return self.reserved <= 1e-12 and (self._file is None or not self._file.is_waiting)

    def set_limit(self, limit: float) -> None:
        """Sets another limit in place of the one of its file. It must be no lower than what is charged and reserved."""
        self.give_back()
        assert isinstance(self._file, BudgetFile)
        self.limit = self._file.limit = limit
        self.wake()

    def reserve(self, cost: float) -> None:
        """Reserves `cost` dollars, for which `fits` must have returned True."""
        self._reserved += cost

    def settle(self, reserved: float, spent: float, *, unsure: float = 0.0, at_worst: float = 0.0) -> None:
        """Replaces a reservation by what was spent, in dollars; `unsure` is the part that may not have been billed,
        `at_worst` the part whose tokens were not reported."""
        self._reserved = max(0.0, self._reserved - reserved)
        self.spent += spent
        if reserved and not at_worst and spent > reserved * self.overrun + _ROUNDING:
            self.overrun = spent / reserved
        self.unsure += unsure
        self.at_worst += at_worst
        if reserved:
            self.wake()
        if self._file is not None:
            self._tell(self._file)

    def wake(self) -> None:
        """Lets those look again who `watch`."""
        wakers, self._wakers = self._wakers, {}
        for wake in wakers:
            wake()

    def give_back(self) -> float:
        """Gives back what nothing is reserved for, since a call waits that needs more. Returns the dollars."""
        slack = self._granted - self.own - self.reserved
        if self._file is None or slack <= _ROUNDING:
            return 0.0
        given = self._file.settle(slack, self._sure - self._written, self.overrun)
        self._granted, self._written = self._granted - given, self._sure
        return given

    def _tell(self, file: BudgetSource) -> None:
        """Writes to the file what was spent, and gives back what is not needed. Does so only now and then, since a
        write costs time; a shared budget gets everything back as soon as nothing is in flight."""
        assert self.limit is not None
        block = self.limit * _BLOCK_SHARE
        slack = self._granted - self.own - self.reserved
        is_handed_back = file.is_shared and self.is_idle and slack > _ROUNDING
        is_little = -_ROUNDING <= slack <= 2 * block + self.reserved / 8
        if is_little and self.overrun <= file.overrun and self._sure - self._written <= block and not is_handed_back:
            return
        unused = slack if is_handed_back else min(slack, max(0.0, slack - block))
        try:
            self._granted -= file.settle(unused, self._sure - self._written, self.overrun)
        except LocalFault:
            return  # the bound stays above what was spent; the next block that is drawn meets the fault
        self._written = self._sure


def over_budget(what: str, cost: float, budget: CostBudget, option: str = "--max-cost") -> str:
    """Returns the message that says why the budget forbids to send `what`, and what to do. What it says of spending
    is as of then: calls in flight cost more."""
    limit, cost = budget.limit or 0.0, cost * budget.overrun
    message = (
        f"{what} may cost ${cost:.4f}; ${budget.spent - budget.unsure:.4f} of {option} ${limit:.4f} had been spent"
    )
    if budget.unsure > 5e-5:
        message += f" and ${budget.unsure:.4f} more may have been"
    message += f": raise {option}"
    if (left := budget.leftover) is not None:
        message += (
            f"; a program killed after {left.written} left ${left.granted:.4f} that may have been spent: {left.path}; "
            f"delete it to begin anew"
        )
    return message


class Bill(Struct, frozen=True, gc=False):
    """What an answered call costs in dollars; None: there is no price, or no bound of what was not reported.
    `is_reported`: the answer has all that its bill is made of, the tokens, and the tier if one was asked for."""

    cost: float | None
    is_reported: bool = True


def bill_of(reply: Reply, call: Call, price: Price | None, estimate: TokenEstimate) -> Bill:
    """Returns the bill of an answered call: what its provider says it billed, else by its usage and tier. A count of
    tokens that was not reported counts at its worst."""
    usage = reply.usage
    if usage is not None and usage.billed is not None:
        return Bill(usage.billed)
    if price is None or price.is_by_call:
        return Bill(None if price is None else price.call)
    call = _as_sent(call, price)
    factor = price.factor_billed(call, reply.tier, None if usage is None else usage.place)
    if usage is not None and usage.cache_write_1h is None and asks_hour(_marks_in(call)):
        usage = structs.replace(usage, cache_write_5m=0, cache_write_1h=usage.cache_write_5m)
    if usage is not None and usage.is_whole:
        return Bill(price.of_usage(usage, factor), reply.tier is not None or price.is_ordinary(call))
    most, rate = _most_sent(call, price), price.input_most(_marks_in(call))
    if most is not None:
        # What a provider counted for this lane's prompts may be more than their text explains.
        most = Tokens(max(most.input, estimate.most_by_weight(call_weight(call))), most.output)
    if usage is not None and usage.total is not None:
        output = usage.total if most is None else min(usage.total, most.output)
        ends = (Tokens(usage.total, 0), Tokens(usage.total - output, output))
        cost = max(CostBound(price, each, rate, factor).dollars() for each in ends)
    elif most is None:
        return Bill(None, is_reported=False)
    elif usage is None or usage.input is None:
        cost = CostBound(price, most.settled(usage), rate, factor).dollars()
    else:
        cost = price.of_usage(structs.replace(usage, output=most.output), factor)
    return Bill(cost, is_reported=False)
