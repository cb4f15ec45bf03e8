"""Everything that Chameleon's part of a page shows, and how it is made from runs.

Owns this shape, and what stands for a pair in the words about what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ...chameleon.readings import Readings
from ..contents import Origin, Standing
from ..table import Findings
from .browser import Browser, browser
from .panel import Panel, pair_name, panel
from .runs import Run


class ConversationContents(Struct, frozen=True):
    """`choices` are the readings that this report goes by, as pairs of label and value; `command` makes it again.
    `unmeasured` has a sentence for each thing of which nothing was measured."""

    title: str
    standings: tuple[Standing, ...]
    findings: Findings
    browser: Browser
    origins: tuple[Origin, ...] = ()
    choices: tuple[tuple[str, str], ...] = ()
    command: str = ""
    unmeasured: tuple[str, ...] = ()


def contents(
    runs: Sequence[Run],
    readings: Readings | None = None,
    *,
    origins: Sequence[Origin] = (),
    command: str = "",
) -> ConversationContents:
    """Reads the records of a few conversations again, for their texts. The same runs give the same."""
    from .findings import findings

    made = panel(runs, readings)
    return ConversationContents(
        title=_title(made),
        standings=standings(made),
        findings=findings(made),
        browser=browser(made),
        origins=tuple(origins),
        choices=_choices(made.readings),
        command=command,
        unmeasured=made.unmeasured,
    )


def standings(made: Panel) -> tuple[Standing, ...]:
    """What became of each pair's turns."""
    found = []
    for sample in made.samples:
        told = made.troubles(sample)
        found.append(
            Standing(
                model=pair_name(sample),
                expected=max(sample.expected, told.turns),
                answered=told.turns,
                refused=told.refused,
                failed=dict(sorted(made.failed(sample).items())),
                is_told=made.is_told(sample),
                steps=dict(made.steps(sample).most_common()),
                held=made.held(sample),
            )
        )
    return tuple(found)


def _title(made: Panel) -> str:
    models = list(made.models)
    who = models[0] if len(models) == 1 else f"{len(models)} models"
    talks = {trace.conversation for sample in made.samples for trace, _ in sample.held}
    talks |= {name for sample in made.samples for name in sample.unanswered}
    return f"Chameleon: {who} in {len(talks):,} {'conversation' if len(talks) == 1 else 'conversations'}"


def _choices(readings: Readings) -> tuple[tuple[str, str], ...]:
    cited = readings.documents == "cited"
    return (
        ("Sources of a turn", "those its answer cites" if cited else "all that were retrieved for it"),
        ("Two sources are one", f"by {'address' if readings.by == 'url' else 'host name'}"),
        (
            "A turn without sources",
            "adds 0 to the source re-use rate" if readings.empty == "zero" else "is left out of the source re-use rate",
        ),
        (
            "An unclear turn",
            {
                "carry": "keeps the last clear stance",
                "count": "is a stance of its own",
                "drop": "is left out of the trace of stances",
            }[readings.unclear],
        ),
        (
            "Confidence",
            "by certainty words in the judge's rationale (1, 0.67 or 0.33)"
            if readings.confidence == "rubric"
            else "the judge's own number",
        ),
        (
            "Confidence of a conversation",
            "the mean over its turns"
            if readings.confidence_of == "turns"
            else "the mean over the turns that change its stance",
        ),
        ("Standard deviation", "the sample's (n − 1), across conversations"),
    )
