"""An evaluation as HTML, for notebooks: tables of scores and comparisons, what is missing, cost and report.

Pure. All texts are escaped; the markup has no script, no link and no address.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ...report.escaping import in_html
from ...report.labels import one_line

if TYPE_CHECKING:
    from .result import Evaluation, ModelResult, PairResult, ScoreFigure

_HEADS = ("score", "95% interval", "items")
_NONE = "–"


def evaluation_html(evaluation: Evaluation) -> str:
    """Returns the markup of an evaluation."""
    models, report = evaluation.models, evaluation.report
    scores = [
        (name, *_cells(each.score), f"{each.answers:,}", f"{each.without_score:,}") for name, each in models.items()
    ]
    pairs = [pair for each in models.values() for pair in each.variant_pairs]
    tables = (
        _table(("model", *_HEADS, "answers", "without a score"), scores),
        _table(("model", "", *_HEADS), [row for name, each in models.items() for row in _parts(name, each)]),
        _table(("compared", "difference", "95% interval", "p"), map(_pair, (*evaluation.pairs, *pairs))),
    )
    cost = "no price is known" if evaluation.cost is None else f"cost ${evaluation.cost:,.4f}"
    made = f"{cost}; report: {report}" if report is not None else cost
    remarks = [remark for each in models.values() for remark in each.remarks]
    return "".join(
        (
            f"<p><b>{_text(evaluation.name)}</b>: {_text(str(evaluation.folder))}</p>",
            *(f'<p style="color: #c22">{_text(line)}</p>' for line in evaluation.troubles()),
            *tables,
            *(f"<p>{_text(line)}</p>" for line in (*remarks, made)),
        )
    )


def _parts(name: str, model: ModelResult) -> Iterator[tuple[str, ...]]:
    """Yields the rows of a model's other figures, groups and variants."""
    for kind, figures in (
        ("", model.scores),
        ("", model.figures),
        ("group ", model.groups),
        ("variant ", model.variants),
    ):
        yield from ((name, f"{kind}{part}", *_cells(figure)) for part, figure in figures.items())


def _cells(figure: ScoreFigure) -> tuple[str, str, str]:
    score = _NONE if figure.mean is None else f"{figure.mean:.3f}"
    return score, _ends(figure.low, figure.high, ".3f", figure.note), f"{figure.items:,}"


def _pair(pair: PairResult) -> tuple[str, ...]:
    found = pair.found
    ends = _ends(found.low, found.high, "+.3f", found.note)
    return f"{pair.a} − {pair.b}", f"{found.difference:+.3f}", ends, f"{pair.p_adjusted:.3g}"


def _ends(low: float | None, high: float | None, form: str, note: str | None) -> str:
    if low is None or high is None:
        return note or _NONE
    ends = f"{low:{form}} to {high:{form}}"
    return f"{ends}, {note}" if note else ends


def _table(heads: Sequence[str], rows: Iterable[tuple[str, ...]]) -> str:
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    if not body:
        return ""
    return (
        f"<table><thead><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr></thead><tbody>{body}</tbody></table>"
    )


def _text(text: str) -> str:
    return in_html(one_line(text, 1_000)) if text else ""
