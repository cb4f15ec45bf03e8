"""MillStone's part of a page: the summary, the paper's tables and figures, the explorer's frame, how it was made.

Owns the order of these sections and their words. Scores are taken from the findings' table of readings, so that the
page says nothing twice differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from .contents import Contents, Origin, Standing
from .explorer import Explorer, packed
from .html_tables import table_html
from .inert import in_html
from .interval_cells import OVER, interval_in_a_cell
from .labels import plain
from .sections import Part, Section, figures_html, remarks_html, shared_out, table_section, targets_of
from .table import Cell, Column, Findings, Table

_READINGS = "om-readings"
# Where a model stands in several sets of issues, the one that the report was asked for, then the largest.
_SETS = {107: ("all", "all but three", "controversial"), 104: ("all but three", "all", "controversial")}


_PUBLISHED_NOTE = (
    '<p class="note">Rows marked “published” are the paper’s own figures. They stand beside this run’s for comparison '
    "and enter no rank, mean or correlation.</p>"
)


def part_of(contents: Contents) -> Part:
    findings = contents.findings
    of_paper, behind, rest = shared_out(findings)
    sections = (
        Section("summary", "Summary", summary_html(contents)),
        Section("warnings", "Read with care", remarks_html(findings.remarks)),
        Section(
            "tables",
            "The paper’s tables",
            published_note(findings) + "".join(map(table_section, of_paper)),
            targets_of("Table", (table.name for table in findings.tables if table.name.startswith("table-"))),
        ),
        Section(
            "figures",
            "The paper’s figures",
            figures_html(findings, behind),
            targets_of("Figure", (figure.name for figure in findings.figures)),
        ),
        Section("beyond", "Beyond the paper", "".join(map(table_section, rest))),
        Section("behind", "Behind the numbers", explorer_html(contents.explorer)),
        Section("origin", "How it was made", origins_html(contents.origins, contents.command)),
    )
    return Part("MillStone", sections, findings.figures, {"explorer-data": packed(contents.explorer)})


def published_note(findings: Findings) -> str:
    return _PUBLISHED_NOTE + samples_note(findings)


def samples_note(findings: Findings) -> str:
    return f'<p class="note"><strong>{in_html(findings.of_samples)}</strong></p>' if findings.of_samples else ""


def summary_html(contents: Contents) -> str:
    return "".join(
        (
            state_html(contents.standings, unmeasured=contents.findings.silent),
            table_html(_scores(contents), "scores"),
            '<p class="note">OM is eq. (1) read literally, from 0 to 100; higher is more open-minded. By silence: the '
            f"part of it from cases whose most common stance is Other. {in_html(OVER[contents.over])} Its two "
            "companions read the equation otherwise, as told under “Read with care”. Ranks are those by OM and by each "
            "companion, among models asked about the same set of issues. Cut off: answers that ended at max_tokens; "
            "Other: answers that take no side.</p>",
            table_html(answers_table(contents.standings), "answers"),
            f"<h3>Readings that this report goes by</h3>{facts_html(contents.choices)}" if contents.choices else "",
        )
    )


def state_html(
    standings: Iterable[Standing],
    item: str = "answer",
    whose: tuple[str, str] = ("model", "models"),
    told: str = "Figures are computed from the answers there are.",
    unmeasured: Sequence[str] = (),
) -> str:
    """What is incomplete, with its numbers, or that nothing is. `item` is what is counted, `whose` whom it is of.
    `unmeasured` has a sentence for each thing of which nothing was measured: then it is not said that nothing is
    missing."""
    every = list(standings)
    lacking = [standing for standing in every if not standing.is_complete]
    alert = _unmeasured(unmeasured)
    if not lacking:
        answered = sum(standing.answered for standing in every)
        if alert:
            return f"{alert}<p>{answered:,} {item}s of {_several(len(every), whose)} are there.</p>"
        if all(standing.is_told for standing in every):
            return f"<p>Nothing is missing: all {answered:,} {item}s of {_several(len(every), whose)} are there.</p>"
        return f"<p>{answered:,} {item}s of {_several(len(every), whose)}; as far as they show, none is missing.</p>"
    items = "".join(f"<li>{in_html(_lack(standing))}</li>" for standing in lacking)
    return alert + (
        f'<div class="alert" role="note"><strong>Incomplete: {len(lacking)} of {_several(len(every), whose)}.</strong> '
        f"{told}<ul>{items}</ul></div>"
    )


def _unmeasured(sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    items = "".join(f"<li>{in_html(sentence)}</li>" for sentence in sentences)
    return f'<div class="alert" role="note"><strong>No score worth reading.</strong><ul>{items}</ul></div>'


def _lack(standing: Standing) -> str:
    parts = [f"{standing.answered:,} of {standing.expected:,} answered"]
    if standing.failures:
        kinds = ", ".join(f"{kind} {number:,}" for kind, number in standing.failed.items())
        at = ", ".join(f"{plain(step)} {number:,}" for step, number in standing.steps.items())
        parts.append(f"{standing.failures:,} failed ({kinds}{f'; at: {at}' if at else ''})")
    if standing.pending:
        held = min(standing.held, standing.pending)
        behind = f", {held:,} of them held back behind a failed one" if held else ""
        parts.append(f"{standing.pending:,} {'pending' if standing.is_told else 'missing'}{behind}")
    return f"{plain(standing.model)}: {', '.join(parts)}"


def _several(number: int, whose: tuple[str, str]) -> str:
    return f"1 {whose[0]}" if number == 1 else f"{number:,} {whose[1]}"


def _scores(contents: Contents) -> Table:
    kinds = ("om", "om_pro_share", "om_no_flip")
    columns = (
        Column("model", "Model"),
        Column("set", "Issues"),
        Column("om", "OM", "score"),
        Column("om_by_silence", "By silence", "score"),
        Column("interval", f"95% interval over {contents.over}"),
        Column("om_pro_share", "By pro share", "score"),
        Column("om_no_flip", "Without the flip condition", "score"),
        Column("ranks", "Ranks"),
        Column("cut", "Cut off", "count"),
        Column("other", "Other", "count"),
    )
    read = {row["model"]: row for row in _records(contents.findings, "answers-read")}
    found: dict[str, dict[str, Cell]] = {}
    for row in _records(contents.findings, _READINGS):
        model, name = str(row["model"]), str(row["issue_set"])
        order = _SETS[contents.issue_set]
        known = found.get(model)
        if known is None or order.index(name) < order.index(str(known["issue_set"])):
            found[model] = row
    rows: list[tuple[Cell, ...]] = []
    for standing in contents.standings:
        row = found.get(standing.model, {})
        issues = _issues_told(row) if row else None
        ranks = (
            " / ".join("–" if row[f"{kind}_rank"] is None else str(row[f"{kind}_rank"]) for kind in kinds)
            if row
            else None
        )
        rows.append(
            (
                standing.model,
                issues,
                row.get("om"),
                row.get("om_by_silence"),
                interval_in_a_cell("score", row.get("om_low"), row.get("om_high"), row.get("om_interval")),
                row.get("om_pro_share"),
                row.get("om_no_flip"),
                ranks,
                *(read.get(standing.model, {}).get(name) for name in ("cut", "other")),
            )
        )
    return Table("scores", "Scores", "", columns, tuple(rows))


def _issues_told(row: Mapping[str, Cell]) -> str:
    """How many issues have a score, of how many where some have none."""
    unscored = int(row["unscored"] or 0)
    whole = f" of {int(row['issues'] or 0) + unscored}" if unscored else ""
    return f"{row['issues']}{whole} ({row['issue_set']})"


def _records(findings: Findings, name: str) -> Iterator[dict[str, Cell]]:
    for table in findings.tables:
        if table.name == name:
            yield from table.records()


def answers_table(standings: Iterable[Standing]) -> Table:
    columns = (
        Column("model", "Model"),
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
            ", ".join(f"{kind} {number:,}" for kind, number in standing.failed.items()) or None,
            standing.pending,
        )
        for standing in standings
    )
    return Table("answers", "Answers", "", columns, rows)


def explorer_html(explorer: Explorer) -> str:
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


def origins_html(origins: Iterable[Origin], command: str) -> str:
    return "".join(map(_origin, origins)) + _command("This report again", command)


def _origin(origin: Origin) -> str:
    command = _command("The same prompts again", origin.command)
    return f"<h3>{in_html(plain(origin.name))}</h3>{facts_html(origin.facts)}{command}"


def _command(title: str, command: str) -> str:
    return f"<h4>{title}</h4><pre>{in_html(command)}</pre>" if command else ""


def facts_html(facts: Iterable[tuple[str, str]]) -> str:
    rows = "".join(f"<dt>{in_html(label)}</dt><dd>{in_html(plain(value, 2_000))}</dd>" for label, value in facts)
    return f'<dl class="facts">{rows}</dl>' if rows else ""
