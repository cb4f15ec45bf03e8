"""The conversations of a report, opened in a browser: they show what the records hold, as text, on any screen."""

from __future__ import annotations

import re
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from browser import Watched, opened
from chameleon_records import PERSONAS, run_records, turn_record
from chameleon_run import page, written_run
from hostile import hostile
from playwright.sync_api import Browser

from millstream.bench.chameleon.report.part import contents

Records = list[dict[str, Any]]
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
A4 = 794
LETTERS = {"supportive": "S", "critical": "C", "balanced": "B", "unclear": "U"}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1200, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "phone": {"color_scheme": "light", "viewport": {"width": 360, "height": 740}},
}


class Held(NamedTuple):
    page: Path
    records: Records


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Held:
    folder = tmp_path_factory.mktemp("held")
    records = list(run_records(PERSONAS, [0.0, None], conversations=30, turns=5))
    # The last turn of one conversation is missing.
    del records[-1]
    (folder / "report.html").write_bytes(page(contents([written_run(folder, records)])))
    return Held(folder / "report.html", records)


def rows_of(watched: Watched) -> list[list[str]]:
    """Topic and place, model, stances, then the numbers of every row that is listed."""
    found: list[list[str]] = watched.page.eval_on_selector_all(
        "#conversations-rows tr",
        """rows => rows.map(row => [...row.cells].map(cell => cell.querySelector('.strip')
            ? [...cell.querySelectorAll('.stance')].map(one => one.textContent).join('') : cell.innerText))""",
    )
    return found


def test_the_page_asks_for_nothing_but_itself_and_complains_of_nothing(browser: Browser, held: Held) -> None:
    with opened(browser, held.page) as watched:
        watched.settle()
        watched.page.locator("#conversations-rows button").first.click()
        for details in watched.page.locator("main details summary").all():
            details.click()
        for plot in watched.page.locator(".plot").all():
            plot.hover()
        assert (watched.requests, watched.complaints) == ([held.page.as_uri()], [])


def test_the_list_holds_every_conversation_with_its_stances(browser: Browser, held: Held) -> None:
    wanted: dict[tuple[str, str], str] = {}
    for record in sorted(held.records, key=lambda record: record["turn"]):
        heat = "" if record["temperature"] is None else f" @ {record['temperature']:g}"
        key = (record["conversation"], record["model"] + heat)
        wanted[key] = wanted.get(key, "") + LETTERS[record["stance"]]
    with opened(browser, held.page) as watched:
        watched.settle("#conversations")
        assert watched.page.inner_text("#conversations-count") == "180 conversations, 20 of them shown."
        for number in (40, 80, 160, 180):
            watched.page.click("#conversations-more")
            assert watched.page.locator("#conversations-rows tr").count() == number
        assert watched.page.locator("#conversations-more").is_hidden()
        rows = rows_of(watched)
        shown = {(re.findall(r"topic-\d+", row[0])[0], row[1]): row[2] for row in rows}
        assert shown == wanted and len(rows) == 180
        scores = [float(row[3]) for row in rows if row[3] != "–"]
        assert all(one >= other for one, other in pairwise(scores))
        assert sum("incomplete: 1 turn missing" in row[0] for row in rows) == 1


def test_search_model_and_order_choose_what_is_listed(browser: Browser, held: Held) -> None:
    with opened(browser, held.page) as watched:
        watched.settle("#conversations")
        watched.page.fill("#conversations-search", "CLIMATE claim")
        found = rows_of(watched)
        assert watched.page.inner_text("#conversations-count") == f"{8 * 6} conversations, 20 of them shown."
        assert len(found) == 20 and all("Climate Change" in row[0] for row in found)
        watched.page.select_option("#conversations-pair", label="sim/swaying @ 0")
        assert len(rows_of(watched)) == 8
        watched.page.select_option("#conversations-sort", "lowest")
        scores = [float(row[3]) for row in rows_of(watched)]
        assert scores == sorted(scores)
        watched.page.fill("#conversations-search", "no such thing")
        assert rows_of(watched) == []
        assert watched.page.inner_text("#conversations-count") == "No conversation is like that."
        watched.page.fill("#conversations-search", "topic-0007")
        assert len(rows_of(watched)) == 1


def test_a_conversation_shows_its_turns_answers_judgements_and_sources(browser: Browser, held: Held) -> None:
    with opened(browser, held.page) as watched:
        watched.settle("#conversations")
        watched.page.fill("#conversations-search", "topic-0004")
        watched.page.select_option("#conversations-pair", label="sim/wavering @ 0")
        watched.page.locator("#conversations-rows button").first.click()
        own = [
            record
            for record in held.records
            if (record["model"], record["temperature"], record["conversation"]) == ("sim/wavering", 0.0, "topic-0004")
        ]
        turns = watched.page.locator(".turns > li")
        assert turns.count() == len(own) == 5
        for at, record in enumerate(sorted(own, key=lambda record: record["turn"])):
            turn = turns.nth(at)
            assert turn.locator("h4").inner_text().split("\n")[-1] == f"{record['turn']}. {record['question']}"
            assert record["text"] not in turn.inner_text()
            for summary in turn.locator("summary").all():
                summary.click()
            told = turn.inner_text()
            for text in (record["text"], record["rationale"], record["query"], record["stance"], *record["key_claims"]):
                assert text in told
            sources = [line.split("\n") for line in turn.locator(".sources li").all_inner_texts()]
            for source, hit in zip(sources, record["retrieved"], strict=True):
                assert source[0].startswith(hit["url"])
                assert ("cited" in " ".join(source)) is (hit["url"] in record["cited"])
                assert hit["status"] == "ok" or hit["status"].replace("_", " ") in " ".join(source)
        # The same conversation with the others, and the way to them.
        beside = watched.page.locator(".beside tbody tr")
        assert beside.count() == 6
        beside.locator("button").first.click()
        assert "with sim/steady" in watched.page.inner_text("#conversation .note")


def test_the_conversations_can_be_used_with_the_keyboard_alone(browser: Browser, held: Held) -> None:
    with opened(browser, held.page) as watched:
        watched.settle()
        watched.page.focus("#conversations-rows button")
        watched.page.keyboard.press("Enter")
        assert watched.page.evaluate("document.activeElement.id") == "conversation"
        watched.page.focus(".turns summary")
        watched.page.keyboard.press("Enter")
        assert watched.page.locator(".turns details[open]").count() == 1
        reachable = "all => all.every(one => one.tabIndex === 0 && one.getAttribute('aria-label'))"
        assert watched.page.eval_on_selector_all(".table, .plot", reachable)
        named = "all => all.every(one => one.getAttribute('aria-label').includes(','))"
        assert watched.page.eval_on_selector_all(".strip", named)


def test_without_scripts_the_tables_still_show_and_say_where_conversations_stand(browser: Browser, held: Held) -> None:
    with opened(browser, held.page, java_script_enabled=False) as watched:
        assert watched.page.locator("#conversations-told").is_visible()
        assert not watched.page.locator("#conversations-search").is_visible()
        assert watched.page.locator("#chameleon-conversations table").is_visible()
        assert watched.page.locator(".plot .still svg").count() == 3


@pytest.mark.parametrize("look", LOOKS)
def test_conversations_fit_the_screen_and_can_be_read(
    browser: Browser, held: Held, screenshots: Path, look: str
) -> None:
    with opened(browser, held.page, **LOOKS[look]) as watched:
        watched.settle()
        watched.page.locator("#conversations-rows button").first.click()
        for summary in watched.page.locator(".turns > li:first-child summary").all():
            summary.click()
        watched.page.screenshot(path=screenshots / f"conversations-{look}.png", full_page=True)
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= LOOKS[look]["viewport"]["width"]
        faint = watched.page.eval_on_selector_all(
            ".stance.supportive, .stance.critical, .stance.balanced",
            """all => all.filter(one => {
                const light = text => {
                    const [r, g, b] = text.match(/[0-9.]+/g).slice(0, 3).map(each => {
                        const part = Number(each) / 255;
                        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
                    });
                    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
                };
                const style = getComputedStyle(one);
                const [low, high] = [light(style.color), light(style.backgroundColor)].sort((a, b) => a - b);
                return (high + 0.05) / (low + 0.05) < 4.5;
            }).length""",
        )
        assert faint == 0
        # What tells a stance apart from the page it stands on: squares in use and in the key.
        pale = watched.page.evaluate(
            """() => {
                const light = text => {
                    const [r, g, b] = text.match(/[0-9.]+/g).slice(0, 3).map(each => {
                        const part = Number(each) / 255;
                        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
                    });
                    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
                };
                const paper = getComputedStyle(document.body).backgroundColor;
                const names = ['supportive', 'critical', 'balanced'];
                return names.filter(name => [
                    getComputedStyle(document.querySelector(`.stance.${name}`)).backgroundColor,
                    getComputedStyle(document.querySelector(`.stances-key .${name}`), '::before').backgroundColor,
                ].some(colour => {
                    const [low, high] = [light(colour), light(paper)].sort((a, b) => a - b);
                    return (high + 0.05) / (low + 0.05) < 3;
                }));
            }"""
        )
        assert pale == []
        # The list is part of the page: no box of its own to scroll in, and nothing of a row behind an edge.
        boxes = watched.page.eval_on_selector_all(
            "#conversations .table",
            """all => all.map(one =>
                [one.scrollHeight > one.clientHeight + 1, one.scrollWidth > one.clientWidth + 1])""",
        )
        assert boxes == [[False, False]] * 2


def test_fifteen_stances_and_their_figures_fit_a_phone(browser: Browser, tmp_path: Path) -> None:
    records = run_records(PERSONAS[:1], [0.5], conversations=2, turns=15)
    (tmp_path / "report.html").write_bytes(page(contents([written_run(tmp_path, records)])))
    with opened(browser, tmp_path / "report.html", viewport={"width": 390, "height": 840}) as watched:
        watched.settle("#conversations")
        row = watched.page.locator("#conversations-rows tr").first
        places = row.locator(".stance").evaluate_all(
            "all => all.map(one => [one.getBoundingClientRect().top, one.getBoundingClientRect().right])"
        )
        assert len(places) == 15 and len({top for top, _ in places}) == 1 and max(right for _, right in places) <= 390
        cells = row.locator(".number").evaluate_all(
            "all => all.map(one => [getComputedStyle(one, '::before').content, one.getBoundingClientRect().right])"
        )
        assert [name for name, _ in cells] == ['"Score"', '"Source re-use"', '"Confidence"', '"Changes"']
        assert max(right for _, right in cells) <= 390


def test_the_first_table_fits_a_narrow_desktop(browser: Browser, tmp_path: Path) -> None:
    records = list(run_records(PERSONAS[:1], [0.5, 1.0], conversations=3, turns=3))
    for record in records:
        record["model"] = "anthropic/claude-sonnet-4-5-20250929"
    (tmp_path / "report.html").write_bytes(page(contents([written_run(tmp_path, records)])))
    with opened(browser, tmp_path / "report.html", viewport={"width": 1200, "height": 900}) as watched:
        wide = "one => one.scrollWidth - one.clientWidth"
        assert watched.page.locator("#chameleon-scores .table").evaluate(wide) <= 0


def test_on_paper_the_open_conversation_stands_and_no_controls_do(browser: Browser, held: Held) -> None:
    with opened(browser, held.page, viewport={"width": 760, "height": 1000}) as watched:
        watched.settle()
        watched.page.locator("#conversations-rows button").first.click()
        watched.page.emulate_media(media="print")
        for hidden in ("#conversations-search", "#conversations-more", "#chameleon-figure-4-reuse .live"):
            assert not watched.page.locator(hidden).is_visible(), hidden
        assert watched.page.locator(".turns > li").first.is_visible()
        assert watched.page.locator("#chameleon-figure-4-reuse .still").is_visible()


def test_on_paper_no_table_loses_a_column(browser: Browser, tmp_path: Path) -> None:
    records = list(run_records(PERSONAS[:1], [0.5, 1.0], conversations=3, turns=15))
    (tmp_path / "report.html").write_bytes(page(contents([written_run(tmp_path, records)])))
    with opened(browser, tmp_path / "report.html", viewport={"width": A4, "height": 1000}) as watched:
        watched.page.emulate_media(media="print")
        widths = watched.page.eval_on_selector_all(
            "main table",
            "all => all.filter(one => one.offsetParent).map(one => [one.closest('[id]').id, one.scrollWidth])",
        )
        # Browsers print a page that is up to a third wider than the paper, smaller.
        assert len(widths) > 10 and [name for name, width in widths if width > A4 * 4 / 3] == []


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both benchmarks on one page; of the conversations every text is an attack."""
    folder, texts = tmp_path_factory.mktemp("hostile"), cycle(hostile())
    names = [text for text in hostile() if 0 < len(text.strip()) < 5_000]
    records = [
        turn_record(
            names[turn % 3],
            name,
            turn,
            ("critical", "unclear", "balanced")[turn % 3],
            [next(texts)[:2_000], next(texts)[:2_000]],
            topic=next(texts),
            domain=name,
            question=next(texts)[:700],
            query=next(texts)[:700],
            text=next(texts),
            rationale=next(texts)[:700],
            # Eleven texts a turn: of two hundred, each comes to stand in every place.
            key_claims=[next(texts)[:700], next(texts)[:700]],
            raw_judgement=next(texts)[:700],
            invalid_citations=[next(texts)[:700]],
        )
        for name in names
        for turn in (1, 2, 3)
    ]
    for record in records:
        record["retrieved"][0]["status"] = next(texts)[:200]
    made = contents([written_run(folder, records, "<b>run</b>")])
    (folder / "report.html").write_bytes(page(made))
    return folder / "report.html"


@pytest.mark.long
def test_whatever_stands_in_a_conversation_runs_nothing_and_shows_as_text(browser: Browser, hostile_page: Path) -> None:
    with opened(browser, hostile_page) as watched:
        watched.settle()
        while watched.page.locator("#conversations-more").is_visible():
            watched.page.click("#conversations-more")
        rows = watched.page.locator("#conversations-rows button")
        assert rows.count() > 500
        shown = watched.page.evaluate(
            """() => {
                const seen = new Set();
                for (const button of document.querySelectorAll('#conversations-rows button')) {
                    button.click();
                    document.querySelectorAll('#conversation .said, #conversation li').forEach(one => {
                        one.querySelectorAll('details').forEach(each => { each.open = true; });
                        seen.add(one.textContent);
                    });
                }
                return [...seen].join('\\n');
            }"""
        )
        assert (watched.ran(), watched.complaints, watched.requests) == (None, [], [hostile_page.as_uri()])
        handlers = "all => all.flatMap(one => one.getAttributeNames()).filter(name => name.startsWith('on'))"
        assert watched.page.eval_on_selector_all("main *", handlers) == []
        made = ("script", "img", "iframe", "object", "embed", "link", "base")
        assert [tag for tag in made if watched.page.locator(f"main {tag}").count()] == []
    for text in hostile():
        if len(text) < 200 and CONTROL.search(text) is None and text.isprintable() and text.strip():
            assert text in shown, text
    assert "␛[2J␛[31mred" in shown and "[U+202E]gnp.exe" in shown and CONTROL.search(shown) is None
    assert "(cut: 1,000,000 characters)" in shown


def test_a_conversation_has_an_address_that_opens_it(browser: Browser, held: Held) -> None:
    with opened(browser, held.page) as watched:
        watched.settle("#conversations")
        watched.page.fill("#conversations-search", "topic-0004")
        watched.page.select_option("#conversations-pair", label="sim/wavering @ 0")
        watched.page.locator("#conversations-rows button").first.click()
        title, address = watched.page.inner_text("#conversation h3"), watched.page.url
        turns = watched.page.locator("#conversation .turns > li").count()
    assert "conversation=topic-0004" in address and "with=sim" in address and turns == 5
    with opened(browser, held.page) as watched:
        watched.page.goto(address)
        watched.page.reload()
        # At once, without scrolling there.
        watched.page.locator("#conversation h3").wait_for()
        assert watched.page.inner_text("#conversation h3") == title
        assert "with sim/wavering @ 0" in watched.page.inner_text("#conversation")
        assert watched.complaints == []


def test_a_table_is_sorted_by_its_heads_with_numbers_as_numbers_and_dashes_last(browser: Browser, held: Held) -> None:
    def column(at: int) -> list[str]:
        cells = watched.page.locator(f"#chameleon-table-1-scores tbody tr > :nth-child({at + 1})")
        return [text.strip() for text in cells.all_inner_texts()]

    with opened(browser, held.page) as watched:
        heads = watched.page.locator("#chameleon-table-1-scores thead th")
        titles = [text.strip() for text in heads.all_inner_texts()]
        at = titles.index("Chameleon score")
        before = column(at)
        heads.nth(at).locator("button").click()
        known = [float(text) for text in column(at) if text != "–"]
        assert known == sorted(known, reverse=True) and sorted(column(at)) == sorted(before)
        assert column(at)[len(known) :] == ["–"] * (len(before) - len(known))
        assert heads.nth(at).get_attribute("aria-sort") == "descending"
        # With the keyboard the other way round; the other heads say nothing.
        heads.nth(at).locator("button").press("Enter")
        known = [float(text) for text in column(at) if text != "–"]
        assert known == sorted(known) and column(at)[len(known) :] == ["–"] * (len(before) - len(known))
        heads.nth(titles.index("Model")).locator("button").click()
        names = column(titles.index("Model"))
        assert names == sorted(names, key=str.casefold) and heads.nth(at).get_attribute("aria-sort") is None
        assert watched.complaints == []
