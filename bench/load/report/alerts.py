"""The alerts that a page of load tests shows before all figures, as markup; empty where there is nothing to warn of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ....metrics.load.unmeasured import unmeasured
from ....report.escaping import in_html
from ....report.labels import one_line
from . import sentences
from .plans import not_compared
from .series import LoadTest


def alerts(tests: Sequence[LoadTest]) -> Iterator[str]:
    """Yields the alerts of all tests: where the client was the bottleneck, models without an answer, early ends, and
    plans that differ."""
    for test in tests:
        if test.load.client.is_bottleneck:
            strong = _strong(test, tests, "The", "client was the bottleneck.")
            text = (
                "These figures are not the server's alone: the program that measured, or its machine, did not keep up."
            )
            yield _alert(strong, f"{text}{_list(test.load.client.reasons)}", "alert bottleneck")
    for test in tests:
        if gone := unmeasured(test.load.models):
            strong = _strong(test, tests, "There", "is no answer to measure.")
            text = "No time, goodput, goal or knee is given for it."
            yield _alert(strong, f"{text}{_list(f'{sentence}.' for sentence in gone)}")
    for test in tests:
        if sentences.was_cut_short(test.load):
            strong = _strong(test, tests, "It", "ended before all was sent:")
            yield _alert(strong, f"{in_html(sentences.ended(test.load))}.")
    if reason := not_compared(tests):
        yield _alert("Read with care, no comparison:", f"{in_html(reason)}.")


def _strong(test: LoadTest, tests: Sequence[LoadTest], word: str, rest: str) -> str:
    """Returns the beginning of an alert, with the test's name if the page has several."""
    return f"{in_html(test.name)}: {word.lower()} {rest}" if len(tests) > 1 else f"{word} {rest}"


def _alert(strong: str, html: str, kind: str = "alert") -> str:
    return f'<div class="{kind}" role="note"><strong>{strong}</strong> {html}</div>'


def _list(texts: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{in_html(one_line(text, 500))}</li>' for text in texts)}</ul>"
