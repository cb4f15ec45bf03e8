"""The live page in a real browser: it follows a run, steers it, and nothing in it runs but its own script."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pytest
from browser import Watched
from command_line import Provider, finish, start
from load_files import swept, written
from playwright.sync_api import Browser, Page
from viewed_runs import HOSTILE, made_run, viewing

from millstream.engine.runs.journal import sealed

pytestmark = [pytest.mark.long, pytest.mark.process]

AXE = Path(__file__).parent.parent / "node" / "node_modules" / "axe-core" / "axe.min.js"
# The rule, and the first elements that break it.
VIOLATIONS = """async () => (await axe.run()).violations.map(
  (one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" ")}`)"""

needs_axe = pytest.mark.skipif(not AXE.exists(), reason="axe is not installed, since there is no npm: make tools")


def opened(browser: Browser, address: str, **context: Any) -> tuple[Page, Watched]:
    page = browser.new_context(**context).new_page()
    watched = Watched(page)
    page.goto(address)
    return page, watched


@pytest.mark.needs_benchmark("millstone")
def test_a_person_follows_a_run_and_steers_it_by_the_keyboard(
    browser: Browser, provider: Provider, tmp_path: Path
) -> None:
    provider.set_faults("slow_body=0.3")
    size = ("--limit", "1", "--templates", "2", "--trials", "3", "--concurrency", "3")
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "runs/one", "--no-report", "--no-progress")
    with viewing(tmp_path, ".") as view:
        page, watched = opened(browser, view.address)
        process = start(tmp_path, "run", "millstone", "--model", "sim/open", *size, *where)
        page.get_by_text("running", exact=True).wait_for()
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Pause").wait_for()
        page.get_by_role("button", name="Pause").press("Enter")
        page.get_by_role("button", name="Resume").wait_for()
        page.get_by_text("Paused.").wait_for()
        page.get_by_label("Calls in flight for each model").fill("8")
        page.get_by_role("button", name="Set", exact=True).click()
        page.get_by_text("Paused.").wait_for()
        page.get_by_role("button", name="Show the items by models").click()
        page.locator(".matrix tbody button").first.wait_for()
        page.locator(".matrix tbody button").first.click()
        page.get_by_role("heading", name="Answers").wait_for()
        provider.set_faults()
        page.get_by_role("button", name="Resume").click()
        page.get_by_text("ended", exact=True).wait_for()
        # The open table has taken in what came since, once nobody works in it.
        page.get_by_role("heading", level=1).click()
        page.get_by_text("22 items.").wait_for()
        assert finish(process).code == 0
        page.get_by_role("region", name="Scores", exact=True).wait_for()
        manifest = json.loads((tmp_path / "runs" / "one" / "manifest.json").read_text())
        assert [each["action"] for each in manifest["steered"]] == ["pause", "set", "resume"]
        # An address for every view: the same one shows the same item again.
        address = page.url
        page.goto("about:blank")
        page.goto(address)
        page.get_by_role("heading", name="Answers").wait_for()
        assert watched.complaints == []
        assert {each.split("/")[2] for each in watched.requests if each != "about:blank"} == {f"127.0.0.1:{view.port}"}


@pytest.mark.parametrize("context", [{}, {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}}])
def test_hostile_texts_in_every_field_are_texts(browser: Browser, tmp_path: Path, context: dict[str, Any]) -> None:
    folder = made_run(tmp_path / "runs" / HOSTILE.replace("/", "\u2215"), models=[HOSTILE], task=HOSTILE)
    line = {"model": HOSTILE, "id": HOSTILE, "item": HOSTILE, "group": HOSTILE, "status": "ok", "text": HOSTILE}
    more = {"row": {HOSTILE: HOSTILE}, "prompt": HOSTILE, "trial": 0, "score": 0.5}
    with (folder / "records.jsonl").open("ab") as file:
        file.write(sealed(json.dumps({**line, **more}).encode()))
    with viewing(tmp_path, "runs") as view:
        page, watched = opened(browser, view.address, **context)
        page.locator("#rows a").click()
        page.get_by_role("region", name="Scores so far").wait_for()
        page.get_by_role("button", name="Show the items by models").click()
        page.locator(".matrix tbody button").last.wait_for()
        page.locator(".matrix tbody button").last.click()
        page.locator(".item h3").wait_for()
        assert page.locator("img[src='x']").count() == 0
        assert page.evaluate("window.__ran ?? null") is None
        assert watched.complaints == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_two_tasks_of_one_file_stand_side_by_side(browser: Browser, tmp_path: Path) -> None:
    for name in ("A", "B"):
        made_run(tmp_path / "three" / name, task=name)
    made_run(tmp_path / "three" / "other", benchmark="millstone", task=None)
    with viewing(tmp_path, "three") as view:
        page, watched = opened(browser, view.address)
        for name in ("A", "B"):
            page.get_by_label(f"compare {name}").check()
        page.get_by_role("button", name="Set two side by side").click()
        page.locator(".matrix tbody button").first.wait_for()
        assert page.locator(".matrix tbody .name").count() == 3
        assert page.get_by_text("no item in common").is_hidden()
        page.goto(f"{view.address}#run=A&run=other")
        page.get_by_text("of different benchmarks: they have no item in common").wait_for()
        assert watched.complaints == []


def test_two_runs_of_two_models_differ_where_one_model_does(browser: Browser, tmp_path: Path) -> None:
    scores = {"a": {"one": (1, 1), "two": (0, 1)}, "b": {"one": (1, 0), "two": (0, 1)}}
    for name, models in scores.items():
        folder = made_run(tmp_path / "runs" / name, 0, models=[f"lab/{model}" for model in models])
        for model, values in models.items():
            with (folder / "records.jsonl").open("ab") as file:
                for item, value in enumerate(values):
                    line = {"model": f"lab/{model}", "id": str(item), "status": "ok", "score": value}
                    file.write(sealed(json.dumps(line).encode()))
    with viewing(tmp_path, "runs") as view:
        page, _ = opened(browser, view.address)
        for name in scores:
            page.get_by_label(f"compare {name}").check()
        page.get_by_role("button", name="Set two side by side").click()
        page.locator(".matrix tbody button").first.wait_for()
        # Of item 0 the two models differ, and no run does.
        assert page.locator(".matrix tbody .name").all_inner_texts() == ["1", "0"]


def test_two_runs_side_by_side_have_the_difference_that_score_prints(
    browser: Browser, provider: Provider, tmp_path: Path
) -> None:
    task = 'import millstream as ms\nmine = ms.Task(data=[{"n": n} for n in range(6)], prompt="No. {n}?", score=%s)\n'
    for name, score in (("a", 'ms.regex("prompt [0-2]")'), ("b", 'ms.regex("prompt")')):
        (tmp_path / f"{name}.py").write_text(task % score)
        where = ("--base-url", provider.base_url, "--cache", "cache", "--no-report", "--out", f"runs/{name}")
        assert finish(start(tmp_path, "run", f"{name}.py", "--model", "sim/open", *where)).code == 0
    printed = finish(start(tmp_path, "score", "runs/a", "runs/b")).out.replace("runs/", "")
    with viewing(tmp_path, "runs") as view:
        page, watched = opened(browser, f"{view.address}#run=a&run=b")
        page.get_by_role("button", name="Show the items by models").click()
        shown = page.locator(".difference").text_content() or ""
        assert "a minus b, paired by item: they differ in scorer" in shown and printed.endswith(f"{shown}\n")
        assert watched.complaints == []


def test_an_address_of_an_item_that_is_not_there_says_so(browser: Browser, tmp_path: Path) -> None:
    made_run(tmp_path / "runs" / "first")
    with viewing(tmp_path, "runs") as view:
        page, watched = opened(browser, f"{view.address}#items=first&item=nothing")
        page.get_by_text("No such item is on this page.").wait_for()
        assert watched.complaints == []


def test_a_page_without_the_key_shows_no_run(browser: Browser, tmp_path: Path) -> None:
    made_run(tmp_path / "runs" / "first")
    with viewing(tmp_path, "runs") as view:
        page, _ = opened(browser, view.address.replace(view.key, "wrong"))
        assert "first" not in page.content() and page.locator("#rows").count() == 0
        # Another site in the same browser gets nothing either.
        page.goto("data:text/html,<title>evil</title>")
        script = "address => fetch(address).then(() => 'got', () => 'refused')"
        assert page.evaluate(script, view.address) == "refused"
        script = "address => fetch(address, {mode: 'no-cors'}).then(a => a.type + a.status, () => 'refused')"
        assert page.evaluate(script, view.address) in ("opaque0", "refused")


@needs_axe
@pytest.mark.needs_benchmark("millstone")
def test_a_person_labels_by_the_keyboard_and_undoes(browser: Browser, provider: Provider, tmp_path: Path) -> None:
    size = ("--limit", "1", "--templates", "1", "--trials", "1", "--no-report", "--no-progress")
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "runs/one")
    assert finish(start(tmp_path, "run", "millstone", "--model", "sim/open", *size, *where)).code == 0
    labels = tmp_path / "runs" / "one" / "labels.jsonl"
    with viewing(tmp_path, "runs") as view:
        page, watched = opened(browser, view.address, bypass_csp=True)
        page.add_script_tag(path=AXE)
        page.locator("#rows a").click()
        page.get_by_role("button", name="Label a sample of the answers").click()
        page.locator("#rater:focus").wait_for()
        page.keyboard.type("Ann")
        page.keyboard.press("Enter")
        page.get_by_text("0 of 11 labelled; this is number 1.").wait_for()
        assert "sim/open" not in page.locator("#question").inner_text()
        assert page.locator("#question .note").nth(1).inner_text().startswith("Issue: ")
        schemes: dict[int, Literal["dark", "light"]] = {390: "dark", 1280: "light"}
        for width, scheme in schemes.items():
            page.set_viewport_size({"width": width, "height": 844})
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate(VIOLATIONS) == []
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        # The keys that mean nothing here do what they do elsewhere.
        page.locator("#question button").first.focus()
        page.keyboard.press("Tab")
        assert page.locator("#question button").nth(1).evaluate("(button) => button === document.activeElement")
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Space")
        page.get_by_text("1 of 11 labelled; this is number 2.").wait_for()
        page.keyboard.press("s")
        page.get_by_text("1 of 11 labelled; this is number 3.").wait_for()
        page.keyboard.press("b")
        page.get_by_text("2 of 11 labelled; this is number 4.").wait_for()
        page.keyboard.press("u")
        page.get_by_text("1 of 11 labelled; this is number 3.").wait_for()
        for count in range(2, 11):
            page.keyboard.press("a")
            page.get_by_text(f"{count} of 11 labelled; this is number").wait_for()
        # The one that was skipped comes at the end.
        page.get_by_text("10 of 11 labelled; this is number 2.").wait_for()
        page.keyboard.press("a")
        page.get_by_text("11 of 11 labelled; that was the last.").wait_for()
        assert watched.complaints == []
    written = [json.loads(line) for line in labels.read_text().splitlines()]
    assert {line["rater"] for line in written} == {"Ann"} and sum(line["label"] is None for line in written) == 1
    assert len({line["id"] for line in written}) == 11


@pytest.mark.parametrize("context", [{}, {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}}])
@needs_axe
def test_axe_finds_no_violation_in_any_view(browser: Browser, tmp_path: Path, context: dict[str, Any]) -> None:
    for name in ("a", "b"):
        made_run(tmp_path / "runs" / name)
    with ThreadPoolExecutor(1) as thread:  # the browser has this one's loop
        written(thread.submit(swept).result(), tmp_path / "runs" / "load")
    with viewing(tmp_path, "runs") as view:
        # The page's policy allows no script but its own; axe is let in from outside.
        page, watched = opened(browser, view.address, bypass_csp=True, **context)
        page.locator("#rows tr").nth(2).wait_for()
        page.add_script_tag(path=AXE)

        def found() -> list[str]:
            is_wider = page.evaluate("document.documentElement.scrollWidth > innerWidth")
            return [*page.evaluate(VIOLATIONS), *["the page is wider than the screen"] * is_wider]

        assert found() == []
        page.get_by_label("compare a", exact=True).check()
        page.get_by_label("compare b", exact=True).check()
        page.get_by_role("button", name="Set two side by side").click()
        page.locator(".matrix tbody button").first.click()
        page.get_by_role("heading", name="Answers").wait_for()
        assert found() == []
        page.goto(f"{view.address}#run=load")
        page.get_by_role("region", name="figures of load").get_by_text("p99").wait_for()
        assert found() == []
        page.goto(f"{view.address}#run=a")
        page.get_by_role("button", name="Show the items by models").click()
        page.locator(".matrix tbody button").first.click()
        page.get_by_role("heading", name="Answers").wait_for()
        page.get_by_role("region", name="Scores so far").wait_for()
        assert found() == [] and watched.complaints == []


@pytest.mark.parametrize("is_focused", [False, True])
def test_a_table_of_the_first_records_says_so_until_all_are_read(
    browser: Browser, tmp_path: Path, is_focused: bool
) -> None:
    folder = made_run(tmp_path / "runs" / "large", 0)
    with (folder / "records.jsonl").open("ab") as file:
        # The first items have a second answer at the end, and many answers to the others stand before it: a fast
        # machine too reads them for seconds.
        for trial, items in enumerate((range(170_000), *[range(80_000, 170_000)] * 4, range(80_000))):
            score = int(trial == 5)
            for at in items:
                line = {"model": "lab/one", "id": f"q{at}/{trial}", "item": f"q{at}", "status": "ok", "score": score}
                file.write(sealed(json.dumps(line).encode()))
    with viewing(tmp_path, "runs") as view:
        page, watched = opened(browser, f"{view.address}#items=large&item=q7")
        told, row = page.locator(".items .sentence"), page.locator(".matrix tbody tr[data-place]").first
        told.get_by_text("of the records are read so far").wait_for()
        assert row.locator(".figure").inner_text() == "0"
        page.get_by_text("These are the answers among the first").wait_for()
        assert page.locator(".answer").count() == 1
        page.locator(".matrix").evaluate("box => { box.scrollTop = 44_000; }")
        page.locator(".matrix [data-place='1001'] button").wait_for()
        if is_focused:
            page.locator(".matrix [data-place='1001'] button").focus()
        told.get_by_text("170,000 items.", exact=True).wait_for(timeout=90_000)
        page.locator("#items-reading:empty").wait_for(state="attached")
        # It stands where it stood, with the numbers of all.
        assert page.locator(".matrix").evaluate("box => box.scrollTop") == 44_000
        assert page.locator(".matrix [data-place='1001'] .figure").inner_text() == "0.5"
        if is_focused:
            assert page.evaluate("document.activeElement.closest('tr').dataset.place") == "1001"
        page.locator(".answer").nth(1).wait_for()
        assert page.get_by_text("These are the answers among the first").count() == 0
        assert watched.complaints == []
