"""Whatever stands in answers, names and arguments runs nothing and breaks nothing: not the page, not a table, not a
terminal."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from answered_run import answered_run
from browser import opened
from command_line import Done, run_command
from hostile import as_issue, hostile
from playwright.sync_api import Browser

TEXTS = hostile()
# The longest would fill the disk as names: a name stands in thousands of cells.
NAMES = [text for text in TEXTS if len(text) < 5_000]
CONFIGS = ("baseline", "one-sided-pro", "one-sided-con", "clear-pro-1", "clear-con-1", "balanced-1")
FORMULA = re.compile(r"[=+\-@\t\r＝＋－＠]")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

# Every mark of every figure is pointed at, so that its tooltip is made.
POINT_AT_ALL = """() => {
    const marks = [...document.querySelectorAll('.live [class*=mark-] path, .live [class*=mark-] text')];
    for (const mark of marks) {
        const box = mark.getBoundingClientRect();
        const place = {bubbles: true, clientX: box.x, clientY: box.y};
        for (const kind of ['pointerover', 'mouseover', 'pointermove', 'mousemove'])
            mark.dispatchEvent(new MouseEvent(kind, place));
    }
    return marks.length;
}"""


def issue_file(arguments: list[str]) -> str:
    """An issue in the released shape, made of hostile texts alone."""
    paraphrases = [
        {"question": f"{text} A or B?", "orientation": side}
        for text, side in zip(NAMES[:6], ["pro", "pro", "pro", "con", "con", "con"], strict=True)
    ]
    half = len(arguments) // 2
    sources = {f"[{number}]": text for number, text in enumerate(NAMES[:30], 1)}
    cited = [f"{text} [{number % 30 + 1}]" for number, text in enumerate(arguments)]
    return json.dumps(
        {
            "question": NAMES[1],
            "pros": cited[:half],
            "cons": cited[half:],
            "sources": sources,
            "paraphrases": paraphrases,
        }
    )


def other_records() -> Iterator[dict[str, Any]]:
    """Records of another program: every text is an issue's name, an argument's, an answer; a few are models'."""
    texts, names = cycle(TEXTS), cycle(NAMES)
    for model in NAMES[:2]:
        for issue in NAMES:
            for config in CONFIGS:
                text = next(texts)
                yield {
                    "id": f"{issue}/1/{config}/0",
                    "issue": issue,
                    "template": 1,
                    "config": config,
                    "trial": 0,
                    "orientation": "pro",
                    "arguments": [] if config == "baseline" else [next(names), next(names)],
                    # Long ones once or twice each are enough.
                    "text": text if model == NAMES[0] else text[:2_000],
                    "stance": ("pro", "con", "other")[len(text) % 3],
                    "model": model,
                    "temperature": None,
                    "status": "ok",
                }


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A report of both kinds of records, and what the command said."""
    home = tmp_path_factory.mktemp("hostile")
    data = home / "data"
    data.mkdir()
    for number, part in enumerate((NAMES, TEXTS[:65])):
        (data / f"{as_issue(TEXTS[number + 7])}.json").write_text(issue_file(part), "utf-8")
    texts = cycle(TEXTS)
    answered_run(home / "own", lambda item: next(texts), (f"=a/{NAMES[2]}", f"@a/{NAMES[42]}"), data)
    (home / "other").mkdir()
    lines = (json.dumps(record, ensure_ascii=False) for record in other_records())
    (home / "other" / "records.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return home, run_command(home, "report", "own", "other")


def test_the_command_ends_as_it_should_and_sends_nothing_to_the_terminal(told: tuple[Path, Done]) -> None:
    _, done = told
    # The hostile issue has no score, and nothing else was asked.
    assert done.code == 3 and "has no score" in done.out, done.err
    assert CONTROL.search(done.out + done.err) is None


def test_nothing_runs_and_nothing_is_asked_for(browser: Browser, told: tuple[Path, Done]) -> None:
    page = told[0] / "report.html"
    with opened(browser, page) as watched:
        watched.settle()
        for details in watched.page.locator("main details summary").all():
            details.click()
        assert watched.page.evaluate(POINT_AT_ALL) > 50
        assert watched.page.locator("#vg-tooltip-element td").count()
        # Vega puts an empty form under a chart, where its own controls would stand.
        ours = ":not(.vega-bindings, .controls, .controls *)"
        made = [f"form{ours}", f"input{ours}", *("script", "img", "iframe", "object", "embed", "link", "base")]
        assert [tag for tag in made if watched.page.locator(f"main {tag}").count()] == []
        handlers = "all => all.flatMap(one => one.getAttributeNames()).filter(name => name.startsWith('on'))"
        assert watched.page.eval_on_selector_all("main *", handlers) == []
        assert (watched.ran(), watched.complaints, watched.requests) == (None, [], [page.as_uri()])
        assert watched.page.url == page.as_uri()


def test_every_table_can_be_read_and_holds_no_formula(told: tuple[Path, Done]) -> None:
    csv.field_size_limit(10_000_000)
    files = sorted((told[0] / "tables").glob("*.csv"))
    assert len(files) > 20
    for file in files:
        text = file.read_text("utf-8")
        header, *rows = csv.reader(text.splitlines(keepends=True), strict=True)
        assert [row for row in rows if len(row) != len(header)] == [], file.name
        for cell in {cell for row in rows for cell in row}:
            assert CONTROL.search(cell) is None
            assert not FORMULA.match(cell) or is_number(cell), (file.name, cell[:80])


def is_number(text: str) -> bool:
    return re.fullmatch(r"-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?", text) is not None
