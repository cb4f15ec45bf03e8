"""The pinned draw: which arguments stand in a prompt, in which order, and which position is named first.

Owns the generator down to the byte, so that every machine, and any other program that follows the docstrings of `seed`,
`DrawStream` and `draw`, draws the same. A draw depends on its seed alone. Knows no text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import count
from typing import Literal

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


class DrawStream:
    """A random generator of whole numbers below a bound, from a seed.

    The seed gives an endless stream of bytes: SHA-256(seed + `/0`), then SHA-256(seed + `/1`), and so on, as UTF-8. A
    number below n, for n up to 256, is the next byte modulo n; a byte at or above the largest multiple of n that is at
    most 256 is discarded and the next one taken. For n from 257 to 65,536 it is the same with the next two bytes,
    big-endian, and 65,536.
    """

    __slots__ = ("_bytes",)

    def __init__(self, seed: str) -> None:
        self._bytes = _bytes_of(seed)

    def below(self, bound: int) -> int:
        """Returns a number from 0 to bound - 1, each with the same probability. Raises ValueError for a bound above
        65,536."""
        if bound <= 256:
            limit = 256 - 256 % bound
            while (number := next(self._bytes)) >= limit:
                pass
        elif bound <= 65536:
            limit = 65536 - 65536 % bound
            while (number := next(self._bytes) << 8 | next(self._bytes)) >= limit:
                pass
        else:
            raise ValueError(f"bound ({bound}) must be <= 65536")
        return number % bound


def _bytes_of(seed: str) -> Iterator[int]:
    for block in count():
        yield from hashlib.sha256(f"{seed}/{block}".encode()).digest()


def seed(draw_digest: str, issue: str, template: int, case: str, trial: int) -> str:
    """Returns the text that seeds one draw: `millstone-draw-1/DIGEST/ISSUE/TEMPLATE/CASE/TRIAL`.

    DIGEST is the data set's draw digest, in hex; the template counts from 1, the trial from 0, both in decimal.
    """
    return f"millstone-draw-{DRAW_VERSION}/{draw_digest}/{issue}/{template}/{case}/{trial}"


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


def draw(stream: DrawStream, shape: Shape, pros: int, cons: int) -> Draw:
    """Draws one prompt of an issue with `pros` and `cons` arguments. From the stream, in this order:

    1. For each of the two mentions of the positions, a number below 2: 0 names A first, 1 names B first. A baseline
       ends here.
    2. The list: the arguments of one side, then those of the other. One-sided: that side alone. Clear: the favoured
       side first. Balanced: the side with fewer arguments first; pro, if they are equal. A side that shows all of
       its m arguments lists them in file order. One that shows k < m of them is shuffled in part (for j from 0 to
       k - 1, swap place j with place j + number below m - j) and its first k places are listed.
    3. The order shown: the list, shuffled (for i from its last place down to 1, swap places i and number below i + 1).
    """
    mentions = (stream.below(2), stream.below(2))
    if shape == "baseline":
        return Draw(mentions, (), ())
    shown_pros, shown_cons = sizes(shape, pros, cons)
    if shape == "clear-con" or (shape == "balanced" and cons < pros):
        listed = _pick(stream, pros, cons, shown_cons) + _pick(stream, 0, pros, shown_pros)
    else:
        listed = _pick(stream, 0, pros, shown_pros) + _pick(stream, pros, cons, shown_cons)
    order = listed.copy()
    for last in range(len(order) - 1, 0, -1):
        other = stream.below(last + 1)
        order[last], order[other] = order[other], order[last]
    return Draw(mentions, tuple(listed), tuple(order))


def _pick(stream: DrawStream, first: int, count: int, wanted: int) -> list[int]:
    """Returns `wanted` of the `count` indexes that start at `first`, drawn if they are not all."""
    places = list(range(first, first + count))
    if 0 < wanted < count:
        for place in range(wanted):
            other = place + stream.below(count - place)
            places[place], places[other] = places[other], places[place]
    return places[:wanted]
