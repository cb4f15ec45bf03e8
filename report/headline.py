"""The first screen of a part: one sentence on what is measured, and every model's score as a dot with its interval.

Owns the picture's markup: a table whose dots are drawn in per cents, so that it fits any width and is read out loud.
Knows no benchmark.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from .escaping import in_html
from .html_tables import shown_value
from .labels import one_line
from .table import Kind

# The room beside the scale, in per cent, so that a dot at its end is whole.
_MARGIN = 3.0


class HeadlineScore(Struct, frozen=True):
    """The score of one model."""

    model: str
    """The model's name."""
    score: float | None
    """The score; None: there is none."""
    low: float | None = None
    """The lower end of its 95% interval; None: there is none."""
    high: float | None = None
    """The upper end of its 95% interval; None: there is none."""
    is_published: bool = False
    """Whether the paper printed it: its dot is hollow."""


class Headline(Struct, frozen=True, kw_only=True):
    """What a reader should see first of one benchmark."""

    sentence: str
    """What is measured, and what a high score means."""
    score: str
    """The name of the score."""
    kind: Kind
    """The unit of the score."""
    scores: tuple[HeadlineScore, ...]
    """The scores, in any order."""
    most: float | None = None
    """The largest possible score; None: the scale ends at the largest number shown."""
    is_low_first: bool = False
    """Whether the lowest score stands first."""
    paper: tuple[str, str] | None = None
    """The paper's name and address; None: there is none."""
    facts: str = ""
    """When, how long and at what cost."""


def headline_html(headline: Headline, name: str) -> str:
    """Returns the markup. `name` begins the identities of its elements."""
    link = ""
    if headline.paper is not None:
        title, address = headline.paper
        link = f' (<a href="{in_html(address)}">{in_html(title)}</a>)'
    facts = f'<p class="note">{in_html(headline.facts)}</p>' if headline.facts else ""
    return f'<p class="lead">{in_html(headline.sentence)}{link}</p>{facts}{_picture(headline, name)}'


def _picture(headline: Headline, name: str) -> str:
    every = [each for each in headline.scores if each.score is not None]
    if not every:
        return ""
    low, high = _scale(every, headline.most)
    sign = 1 if headline.is_low_first else -1
    rows = sorted(every, key=lambda each: (sign * (each.score or 0.0), each.model))
    rows += [each for each in headline.scores if each.score is None]
    lines = "".join(_row(each, headline, low, high) for each in rows)
    ends = f"<span>{shown_value(headline.kind, low)}</span><span>{shown_value(headline.kind, high)}</span>"
    hollow = (
        " Hollow dots are the paper’s figures, on its own data." if any(each.is_published for each in every) else ""
    )
    lacks = " A model without a score stands last." if len(every) < len(headline.scores) else ""
    first = "lowest" if headline.is_low_first else "highest"
    title = f"{headline.score} of each model, the {first} first, with its 95% interval where it has one.{hollow}{lacks}"
    return (
        f'<table class="headline" id="{name}"><caption>{in_html(title)}</caption>'
        f'<thead><tr><th scope="col">Model</th><th scope="col" class="dots">'
        f'<span class="unseen">Dot and interval</span><span class="ends" aria-hidden="true">{ends}</span></th>'
        f'<th scope="col" class="number">{in_html(headline.score)}</th></tr></thead><tbody>{lines}</tbody></table>'
        f'<p class="note">{in_html(title)}</p>'
    )


def _row(each: HeadlineScore, headline: Headline, low: float, high: float) -> str:
    def place(value: float) -> str:
        share = (value - low) / (high - low)
        return f"{_MARGIN + (100 - 2 * _MARGIN) * share:.2f}%"

    line = dot = ""
    text = shown_value(headline.kind, each.score)
    if each.score is not None:
        dot = f'<circle cx="{place(each.score)}" cy="10" r="5"/>'
    if each.low is not None and each.high is not None:
        line = f'<line class="span" x1="{place(each.low)}" x2="{place(each.high)}" y1="10" y2="10"/>'
        between = f"{shown_value(headline.kind, each.low)} to {shown_value(headline.kind, each.high)}"
        text += f' <span class="interval">{between}</span>'
    track = f'<line class="track" x1="{_MARGIN:g}%" x2="{100 - _MARGIN:g}%" y1="10" y2="10"/>'
    whose = ' class="theirs"' if each.is_published else ""
    published = " (published)" if each.is_published else ""
    return (
        f'<tr{whose}><th scope="row">{in_html(one_line(each.model))}{published}</th><td class="dots">'
        f'<svg width="100%" height="20" aria-hidden="true" focusable="false">{track}{line}{dot}</svg></td>'
        f'<td class="number">{text}</td></tr>'
    )


def _scale(every: Iterable[HeadlineScore], most: float | None) -> tuple[float, float]:
    """Returns the ends of the scale: 0, or less if a number is, and the largest possible or shown number."""
    values = [value for each in every for value in (each.score, each.low, each.high) if value is not None]
    low, high = min(0.0, *values), max(values) if most is None else max(most, *values)
    return low, high if high > low else low + 1
