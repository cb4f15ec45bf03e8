"""The conversations of a report, opened in a browser: they show what the records hold, as text, on any screen."""

from __future__ import annotations

import re
from itertools import cycle
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


def shown_whole(watched: Watched) -> list[tuple[str, list[str]]]:
    """Id, and each model's stances by their letters, of every row: on paper all stand there."""
    watched.page.emulate_media(media="print")
    watched.page.locator(".matrix [data-place='29']").wait_for(state="attached")
    found: list[list[Any]] = watched.page.eval_on_selector_all(
        ".matrix tbody tr[data-place]",
        """rows => rows.map(row => [row.querySelector('.name').textContent,
            [...row.querySelectorAll('.strip')].map(one => one.textContent)])""",
    )
    watched.page.emulate_media(media="screen")
    return [(name, paths) for name, paths in found]


def numbers(watched: Watched) -> list[float]:
    """The numbers of the column that belongs to the order."""
    return [float(text) for text in watched.page.locator(".matrix td.number").all_inner_texts() if text != "–"]


def open_first(watched: Watched) -> None:
    watched.page.locator(".matrix tbody button").first.click()
    watched.page.locator(".item .answer").first.wait_for()


def test_the_page_asks_for_nothing_but_itself_and_complains_of_nothing(browser: Browser, held: Held) -> None:
    with opened(browser, held.page) as watched:
        watched.settle()
        open_first(watched)
        for details in watched.page.locator(".column:first-child details summary").all():
            details.click()
        for plot in watched.page.locator(".plot").all():
            plot.hover()
        assert (watched.requests, watched.complaints) == ([held.page.as_uri()], [])


def test_the_table_holds_every_conversation_with_its_stances(browser: Browser, held: Held) -> None:
    wanted: dict[tuple[str, str], str] = {}
    for record in sorted(held.records, key=lambda record: record["turn"]):
        heat = "" if record["temperature"] is None else f" @ {record['temperature']:g}"
        key = (record["conversation"], record["model"] + heat)
        wanted[key] = wanted.get(key, "") + LETTERS[record["stance"]]
    with opened(browser, held.page) as watched:
        watched.settle(".items")
        models = watched.page.locator(".matrix thead th").all_inner_texts()[1:]
        rows = shown_whole(watched)
        assert len(rows) == 30 and watched.page.get_by_text("30 items.").is_visible()
        assert {
            (name, model): path for name, paths in rows for model, path in zip(models, paths, strict=True)
        } == wanted
        assert watched.page.locator(".signs").inner_text().split() == [
            *("B", "balanced", "C", "critical", "U", "unclear", "S", "supportive")
        ]


def test_search_model_and_order_choose_what_is_listed(browser: Browser, held: Held) -> None:
    with opened(browser, held.page) as watched:
        watched.settle(".items")
        watched.page.get_by_label("Search", exact=True).fill("CLIMATE claim")
        assert watched.page.get_by_text("8 items of 30.").is_visible()
        orders = watched.page.get_by_label("Order", exact=True)
        for name in ("Source re-use", "Confidence", "Stance changes"):
            orders.select_option(label=f"{name}, most first")
            assert watched.page.locator(".matrix thead th.number").inner_text() == name
            found = numbers(watched)
            assert len(found) == 8 and found == sorted(found, reverse=True)
        orders.select_option(label="Turns missing, most first")
        watched.page.get_by_label("Search", exact=True).fill("")
        assert numbers(watched) == [1]
        orders.select_option(label="Lowest score first")
        found = numbers(watched)
        assert len(found) > 8 and found == sorted(found)
        watched.page.get_by_label("Search", exact=True).fill("no such thing")
        assert watched.page.get_by_text("No item is like that.").is_visible()
        # No score of conversations is right or wrong.
        assert watched.page.get_by_label("Wrong", exact=True).count() == 0


def test_a_conversation_shows_its_turns_answers_judgements_and_sources(browser: Browser, held: Held) -> None:
    own = [
        record
        for record in held.records
        if (record["model"], record["temperature"], record["conversation"]) == ("sim/wavering", 0.0, "topic-0004")
    ]
    with opened(browser, held.page) as watched:
        watched.settle(".items")
        watched.page.get_by_label("Search", exact=True).fill("topic-0004")
        open_first(watched)
        assert watched.page.locator(".item").get_by_text("Whether claim 4 holds").is_visible()
        column = watched.page.locator(".column", has=watched.page.get_by_text("sim/wavering @ 0", exact=True))
        path = "".join(LETTERS[record["stance"]] for record in sorted(own, key=lambda record: record["turn"]))
        assert column.locator("> .strip").inner_text().replace("\n", "") == path
        head = column.locator("> .note").first.inner_text()
        assert all(name in head for name in ("score 0.", "Source re-use 0.", "Confidence 0.", "Stance changes "))
        turns = column.locator(".answer")
        assert turns.count() == len(own) == 5
        changes = 0
        for at, record in enumerate(sorted(own, key=lambda record: record["turn"])):
            turn = turns.nth(at)
            first = turn.locator(".note").first.inner_text()
            changes += first.endswith("changed")
            assert first.split()[:3] == [LETTERS[record["stance"]], record["stance"], "·"]
            assert record["retrieved"][0]["url"] not in turn.inner_text()
            for summary in turn.locator("summary").all():
                summary.click()
            told = turn.inner_text()
            for text in (record["question"], record["text"], record["rationale"], record["query"], record["stance"]):
                assert text in told
            assert all(claim in told for claim in record["key_claims"])
            assert all(hit["url"] in told for hit in record["retrieved"])
        assert head.endswith(f"Stance changes {changes}") and changes


def test_the_conversations_can_be_used_with_the_keyboard_alone(browser: Browser, held: Held) -> None:
    with opened(browser, held.page) as watched:
        watched.settle()
        watched.page.focus(".matrix tbody button")
        watched.page.keyboard.press("Enter")
        watched.page.locator(".item .answer").first.wait_for()
        assert watched.page.evaluate("document.activeElement.className") == "item"
        watched.page.focus(".answer summary")
        watched.page.keyboard.press("Enter")
        assert watched.page.locator(".answer details[open]").count() == 1
        reachable = "all => all.every(one => one.tabIndex === 0 && one.getAttribute('aria-label'))"
        assert watched.page.eval_on_selector_all(".table, .plot, .columns", reachable)


def test_without_scripts_the_tables_still_show_and_say_where_conversations_stand(browser: Browser, held: Held) -> None:
    with opened(browser, held.page, java_script_enabled=False) as watched:
        assert "needs JavaScript" in watched.page.locator(".items").inner_text()
        assert watched.page.locator("#chameleon-conversations table").is_visible()
        assert watched.page.locator(".plot .still svg").count() == 3


@pytest.mark.parametrize("look", LOOKS)
def test_conversations_fit_the_screen_and_can_be_read(
    browser: Browser, held: Held, screenshots: Path, look: str
) -> None:
    with opened(browser, held.page, **LOOKS[look]) as watched:
        watched.settle()
        open_first(watched)
        for summary in watched.page.locator(".column:first-child .answer summary").all():
            summary.click()
        watched.page.screenshot(path=screenshots / f"conversations-{look}.png", full_page=True)
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= LOOKS[look]["viewport"]["width"]
        faint = watched.page.eval_on_selector_all(
            ".step:not([data-label=unclear])",
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
                    getComputedStyle(document.querySelector(`.matrix [data-label=${name}]`)).backgroundColor,
                    getComputedStyle(document.querySelector(`.signs [data-label=${name}]`)).backgroundColor,
                ].some(colour => {
                    const [low, high] = [light(colour), light(paper)].sort((a, b) => a - b);
                    return (high + 0.05) / (low + 0.05) < 3;
                }));
            }"""
        )
        assert pale == []


def test_fifteen_stances_stand_in_one_line_of_their_cell(browser: Browser, tmp_path: Path) -> None:
    records = run_records(PERSONAS[:1], [0.5], conversations=2, turns=15)
    (tmp_path / "report.html").write_bytes(page(contents([written_run(tmp_path, records)])))
    for width in (390, 1280):
        with opened(browser, tmp_path / "report.html", viewport={"width": width, "height": 840}) as watched:
            watched.settle(".items")
            cell = watched.page.locator(".matrix tbody td.cell").first
            places = cell.locator(".step").evaluate_all(
                "all => all.map(one => [one.getBoundingClientRect().top, one.getBoundingClientRect().right])"
            )
            edge = cell.evaluate("one => one.getBoundingClientRect().right")
            assert len(places) == 15 and len({top for top, _ in places}) == 1
            assert max(right for _, right in places) <= edge <= width


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
        open_first(watched)
        watched.page.emulate_media(media="print")
        for hidden in (".items .controls", ".items .keys", "#chameleon-figure-4-reuse .live"):
            assert not watched.page.locator(hidden).is_visible(), hidden
        assert watched.page.locator(".item .answer").first.is_visible()
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
        open_first(watched)
        texts: list[str] = watched.page.evaluate(
            """async () => {
                const seen = [];
                for (;;) {
                    const head = document.querySelector('.item h3');
                    seen.push(document.querySelector('.item').textContent);
                    const next = document.querySelectorAll('.moves button')[1];
                    if (next.disabled) return seen;
                    next.click();
                    while (head.isConnected) await new Promise(done => setTimeout(done));
                }
            }"""
        )
        shown = "\n".join(texts)
        assert len(texts) == len({text for text in hostile() if 0 < len(text.strip()) < 5_000})
        assert (watched.ran(), watched.complaints, watched.requests) == (None, [], [hostile_page.as_uri()])
        handlers = "all => all.flatMap(one => one.getAttributeNames()).filter(name => name.startsWith('on'))"
        assert watched.page.eval_on_selector_all("main *", handlers) == []
        made = ("script", "img", "iframe", "object", "embed", "link", "base")
        assert [tag for tag in made if watched.page.locator(f"main {tag}").count()] == []
    for text in hostile():
        if len(text) < 200 and CONTROL.search(text) is None and text.isprintable() and text.strip():
            assert text in shown, text
    assert "␛[2J␛[31mred" in shown and "[U+202E]gnp.exe" in shown and CONTROL.search(shown) is None
    assert " more characters)" in shown


def test_a_conversation_has_an_address_that_opens_it(browser: Browser, held: Held) -> None:
    with opened(browser, held.page) as watched:
        watched.settle(".items")
        watched.page.get_by_label("Search", exact=True).fill("topic-0004")
        open_first(watched)
        address = watched.page.url
    assert "item=topic-0004" in address
    with opened(browser, held.page) as watched:
        watched.page.goto(f"{address}&models=2")
        watched.page.reload()
        # At once, without scrolling there.
        watched.page.locator(".item h3").wait_for()
        assert watched.page.inner_text(".item h3") == "topic-0004"
        assert watched.page.locator(".column h5").all_inner_texts() == ["sim/wavering @ 0"]
        assert watched.page.locator(".answer").count() == 5
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
