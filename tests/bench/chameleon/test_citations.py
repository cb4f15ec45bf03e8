"""What an answer cites, in every form that models write."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.bench.chameleon.citations import Citations, cited_in

URLS = tuple(f"https://s{number}.test/page" for number in range(1, 21))
SHOWN = tuple(number for number in range(1, 21) if number != 7)  # page 7 gave nothing


def cited(text: str) -> tuple[list[int], tuple[str, ...]]:
    """The numbers of the cited pages, and what was invalid."""
    found = cited_in(text, URLS, SHOWN)
    return [URLS.index(url) + 1 for url in found.urls], found.invalid


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Salt matters [3].", [3]),
        ("Salt matters [1, 4] and [ 2 ;3].", [1, 4, 2, 3]),
        ("So it is [2]-[5].", [2, 3, 4, 5]),
        ("So it is [2] – [4].", [2, 3, 4]),
        ("So it is [2] to [4].", [2, 3, 4]),
        ("So it is [2–4, 9].", [2, 3, 4, 9]),
        ("Both [1][2].", [1, 2]),
        ("Both [1] [2].", [1, 2]),
        ("Wide 【3】 and 【4†source】 and 【5:1†L3-L9】.", [3, 4, 5]),
        ("Both [1 and 2], [3, 4 and 5], [6 & 8].", [1, 2, 3, 4, 5, 6, 8]),
        ("As [Source 3] and [sources 4, 5] and [ref. 6] say.", [3, 4, 5, 6]),
        ("**[1]**, _[2]_, ([3]).", [1, 2, 3]),
        ("First [5], then [2], then [5].", [5, 2]),
        ("Backwards [4-2].", [4, 2]),
        ("In the year [2023] and for 100 [kg].", []),
        ("A note[^2].", [2]),
        ("Nothing is cited.", []),
        ("", []),
    ],
)
def test_numbers_in_brackets_are_read_in_all_their_forms(text: str, numbers: list[int]) -> None:
    assert cited(text) == (numbers, ())


@pytest.mark.parametrize(
    ("text", "numbers", "invalid"),
    [
        ("[3] and [21]", [3], ("[21]",)),
        ("[0]", [], ("[0]",)),
        ("[7] gave nothing", [], ("[7]",)),
        ("[6]-[8]", [6, 8], ("[7]",)),
        ("[19-22]", [19, 20], ("[21]", "[22]")),
        ("see https://elsewhere.test/x", [], ("https://elsewhere.test/x",)),
    ],
)
def test_what_stands_for_nothing_that_was_shown_is_invalid(
    text: str, numbers: list[int], invalid: tuple[str, ...]
) -> None:
    assert cited(text) == (numbers, invalid)


@pytest.mark.parametrize(
    "text",
    [
        "See https://s3.test/page.",
        "See (https://s3.test/page), or not.",
        "See [a page](https://s3.test/page).",
        'See [a page](https://s3.test/page "its title").',
        "See [3](https://s3.test/page)!",
        "See <https://s3.test/page>;",
        "See **https://s3.test/page**",
        "See [https://s3.test/page](https://s3.test/page).",
        "See HTTPS://S3.test:443/page/#part?",
        "See https://s3.test/page?utm_source=model",
        "Sources:\n- https://s3.test/page",
        "“https://s3.test/page”…",
    ],
)
def test_addresses_written_out_are_matched_however_they_are_spelt(text: str) -> None:
    assert cited(text) == ([3], ())


def test_an_address_may_hold_brackets_of_its_own() -> None:
    urls = ("https://w.test/Salt_(food)", "corpus:notes.txt")
    found = cited_in("See (https://w.test/Salt_(food)), and corpus:notes.txt.", urls, (1, 2))
    assert found == Citations(urls)


def test_an_address_that_a_result_led_to_stands_for_it() -> None:
    found = cited_in(
        "See https://final.test/x [1].", ("https://a.test/", "https://b.test/"), (1, 2), ("", "https://final.test/x")
    )
    assert found == Citations(("https://b.test/", "https://a.test/"))


def test_a_list_at_the_end_says_what_the_answers_own_numbers_mean() -> None:
    text = (
        "Salt [1]. Sugar [2]. Fat [^3].\n\nReferences:\n"
        "[1] On salt (https://s9.test/page)\n[2]: https://s4.test/page\n[^3]: https://s5.test/page."
    )
    assert cited(text) == ([9, 4, 5], ())
    # A sentence may begin with a number and name another page on its way.
    assert cited("[1] disagrees, and https://s9.test/page does too, it seems.") == ([1, 9], ())
    # What was never retrieved gives a number no other meaning.
    assert cited("Salt [1].\n\n[1] https://nowhere.test/") == ([1], ("https://nowhere.test/",))


@given(st.text(alphabet="[]【】0123456789,-–^ †:()hps/.a\n", max_size=200))
def test_no_text_is_fatal_and_nothing_is_cited_that_was_not_retrieved(text: str) -> None:
    found = cited_in(text, URLS, SHOWN)
    assert set(found.urls) <= set(URLS)
    assert len(found.invalid) <= 50


def test_a_long_hostile_answer_is_read_in_no_time() -> None:
    began = time.process_time()
    for text in (
        "[1," * 40_000,
        "[1-" * 40_000,
        "[" * 100_000,
        "https://" * 20_000,
        "[1] " * 30_000 + "x" * 10_000,
        "【3†" * 30_000,
    ):
        cited_in(text, URLS, SHOWN)
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        ("http://a/", ")"),
        ("", "[1]"),
        ("", "[1-100]"),
        ("[source", " "),
        ("[", "1†&"),
        ("", "[1](http://a/) "),
        ("", "http://a/] "),
    ],
)
def test_a_long_answer_of_nothing_but_brackets_is_read_at_once(begin: str, piece: str) -> None:
    began = time.process_time()

    cited_in(begin + piece * (300_000 // len(piece)), URLS, SHOWN)

    assert time.process_time() - began < 8


def test_only_stray_brackets_go_from_the_end_of_an_address() -> None:
    urls = ("https://s1.test/a_(b)", "https://s2.test/c")

    assert cited_in("See (https://s1.test/a_(b)), and [https://s2.test/c].)", urls, ()) == Citations(urls)
