"""Chameleon's part of a page: the summary, the paper's tables and figures, the conversations, how it was made.

Owns the order of these sections and their words; identities begin with `chameleon-`, so that MillStone's part can stand
beside it.
"""

from __future__ import annotations

from importlib.resources import files

from ...answers import temperature_name
from ..html_tables import shown_value, table_html
from ..inert import in_html
from ..interval_cells import OVER, interval_in_a_cell
from ..page_sections import answers_table, facts_html, origins_html, published_note, samples_note, state_html
from ..sections import Part, Section, figures_html, remarks_html, shared_out, table_section, targets_of
from ..table import PUBLISHED, Cell, Column, Findings, Kind, Table
from .browser import Browser, packed
from .contents import ConversationContents
from .tables_scores import OVERALL

_SCORES = "chameleon-table-1-scores"
_PREFIX = "chameleon-"
_NO_TEMPERATURE = temperature_name(None)
_PAIRS = ("model at one temperature", "pairs of a model and a temperature")


def part_of(contents: ConversationContents) -> Part:
    findings = contents.findings
    of_paper, behind, rest = shared_out(findings, _PREFIX)
    sections = (
        Section(f"{_PREFIX}summary", "Summary", _summary(contents)),
        Section(f"{_PREFIX}warnings", "Read with care", remarks_html(findings.remarks)),
        Section(
            f"{_PREFIX}tables",
            "The paper’s tables",
            published_note(findings) + "".join(map(table_section, of_paper)),
            targets_of("Table", (table.name for table in of_paper)),
        ),
        Section(
            f"{_PREFIX}figures",
            "The paper’s figures",
            figures_html(findings, behind),
            targets_of("Figure", (figure.name for figure in findings.figures)),
        ),
        Section(f"{_PREFIX}beyond", "Behind the scores", samples_note(findings) + "".join(map(table_section, rest))),
        Section(f"{_PREFIX}conversations-browser", "The conversations", _frame(contents.browser)),
        Section(f"{_PREFIX}origin", "How it was made", origins_html(contents.origins, contents.command)),
    )
    own = files(__package__)
    return Part(
        "Chameleon",
        sections,
        findings.figures,
        {"conversations-data": packed(contents.browser)},
        (own.joinpath("conversations.js").read_text("utf-8"),),
        own.joinpath("conversations.css").read_text("utf-8"),
    )


def _summary(contents: ConversationContents) -> str:
    return "".join(
        (
            state_html(
                contents.standings,
                "turn",
                _PAIRS,
                "Conversations with turns missing enter no mean.",
                contents.unmeasured,
            ),
            table_html(_scores(contents.findings), f"{_PREFIX}scores"),
            '<p class="note">Means ± standard deviations across scored conversations. Ranks are by the mean score '
            "among the models at one temperature, the lowest first; above a tenth of its conversations unscored a "
            "model has none. The Chameleon score is eq. "
            "(2), from 0 to 1; lower is steadier: below 0.3 is low, up to 0.5 moderate, above it high. A source re-use "
            f"rate below 0.3 is high diversity, above 0.6 low. {in_html(OVER['conversations'])}</p>",
            table_html(answers_table(contents.standings), f"{_PREFIX}answers"),
            f"<h3>Readings that this report goes by</h3>{facts_html(contents.choices)}" if contents.choices else "",
        )
    )


def _scores(findings: Findings) -> Table:
    """Table 1's own rows, a mean and its deviation in one cell."""
    columns = (
        Column("model", "Model"),
        Column("score", "Chameleon score"),
        Column("interval", "95% interval"),
        Column("rank", "Rank", "count"),
        Column("srr", "Source re-use"),
        Column("confidence", "Confidence"),
        Column("changes", "Stance changes"),
        Column("conversations", "Scored"),
    )
    [table] = [table for table in findings.tables if table.name == _SCORES]
    rows = []
    for row in table.records():
        if row["source"] == PUBLISHED or row["model"] == OVERALL:
            continue
        scored, unscored = int(row["conversations"] or 0), int(row["unscored"] or 0)
        rows.append(
            (
                row["model"] if row["temperature"] == _NO_TEMPERATURE else f"{row['model']} @ {row['temperature']}",
                _spread("rate", row["score"], row["score_std"]),
                interval_in_a_cell("rate", row["low"], row["high"], row["interval"]),
                row["rank"],
                *(_spread("rate", row[kind], row[f"{kind}_std"]) for kind in ("srr", "confidence")),
                _spread("score", row["changes"], row["changes_std"]),
                f"{scored:,} of {scored + unscored:,}",
            )
        )
    return Table(f"{_PREFIX}scores", "Scores", "", columns, tuple(rows))


def _spread(kind: Kind, mean: Cell, std: Cell) -> str | None:
    if mean is None:
        return None
    return shown_value(kind, mean) if std is None else f"{shown_value(kind, mean)} ± {shown_value(kind, std)}"


def _frame(browser: Browser) -> str:
    remarks = "".join(f'<p class="note">{in_html(remark)}</p>' for remark in browser.remarks)
    if not browser.rows:
        return '<p class="empty">There is no conversation to look into.</p>'
    return f"""<p>Each row is one conversation with one model: its stances turn by turn, and its figures. Choose one to
read its turns.</p>
<p class="note" id="conversations-told">Opening needs JavaScript; everything else on this page does not, and every
conversation’s stances and figures stand in the table “Every conversation”.</p>{remarks}
<div id="conversations" data-state="closed"><div class="needs-data">
<div class="choose">
<div><label for="conversations-search">Topic, domain or id</label><input id="conversations-search" type="search"></div>
<div><label for="conversations-pair">Model</label><select id="conversations-pair"></select></div>
<div><label for="conversations-sort">Order</label><select id="conversations-sort"></select></div>
</div>
<ul class="stances-key"><li class="supportive">S supportive</li><li class="critical">C critical</li>
<li class="balanced">B balanced</li><li class="unclear">U unclear</li></ul>
<p class="sentence" id="conversations-count" aria-live="polite"></p>
<div class="table" role="region" tabindex="0" aria-label="Conversations">
<table class="talks"><caption>Conversations</caption><thead><tr><th scope="col">Topic</th><th scope="col">Model</th>
<th scope="col">Stances</th><th scope="col" class="number">Score</th><th scope="col" class="number">Source re-use</th>
<th scope="col" class="number">Confidence</th><th scope="col" class="number">Changes</th></tr></thead>
<tbody id="conversations-rows"></tbody></table></div>
<p><button type="button" id="conversations-more">Show more</button></p>
<div id="conversation" tabindex="-1"></div>
</div></div>"""
