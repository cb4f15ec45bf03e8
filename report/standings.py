"""Counts of existing and missing answers, and how runs were made: shapes that every benchmark's page has, and their
markup.

Knows no benchmark.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from html import unescape
from types import MappingProxyType

from msgspec import Struct

from ..format import count_text, listed_counts
from .escaping import in_html
from .html_tables import table_html
from .labels import one_line
from .table import MODEL, Column, Table

_AGAIN = "This report again"


class AnswerStatus(Struct, frozen=True):
    """The numbers of a model's prompts that were answered, failed or are pending. `expected` is the number of its
    prompts: from the run's manifest if `is_told`, else inferred from the answers. `failed` counts failures by kind,
    `steps` by the step of an answer that failed; `held` of the pending prompts wait for a failed one."""

    model: str
    expected: int
    answered: int
    refused: int = 0
    failed: Mapping[str, int] = MappingProxyType({})
    is_told: bool = True
    steps: Mapping[str, int] = MappingProxyType({})
    held: int = 0

    @property
    def failures(self) -> int:
        return sum(self.failed.values())

    @property
    def pending(self) -> int:
        return max(0, self.expected - self.answered - self.failures)

    @property
    def is_complete(self) -> bool:
        return not (self.pending or self.failures)


class RunOrigin(Struct, frozen=True):
    """How a run was made: facts as pairs of a label and a value, and the command that makes the same run again, empty
    if it is unknown. `texts` are facts of several lines, such as prompts."""

    name: str
    facts: tuple[tuple[str, str], ...]
    command: str = ""
    texts: tuple[tuple[str, str], ...] = ()


def samples_note(of_samples: str) -> str:
    """Returns the sentence that the data are samples as a note; empty without a sentence."""
    return f'<p class="note"><strong>{in_html(of_samples)}</strong></p>' if of_samples else ""


def state_html(
    standings: Iterable[AnswerStatus],
    item: str = "answer",
    whose: tuple[str, str] = ("model", "models"),
    note: str = "Figures use the answers so far.",
    unmeasured: Sequence[str] = (),
) -> str:
    """Returns the markup that lists the models with missing answers, or says that none is missing. `item` names the
    things that are counted, `whose` (singular and plural) those that have a status. `unmeasured` has a sentence for
    each thing of which nothing was measured; with one, the markup does not say that nothing is missing."""
    every = list(standings)
    lacking = [standing for standing in every if not standing.is_complete]
    alert = _unmeasured(unmeasured)
    if not lacking:
        answered = sum(standing.answered for standing in every)
        if alert:
            return f"{alert}<p>{answered:,} {item}s are there.</p>"
        if all(standing.is_told for standing in every):
            return f"<p>Nothing is missing: all {answered:,} {item}s are there.</p>"
        return f"<p>{answered:,} {item}s; as far as they show, none is missing.</p>"
    items = "".join(f"<li>{in_html(_lack(standing))}</li>" for standing in lacking)
    title = f"Incomplete: {len(lacking)} of {count_text(len(every), *whose)}."
    if len(lacking) == len(every) == 2:
        title = f"Both {whose[1]} are incomplete."
    return alert + (f'<div class="alert" role="note"><strong>{title}</strong> {note}<ul>{items}</ul></div>')


def _unmeasured(sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    items = "".join(f"<li>{in_html(sentence)}</li>" for sentence in sentences)
    return f'<div class="alert" role="note"><strong>Not everything was measured.</strong><ul>{items}</ul></div>'


def _lack(standing: AnswerStatus) -> str:
    parts = [f"{standing.answered:,} of {standing.expected:,} answered"]
    if standing.failures:
        kinds = listed_counts(standing.failed)
        at = ", ".join(f"{one_line(step)} {number:,}" for step, number in standing.steps.items())
        parts.append(f"{standing.failures:,} failed ({kinds}{f'; at: {at}' if at else ''})")
    if standing.pending:
        held = min(standing.held, standing.pending)
        behind = f", {held:,} of them held back behind a failed one" if held else ""
        parts.append(f"{standing.pending:,} {'pending' if standing.is_told else 'missing'}{behind}")
    return f"{one_line(standing.model)}: {', '.join(parts)}"


def answers_table(standings: Iterable[AnswerStatus]) -> Table:
    columns = (
        MODEL,
        Column("expected", "Expected", "count"),
        Column("answered", "Answered", "count"),
        Column("refused", "Of these refused", "count"),
        Column("failed", "Failed", "count"),
        Column("kinds", "Kinds of failure"),
        Column("pending", "Pending or missing", "count"),
    )
    rows = tuple(
        (
            standing.model,
            standing.expected,
            standing.answered,
            standing.refused,
            standing.failures,
            listed_counts(standing.failed) or None,
            standing.pending,
        )
        for standing in standings
    )
    return Table("answers", "Answers", "", columns, rows)


def standings_html(standings: Sequence[AnswerStatus], name: str) -> str:
    """Returns the table of answers by model. It stays folded if every prompt has an answer and no model refused: the
    sentence above says so. `name` is its identity on the page."""
    if not standings:
        return ""
    table = table_html(answers_table(standings), name)
    if any(not standing.is_complete or standing.refused for standing in standings):
        return table
    return folded("Answers by model", table)


def choices_html(choices: Sequence[tuple[str, str]]) -> str:
    """Returns the readings that a report uses, folded; empty if there are none."""
    return folded("Options used", facts_html(choices)) if choices else ""


def folded(title: str, body: str) -> str:
    """Returns markup that a reader opens by its title."""
    return f'<details class="data"><summary>{in_html(title)}</summary>{body}</details>'


def command_in(page: str) -> list[str]:
    """Returns the words of the command that makes a page again; none if the page has none."""
    _, _, rest = page.rpartition(f"<h4>{_AGAIN}</h4><pre>")
    return shlex.split(unescape(rest.partition("</pre>")[0]))


def origins_html(origins: Iterable[RunOrigin], command: str) -> str:
    return "".join(map(_origin, origins)) + _command(_AGAIN, command)


def _origin(origin: RunOrigin) -> str:
    command = _command("The same prompts again", origin.command)
    texts = "".join(f"<h4>{in_html(label)}</h4><pre>{in_html(text)}</pre>" for label, text in origin.texts)
    return f"<h3>{in_html(one_line(origin.name))}</h3>{texts}{facts_html(origin.facts)}{command}"


def _command(title: str, command: str) -> str:
    return f"<h4>{title}</h4><pre>{in_html(command)}</pre>" if command else ""


def facts_html(facts: Iterable[tuple[str, str]]) -> str:
    rows = "".join(f"<dt>{in_html(label)}</dt><dd>{in_html(one_line(value, 2_000))}</dd>" for label, value in facts)
    return f'<dl class="facts">{rows}</dl>' if rows else ""
