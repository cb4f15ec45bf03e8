from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from itertools import count, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.bench.millstone.draws import Draw, Shape, draw, is_list_drawn, list_of, numbers, seeds, sizes

SHAPES: tuple[Shape, ...] = ("baseline", "one-sided-pro", "one-sided-con", "clear-pro", "clear-con", "balanced")


def stream_of(text: str) -> Iterator[int]:
    for number in count():
        yield from hashlib.sha256((text + "/" + str(number)).encode("utf-8")).digest()


def below(stream: Iterator[int], n: int) -> int:
    width = 1 if n <= 256 else 2
    while True:
        value = int.from_bytes(bytes(islice(stream, width)), "big")
        if value < 256**width // n * n:
            return value % n


def second_draw(text: str, shape: Shape, pros: int, cons: int) -> Draw:
    """`draw`, written again from its docstring."""
    stream = stream_of(text)
    mentions = (below(stream, 2), below(stream, 2))
    if shape == "baseline":
        return Draw(mentions, (), ())

    def some(side: range, k: int) -> list[int]:
        pool = list(side)
        if k == len(pool):
            return pool
        for j in range(k):
            chosen = j + below(stream, len(pool) - j)
            pool[j], pool[chosen] = pool[chosen], pool[j]
        return pool[:k]

    pro, con = range(pros), range(pros, pros + cons)
    few = min(pros, cons)
    plans: dict[Shape, list[tuple[range, int]]] = {
        "one-sided-pro": [(pro, pros)],
        "one-sided-con": [(con, cons)],
        "clear-pro": [(pro, min(3, pros)), (con, 1)],
        "clear-con": [(con, min(3, cons)), (pro, 1)],
        "balanced": [(con, few), (pro, few)] if cons < pros else [(pro, few), (con, few)],
    }
    listed = [index for side, k in plans[shape] for index in some(side, k)]
    shown = list(listed)
    for i in reversed(range(1, len(shown))):
        j = below(stream, i + 1)
        shown[i], shown[j] = shown[j], shown[i]
    return Draw(mentions, tuple(listed), tuple(shown))


@given(st.text(max_size=20), st.sampled_from(SHAPES), st.integers(1, 12), st.integers(1, 12))
def test_a_second_implementation_draws_the_same(text: str, shape: Shape, pros: int, cons: int) -> None:
    assert draw(text, shape, pros, cons) == second_draw(text, shape, pros, cons)


def test_a_second_implementation_draws_the_same_beyond_one_byte_and_one_block() -> None:
    assert draw("x", "balanced", 300, 290) == second_draw("x", "balanced", 300, 290)


@pytest.mark.parametrize("bound", [2, 200, 256, 257, 40_000, 65_536])
def test_a_second_implementation_throws_the_same_numbers_away(bound: int) -> None:
    second = stream_of("x")
    assert numbers("x", [bound] * 200) == [below(second, bound) for _ in range(200)]


@given(st.text(max_size=20), st.lists(st.integers(1, 400) | st.integers(1, 65_536), max_size=80))
def test_a_second_implementation_takes_one_byte_or_two_in_any_order(text: str, bounds: list[int]) -> None:
    second = stream_of(text)
    assert numbers(text, bounds) == [below(second, bound) for bound in bounds]


@given(st.text(max_size=20), st.sampled_from(SHAPES), st.integers(1, 12), st.integers(1, 12))
def test_a_list_alone_is_that_of_the_whole_draw(text: str, shape: Shape, pros: int, cons: int) -> None:
    listed = list_of(text, shape, pros, cons)
    assert listed == draw(text, shape, pros, cons).listed
    assert is_list_drawn(shape, pros, cons) or listed == list_of("another", shape, pros, cons)


def test_the_generator_is_pinned() -> None:
    # printf 'millstone-draw-1/ab/tea/2/clear-pro-1/14/0' | sha256sum begins with 13 76 d9 11
    (text,) = seeds("ab", "tea", 2, "clear-pro-1", [14])
    assert text == "millstone-draw-1/ab/tea/2/clear-pro-1/14"
    assert numbers(text, [256] * 4) == [0x13, 0x76, 0xD9, 0x11]


@pytest.mark.parametrize(
    ("shape", "pros", "cons", "expected"),
    [
        ("baseline", 5, 4, (0, 0)),
        ("one-sided-pro", 5, 4, (5, 0)),
        ("one-sided-con", 5, 4, (0, 4)),
        ("clear-pro", 5, 4, (3, 1)),
        ("clear-pro", 2, 4, (2, 1)),
        ("clear-con", 5, 4, (1, 3)),
        ("clear-con", 5, 1, (1, 1)),
        ("balanced", 5, 4, (4, 4)),
        ("balanced", 2, 4, (2, 2)),
    ],
)
def test_sizes_are_the_protocols(shape: Shape, pros: int, cons: int, expected: tuple[int, int]) -> None:
    assert sizes(shape, pros, cons) == expected


def test_every_order_and_every_choice_is_about_equally_likely() -> None:
    draws = [draw(f"trial {trial}", "clear-pro", 5, 2) for trial in range(6000)]
    chosen = Counter(index for drawn in draws for index in drawn.shown if index < 5)
    places = Counter(drawn.shown.index(next(i for i in drawn.shown if i >= 5)) for drawn in draws)
    mentions = Counter(drawn.mentions for drawn in draws)
    # Five standard deviations: the draws are pinned, so this can't fail by chance twice.
    assert all(abs(number - 3600) < 5 * (6000 * 0.6 * 0.4) ** 0.5 for number in chosen.values())
    assert all(abs(number - 1500) < 5 * (6000 * 0.25 * 0.75) ** 0.5 for number in places.values())
    assert all(abs(number - 1500) < 5 * (6000 * 0.25 * 0.75) ** 0.5 for number in mentions.values())
    assert (len(chosen), len(places), len(mentions)) == (5, 4, 4)


def test_a_bound_that_two_bytes_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match=r"bound \(65537\) must be <= 65536"):
        numbers("x", [65537])
