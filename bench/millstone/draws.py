"""The pinned draw: which arguments stand in a prompt, in which order, and which position is named first.

Owns the generator down to the byte, so that every machine, and any other program that follows the docstrings of
`seeds`, `numbers` and `draw`, draws the same. A draw depends on its seed alone. Knows no text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from typing import Literal, NamedTuple

from msgspec import Struct

DRAW_VERSION = 1

Shape = Literal["baseline", "one-sided-pro", "one-sided-con", "clear-pro", "clear-con", "balanced"]

_CLEAR_MAJORITY = 3


class Draw(Struct, frozen=True):
    """Indexes into an issue's arguments (pro first, then con). `listed` is the order before the shuffle, `shown` after.

    `mentions` says for each mention of the positions which comes first: 0 is A, 1 is B.
    """

    mentions: tuple[int, int]
    listed: tuple[int, ...]
    shown: tuple[int, ...]


def numbers(seed: str, bounds: Sequence[int]) -> list[int]:
    """Returns a random whole number below each of these bounds, in their order, from a seed: from 0 to bound - 1, each
    with the same probability. Raises ValueError for a bound above 65,536.

    The seed gives an endless stream of bytes: SHA-256(seed + `/0`), then SHA-256(seed + `/1`), and so on, as UTF-8. A
    number below n, for n up to 256, is the next byte modulo n; a byte at or above the largest multiple of n that is at
    most 256 is discarded and the next one taken. For n from 257 to 65,536 it is the same with the next two bytes,
    big-endian, and 65,536.
    """
    data, block = b"", 0
    while True:
        data += sha256(f"{seed}/{block}".encode()).digest()
        if (drawn := _numbers_in(data, bounds)) is not None:
            return drawn
        block += 1


def _numbers_in(data: bytes, bounds: Sequence[int]) -> list[int] | None:
    """Returns the numbers that the beginning of a stream gives; None if it is too short for them."""
    stream = iter(data)
    drawn = []
    for bound in bounds:
        if bound <= 256:
            limit, values = 256 - 256 % bound, stream
        elif bound <= 65536:
            limit, values = 65536 - 65536 % bound, _pairs(stream)
        else:
            raise ValueError(f"bound ({bound}) must be <= 65536")
        for number in values:
            if number < limit:
                break
        else:
            return None
        drawn.append(number % bound)
    return drawn


def _pairs(stream: Iterator[int]) -> Iterator[int]:
    return (first << 8 | second for first, second in zip(stream, stream, strict=False))


def seeds(draw_digest: str, issue: str, template: int, case: str, trials: Iterable[int]) -> list[str]:
    """Returns the texts that seed the draws of these trials: `millstone-draw-1/DIGEST/ISSUE/TEMPLATE/CASE/TRIAL`.

    DIGEST is the data set's draw digest, in hex; the template counts from 1, the trial from 0, both in decimal.
    """
    of_case = f"millstone-draw-{DRAW_VERSION}/{draw_digest}/{issue}/{template}/{case}"
    return [f"{of_case}/{trial}" for trial in trials]


def sizes(shape: Shape, pros: int, cons: int) -> tuple[int, int]:
    """Returns the numbers of pro and of con arguments that a prompt of this shape shows, of an issue that has `pros`
    and `cons`: one-sided all of its side; clear up to three of its side and one of the other; balanced equally many,
    as many as the smaller side has; baseline none."""
    match shape:
        case "baseline":
            return 0, 0
        case "one-sided-pro":
            return pros, 0
        case "one-sided-con":
            return 0, cons
        case "clear-pro":
            return min(_CLEAR_MAJORITY, pros), 1
        case "clear-con":
            return 1, min(_CLEAR_MAJORITY, cons)
        case "balanced":
            return min(pros, cons), min(pros, cons)


class _Plan(NamedTuple):
    """What a shape and the numbers of arguments decide of a draw: the sides that it shows, in the order of the list,
    each with how many of its arguments it lists, and the bounds of its numbers. Those of mentions and list are first.
    """

    sides: tuple[tuple[tuple[int, ...], int], ...]
    for_list: tuple[int, ...]
    for_all: tuple[int, ...]


@cache
def _plan(shape: Shape, pros: int, cons: int) -> _Plan:
    shown_pros, shown_cons = sizes(shape, pros, cons)
    pro, con = (tuple(range(pros)), shown_pros), (tuple(range(pros, pros + cons)), shown_cons)
    is_con_first = shape == "clear-con" or (shape == "balanced" and cons < pros)
    sides = tuple([side for side in ((con, pro) if is_con_first else (pro, con)) if side[1]])
    bounds = [2, 2]
    for side, wanted in sides:
        if wanted < len(side):
            bounds += range(len(side), len(side) - wanted, -1)
    return _Plan(sides, tuple(bounds), (*bounds, *range(shown_pros + shown_cons, 1, -1)))


def draw(seed: str, shape: Shape, pros: int, cons: int) -> Draw:
    """Draws one prompt of an issue with `pros` and `cons` arguments. From the seed's numbers, in this order:

    1. For each of the two mentions of the positions, a number below 2: 0 names A first, 1 names B first. A baseline
       ends here.
    2. The list: the arguments of one side, then those of the other. One-sided: that side alone. Clear: the favoured
       side first. Balanced: the side with fewer arguments first; pro, if they are equal. A side that shows all of
       its m arguments lists them in file order. One that shows k < m of them is shuffled in part (for j from 0 to
       k - 1, swap place j with place j + number below m - j) and its first k places are listed.
    3. The order shown: the list, shuffled (for i from its last place down to 1, swap places i and number below i + 1).
    """
    plan = _plan(shape, pros, cons)
    first, second, *rest = numbers(seed, plan.for_all)
    following = iter(rest)
    listed = _list(plan, following)
    order = listed.copy()
    last = len(order)
    for other in following:
        last -= 1
        order[last], order[other] = order[other], order[last]
    return Draw((first, second), tuple(listed), tuple(order))


def is_list_drawn(shape: Shape, pros: int, cons: int) -> bool:
    """Returns whether draws differ in their lists, not only in the order shown."""
    return len(_plan(shape, pros, cons).for_list) > 2


def list_of(seed: str, shape: Shape, pros: int, cons: int) -> tuple[int, ...]:
    """Returns what a draw has as `listed`, which takes fewer numbers than the whole draw."""
    plan = _plan(shape, pros, cons)
    _, _, *following = numbers(seed, plan.for_list)
    return tuple(_list(plan, iter(following)))


def _list(plan: _Plan, following: Iterator[int]) -> list[int]:
    """Returns the list of a draw, with as many of the following numbers as it takes."""
    listed: list[int] = []
    for side, wanted in plan.sides:
        places = [*side]
        if wanted < len(places):
            for place in range(wanted):
                other = place + next(following)
                places[place], places[other] = places[other], places[place]
            del places[wanted:]
        listed += places
    return listed
