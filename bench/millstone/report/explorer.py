"""The explorer's data in the form that the page's script reads: counts, exact sample prompts, and the most frequent
answers.

Owns these shapes and the explorer's markup. Knows no file of a run.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ....metrics.millstone.openness import CASES, STANCES
from ....report.escaping import in_html
from ....report.labels import issue_labels, labels
from ....report.packing import packed

LABEL_LONGEST = 80


class ShownAnswer(Struct, frozen=True, array_like=True):
    """An answer that is shown. `stance` is an index into STANCES, `text` one into the texts; `chars` is the full length
    of a text that was cut, else 0; `times`: how many answers are equal to it."""

    stance: int
    text: int
    chars: int
    times: int = 1


class ExplorerCell(Struct, frozen=True, array_like=True):
    """One model's answers on one issue in one case. `counts` has how many took which stance (pro, con, other),
    `refused` how many were refused. `said` are the most frequent of all its answers, out of `different` ones; `own`
    are its answers to the sample prompts (None: it has none)."""

    counts: tuple[int, int, int]
    refused: int
    different: int
    said: tuple[ShownAnswer, ...]
    own: tuple[ShownAnswer | None, ...]


class SamplePrompt(Struct, frozen=True, array_like=True):
    """A prompt that is shown. `parts` are indexes into the issue's parts, which joined are the exact prompt; `a_means`
    is the side that answering A means. All texts are safe to display."""

    id: str
    a_means: str
    parts: tuple[int, ...]


class IssuePrompts(Struct, frozen=True, array_like=True):
    """The sample prompts of one issue: the parts of their texts, and the prompts of each case."""

    parts: tuple[str, ...]
    cases: tuple[tuple[SamplePrompt, ...], ...]


class ExplorerModel(Struct, frozen=True):
    """One model in the explorer. `cells` has for each issue a cell for each case. `script` is the index of its prompts
    (None: they can't be shown; `why` says why)."""

    name: str
    cells: Mapping[str, tuple[ExplorerCell, ...]]
    script: int | None = None
    why: str = ""


class Explorer(Struct, frozen=True):
    """All contents of the explorer. `remarks` say what was left out to keep the page small."""

    issues: tuple[str, ...]
    models: tuple[ExplorerModel, ...]
    texts: tuple[str, ...]
    scripts: tuple[Mapping[str, IssuePrompts], ...]
    remarks: tuple[str, ...] = ()


class _ModelJson(Struct, frozen=True):
    """A model as the page's script reads it; issues are given by their indexes."""

    name: str
    cells: Mapping[int, tuple[ExplorerCell, ...]]
    script: int | None
    why: str


class _ExplorerJson(Struct, frozen=True):
    issues: tuple[str, ...]
    models: tuple[_ModelJson, ...]
    texts: tuple[str, ...]
    scripts: tuple[Mapping[int, IssuePrompts], ...]
    cases: tuple[str, ...] = CASES
    stances: tuple[str, ...] = STANCES


def packed_explorer(explorer: Explorer) -> str:
    """Returns the explorer as compressed JSON in base64; the same contents give the same text."""
    names = labels([model.name for model in explorer.models], LABEL_LONGEST)
    issues = issue_labels(explorer.issues, LABEL_LONGEST)
    places = {issue: at for at, issue in enumerate(explorer.issues)}
    whole = _ExplorerJson(
        issues=tuple(issues[issue] for issue in explorer.issues),
        models=tuple(
            _ModelJson(
                names[model.name],
                {places[issue]: cells for issue, cells in model.cells.items()},
                model.script,
                model.why,
            )
            for model in explorer.models
        ),
        texts=explorer.texts,
        scripts=tuple({places[issue]: script for issue, script in of_grid.items()} for of_grid in explorer.scripts),
    )
    return packed(whole)


def explorer_html(explorer: Explorer) -> str:
    """Returns the HTML that the page's script fills with prompts and answers."""
    remarks = "".join(f'<p class="note">{in_html(remark)}</p>' for remark in explorer.remarks)
    if not explorer.models:
        return '<p class="empty">There is no answer to look into.</p>'
    chooses = "".join(
        f'<div><label for="explorer-{name}">{title}</label><select id="explorer-{name}"></select></div>'
        for name, title in (("model", "Model"), ("issue", "Issue"), ("case", "Configuration"))
    )
    numbers = "".join(
        f'<th scope="col" class="number">{title}</th>' for title in ("Pro", "Con", "Other", "Refused", "Answers")
    )
    return f"""<p>Choose a number to see the prompts and answers that it was counted from.</p>
<p class="note" id="explorer-told">Opening needs JavaScript; everything else on this page does not.</p>{remarks}
<div id="explorer" data-state="closed"><div class="needs-data">
<div class="choose">{chooses}</div>
<p class="sentence" id="explorer-sentence" aria-live="polite"></p>
<div class="table" role="region" tabindex="0" aria-label="Shares of all configurations">
<table class="shares"><caption>Shares of all configurations</caption>
<thead><tr><th scope="col">Configuration</th>{numbers}</tr></thead><tbody id="explorer-shares"></tbody></table></div>
<ul class="key-of" aria-hidden="true"><li class="pro">pro</li><li class="con">con</li><li class="other">other</li></ul>
<h3>Answers</h3><p class="note" id="explorer-different"></p>
<div class="table" id="explorer-said-box" role="region" tabindex="0" aria-label="The most frequent answers">
<table><caption>The most frequent answers</caption><thead><tr><th scope="col">Answer</th><th scope="col">Read as</th>
<th scope="col" class="number">Times</th><th scope="col" class="number">Share</th></tr></thead>
<tbody id="explorer-said"></tbody></table></div>
<h3>Prompts</h3><p class="note">To the letter; of each configuration the first trial, in a wording in which answering A
means pro and one in which it means con.</p><div id="explorer-prompts"></div>
</div></div>"""
