"""The alerts that a page of load tests shows before all figures, as markup; empty where there is nothing to warn of.

`several`: the page has several tests, so that the test is named.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....metrics.load.unmeasured import unmeasured
from ....report.escaping import in_html
from ....report.labels import one_line
from . import sentences
from .plans import not_compared
from .series import LoadTest


def bottleneck(test: LoadTest, several: bool) -> str:
    """Returns the alert on a client that was the bottleneck, with the reasons."""
    if not test.load.client.is_bottleneck:
        return ""
    whose = f"{in_html(test.name)}: the" if several else "The"
    items = "".join(f"<li>{in_html(one_line(reason))}</li>" for reason in test.load.client.reasons)
    return (
        f'<div class="alert bottleneck" role="note"><strong>{whose} client was the bottleneck.</strong> '
        "These figures are not the server's alone: the program that measured, or its machine, could not keep up."
        f"<ul>{items}</ul></div>"
    )


def unmeasured_models(test: LoadTest, several: bool) -> str:
    """Returns the alert on models without an answer."""
    gone = unmeasured(test.load.models)
    if not gone:
        return ""
    whose = f"{in_html(test.name)}: there" if several else "There"
    items = "".join(f"<li>{in_html(one_line(sentence, 500))}.</li>" for sentence in gone)
    return (
        f'<div class="alert" role="note"><strong>{whose} is no answer to measure.</strong> No time, goodput, goal or '
        f"knee is given for it.<ul>{items}</ul></div>"
    )


def cut_short(test: LoadTest, several: bool) -> str:
    """Returns the alert on a test that ended early."""
    if not sentences.was_cut_short(test.load):
        return ""
    whose = f"{in_html(test.name)}: it" if several else "It"
    return (
        f'<div class="alert" role="note"><strong>{whose} ended before all was sent:</strong> '
        f"{in_html(sentences.ended(test.load))}.</div>"
    )


def different_plans(tests: Sequence[LoadTest]) -> str:
    """Returns the alert on tests that are not compared, with what differs."""
    reason = not_compared(tests)
    if not reason:
        return ""
    return f'<div class="alert" role="note"><strong>Read with care, no comparison:</strong> {in_html(reason)}.</div>'
