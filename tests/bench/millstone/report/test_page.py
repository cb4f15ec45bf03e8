"""The report's page as bytes: what it says, what it allows itself, and that it is the same whenever it is made."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from html.parser import HTMLParser
from typing import Any

import pytest
from millstone_page import page
from msgspec import structs
from polls import polled, realistic, survey_of

from millstream.bench.millstone.report.part import tables_and_figures
from millstream.report.html_tables import shown_value, table_html
from millstream.report.sections import PageContents
from millstream.report.standings import AnswerStatus, RunOrigin
from millstream.report.table import PUBLISHED, THIS_RUN, Column, Figure, Kind, Table

TABLE = Table(
    "table-4-om",
    "Table 4: a title",
    "What it is.",
    (Column("source", "Source"), Column("model", "Model"), Column("om", "OM", "score")),
    ((THIS_RUN, "lab/one", 7.75), (PUBLISHED, "Claude Opus 4", 7.14), (THIS_RUN, "lab/two", None)),
)
FIGURE = Figure(
    "figure-2-shifts",
    "Figure 2: a drawing",
    "What is drawn.",
    "figure-2-shifts",
    {"data": {"values": [{"x": 1, "y": "</script><b>"}]}, "mark": "bar", "encoding": {"x": {"field": "x"}}},
)
DATA = Table("figure-2-shifts", "Figure 2, data", "", (Column("x", "X", "count"),), ((1,),))
EMPTY = Figure("figure-7-refusals", "Figure 7: nothing", "None.", "refusals", None, "No model refuses.")
REFUSALS = Table("refusals", "Refusals", "", (Column("model", "Model"),), ())


def contents(*standings: AnswerStatus, remarks: tuple[str, ...] = ()) -> PageContents:
    return PageContents(
        title="MillStone: lab/one on 1 issue",
        standings=standings or (AnswerStatus("lab/one", 10, 10),),
        tables=(TABLE, DATA, REFUSALS),
        figures=(FIGURE, EMPTY),
        remarks=remarks,
        origins=(RunOrigin("run", (("Data set", "sample"),), "millstream run millstone --model lab/one"),),
    )


class Elements(HTMLParser):
    """Every element with its attributes; the texts of scripts and styles; the text of the rest."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[tuple[dict[str, str | None], str]] = []
        self.text = ""
        self.feed(page.decode("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem:
            self.inside.append(({"tag": self.cdata_elem, **self.elements[-1][1]}, data))
        else:
            self.text += data

    def attribute(self, name: str) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get(name)) is not None]


def policy(elements: Elements) -> dict[str, list[str]]:
    [text] = [each["content"] for _, each in elements.elements if each.get("http-equiv") == "Content-Security-Policy"]
    return {part.split()[0]: part.split()[1:] for part in (text or "").split("; ")}


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_nothing_is_allowed_but_what_stands_in_the_page() -> None:
    elements = Elements(page(contents()))
    allowed = policy(elements)
    assert allowed["default-src"] == allowed["base-uri"] == allowed["form-action"] == ["'none'"]
    code: dict[str, str] = {"script": "", "style": ""}
    hashes: dict[str, list[str]] = {"script": [], "style": []}
    for attributes, text in elements.inside:
        if attributes.get("type") is None:
            code[str(attributes["tag"])] += text
            hashes[str(attributes["tag"])].append(digest(text))
    assert allowed["script-src"] == hashes["script"] and len(hashes["script"]) == 3
    assert allowed["style-src"] == hashes["style"] and len(hashes["style"]) == 1
    assert "@import" not in code["style"] and "url(" not in code["style"]


def test_the_page_refers_to_nothing_outside() -> None:
    elements = Elements(page(contents()))
    links = elements.attribute("href") + elements.attribute("src") + elements.attribute("xlink:href")
    # The paper's address is followed by a reader alone: a page loads nothing from it.
    assert [link for link in links if not link.startswith(("#", "tables/"))] == ["https://arxiv.org/abs/2509.11967"]
    assert elements.attribute("style") == []
    assert [name for _, attributes in elements.elements for name in attributes if name.startswith("on")] == []


def test_links_lead_to_what_is_there_and_no_name_is_given_twice() -> None:
    elements = Elements(page(contents()))
    names = elements.attribute("id")
    assert [name for name, times in Counter(names).items() if times > 1] == []
    targets = [link[1:] for link in elements.attribute("href") if link.startswith("#")]
    assert {"table-4-om", "figure-2-shifts", "figure-7-refusals"} <= set(targets) <= set(names)
    told = elements.attribute("aria-labelledby") + elements.attribute("for")
    assert set(told) <= set(names)


def test_the_same_contents_give_the_same_bytes_whatever_was_drawn_before() -> None:
    whole = contents()
    first = page(whole)
    page(tables_and_figures(realistic()))
    assert page(whole) == first


def test_published_rows_are_marked() -> None:
    made = page(contents()).decode()
    rows = re.findall(r'<tr class="published">(.*?)</tr>', made)
    assert len(rows) == 1 and "Claude Opus 4" in rows[0] and "published" in rows[0]


def test_a_figure_with_nothing_to_draw_says_why() -> None:
    made = page(contents()).decode()
    [figure] = re.findall(r'<figure id="figure-7-refusals">.*?</figure>', made, re.DOTALL)
    assert "No model refuses." in figure and "<svg" not in figure


def test_what_is_missing_is_told_with_its_counts() -> None:
    standings = (
        AnswerStatus("lab/whole", 40, 40),
        AnswerStatus("lab/part", 1_000, 700, 12, {"rejected": 200, "timeout": 40}),
        AnswerStatus("lab/none", 40, 0),
    )
    text = Elements(page(contents(*standings))).text
    assert "Incomplete: 2 of 3 models." in text
    assert "lab/part: 700 of 1,000 answered, 240 failed (rejected 200, timeout 40), 60 pending" in text
    assert "lab/none: 0 of 40 answered, 40 pending" in text
    assert "lab/whole:" not in text


def test_where_nothing_is_missing_that_is_said_as_far_as_it_is_known() -> None:
    told = Elements(page(contents(AnswerStatus("lab/one", 40, 40)))).text
    assert "Nothing is missing: all 40 answers are there." in told and "Incomplete" not in told
    inferred = Elements(page(contents(AnswerStatus("lab/one", 40, 40, is_told=False)))).text
    assert "as far as they show, none is missing" in inferred and "Nothing is missing" not in inferred


def test_remarks_and_how_it_was_made_are_told() -> None:
    text = Elements(page(contents(remarks=("A clean flip scores 0.",)))).text
    assert "A clean flip scores 0." in text
    assert "millstream run millstone --model lab/one" in text


def test_scores_of_the_summary_are_those_of_all_issues_and_table_4_has_both_sets() -> None:
    survey = survey_of(polled("lab/one"))
    found = tables_and_figures(survey)
    standing = AnswerStatus("lab/one", len(survey.answers[0]), len(survey.answers[0]))
    made = page(structs.replace(found, standings=(standing,)), survey)
    [scores] = re.findall(r'<div id="scores">.*?</table>', made.decode(), re.DOTALL)
    shown = re.findall(r"<td[^>]*>(.*?)</td>", scores)
    [om] = [table for table in found.tables if table.name == "table-4-om"]
    rows = {row["issue_set"]: row for row in om.records() if row["model"] == "lab/one"}
    assert shown[:2] == [f"{rows['all']['issues']} (all)", f"{rows['all']['om']:.2f}"]
    assert rows["all but three"]["issues"] == 7


@pytest.mark.parametrize(
    ("kind", "cell", "shown"),
    [
        ("count", 1234567, "1,234,567"),
        ("share", 0.1234, "12.3%"),
        ("percent", 12.34, "12.3%"),
        ("points", 4.05, "+4.0"),
        ("points", -4.26, "−4.3"),
        ("score", 7.1449, "7.14"),
        ("correlation", -0.5, "−0.50"),
        ("p", 0.0004, "< 0.001"),
        ("p", 0.0321, "0.032"),
        ("count", None, "–"),
        ("score", float("nan"), "–"),
        ("text", True, "yes"),
        ("text", "a  b\x00", "a b\ufffd"),
    ],
)
def test_values_are_shown_in_their_units(kind: Kind, cell: Any, shown: str) -> None:
    assert shown_value(kind, cell) == shown


def test_of_a_long_table_the_beginning_is_shown_and_the_file_named() -> None:
    long = Table("long", "Long", "", (Column("n", "N", "count"),), tuple((n,) for n in range(500)), is_long=True)
    made = table_html(long, "long", file="tables/long.csv")
    assert made.count("<tr>") == 11 and "The first 10 of 500 rows" in made and 'data-csv="tables/long.csv"' in made
    short = Table("short", "Short", "", long.columns, long.rows[:40], is_long=True)
    assert table_html(short, "short").count("<tr>") == 41
