"""The live page's server: who gets nothing, what it says of runs while they go on, and that it steers them."""

from __future__ import annotations

import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from command_line import Provider, finish, start
from load_files import swept
from packed_items import whole_columns
from viewed_runs import HOSTILE, made_run, record, until, viewing

from millstream.bench.evaluation.page.kept_items import LINES_LEAST
from millstream.bench.load.summary import tell
from millstream.engine.folder_file import write_whole
from millstream.engine.runs.journal import sealed
from millstream.engine.runs.run_folder import RunFolder
from millstream.interfaces.view.folders import RunFolders
from millstream.interfaces.view.items import ItemTables
from millstream.interfaces.view.scores import RunScores

PROMPTS = 2 * 11 * 3


def test_nobody_without_the_key_from_another_origin_or_under_another_name_gets_anything(tmp_path: Path) -> None:
    made_run(tmp_path / "runs" / "first")
    with viewing(tmp_path, "runs") as view:
        own = f"127.0.0.1:{view.port}"
        refused = (
            {"Authorization": ""},
            {"Authorization": "Bearer wrong"},
            {"Authorization": f"Bearer {view.key}x"},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": f"http://127.0.0.1:{view.port + 1}"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {"Host": f"evil.example:{view.port}"},
            {"Host": f"127.0.0.1.evil.example:{view.port}"},
            {"Host": "localhost:1"},
        )
        order: Any = {"run": "first", "action": "stop"}
        for headers, (path, body) in product(refused, (("/", None), ("/runs", None), ("/steer", order))):
            status, data, answered = view.ask(path, body, **headers)
            assert (status in (401, 403), data) == (True, b""), (headers, path)
            assert "access-control-allow-origin" not in answered
        allowed: tuple[dict[str, str], ...] = ({}, {"Origin": f"http://{own}", "Sec-Fetch-Site": "same-origin"})
        for headers in allowed:
            assert view.ask("/runs", **headers)[0] == 200
        # A form of another page can send no JSON.
        assert view.ask("/steer", {"run": "first"}, **{"Content-Type": "text/plain"})[0] == 415


def test_the_page_loads_nothing_runs_its_own_script_alone_and_holds_no_data(tmp_path: Path) -> None:
    made_run(tmp_path / "runs" / "first")
    with viewing(tmp_path, "runs") as view:
        status, body, headers = view.ask("/")
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert status == 200 and b"lab/one" not in body and view.key.encode() not in body
        assert policy["default-src"] == policy["form-action"] == policy["base-uri"] == "'none'"
        assert policy["script-src"].startswith("'sha256-") and policy["connect-src"] == "'self'"
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
        # Of its own script and style alone.
        assert len(body) < 150_000 and body.count(b"<script>") == 3 and b" src=" not in body


def test_no_path_leads_out_of_the_named_folders(tmp_path: Path) -> None:
    made_run(tmp_path / "runs" / "first")
    made_run(tmp_path / "other")
    with viewing(tmp_path, "runs") as view:
        for name in ("../other", str(tmp_path / "other"), "first/../../other", "", "first\0"):
            assert view.ask(f"/scores?{urlencode({'run': name})}")[0] == 404
            assert view.ask("/steer", {"run": name, "action": "stop"})[0] == 404
        for path in ("/etc/passwd", "/../other", "/runs/", "/favicon.ico"):
            assert view.ask(path)[0] == 404
        bodies: tuple[Any, ...] = ([], "x", {"run": 3}, {"action": "stop"})
        for body in bodies:
            assert view.ask("/steer", body)[0] in (400, 404)


def test_names_and_texts_from_outside_come_as_they_are_in_json(tmp_path: Path) -> None:
    made_run(tmp_path / "runs" / "<b>bold", models=[HOSTILE])
    with viewing(tmp_path, "runs") as view:
        assert view.row("<b>bold")["models"] == [HOSTILE]


@pytest.mark.needs_benchmark("millstone")
def test_a_run_is_followed_steered_and_its_scores_come(provider: Provider, tmp_path: Path) -> None:
    provider.set_faults("slow_body=0.5")
    size = ("--limit", "1", "--templates", "2", "--trials", "3", "--concurrency", "3")
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "runs/one", "--no-report", "--no-progress")
    with viewing(tmp_path, ".") as view:
        process = start(tmp_path, "run", "millstone", "--model", "sim/open", *size, *where)
        row = until(lambda: next((row for row in view.get("/runs") if row["state"] == "running"), None))
        assert (row["name"], row["kind"], row["total"]) == ("runs/one", "run", PROMPTS)
        first = until(lambda: view.get("/scores", run="runs/one")["rows"])
        assert first[0][0] == "sim/open" and not view.get("/scores", run="runs/one")["is_final"]
        status, body, _ = view.ask("/steer", {"run": "runs/one", "action": "pause"})
        assert (status, json.loads(body)["state"]) == (200, "paused")
        until(lambda: view.row("runs/one")["state"] == "paused")
        status, body, _ = view.ask("/steer", {"run": "runs/one", "action": "set", "max_cost": 3})
        assert status == 409 and "began without --max-cost" in json.loads(body)["error"]
        provider.set_faults()
        assert view.ask("/steer", {"run": "runs/one", "action": "resume"})[0] == 200
        assert finish(process).code == 0
        row = until(lambda: (row := view.row("runs/one"))["state"] == "ended" and row)
        assert row["done"] == PROMPTS
        assert view.get("/scores", run="runs/one")["is_final"]
        assert view.ask("/steer", {"run": "runs/one", "action": "pause"})[0] == 409


def test_a_folder_of_somebody_else_is_an_error_and_ends_nothing(tmp_path: Path) -> None:
    made_run(tmp_path / "runs" / "odd")
    with viewing(tmp_path, "runs") as view:
        status, body, _ = view.ask("/question?run=odd&rater=ann")
        assert status == 409 and "none of ours" in json.loads(body)["error"]
        assert view.row("odd")["state"] == "begun"


def test_a_folder_that_is_removed_while_it_is_shown_is_no_defect(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "runs" / "gone", 3)
    with viewing(tmp_path, "runs") as view:
        assert view.get("/columns", run="gone")
        shutil.rmtree(folder)
        for path in ("/columns", "/details"):
            status, body, _ = view.ask(f"{path}?run=gone&item=x")
            assert status == 409 and "No such file" in json.loads(body)["error"], body


def test_records_are_read_on_and_not_again(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", 3)
    scores, path = RunScores(folder), folder / "records.jsonl"
    assert scores.look()["rows"] == [["lab/one", "3", "0", "1.000"]]
    # What was read before is read no more: it could not be.
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.write(b"x" * (size - 1))
        file.seek(size)
        file.write(sealed(record(3, 0.0)) + sealed(record(4, 0.0))[:-5])
    assert scores.look()["rows"] == [["lab/one", "4", "0", "0.750"]]
    with path.open("ab") as file:
        file.write(sealed(record(4, 0.0))[-5:])
    assert scores.look()["rows"] == [["lab/one", "5", "0", "0.600"]]
    path.write_bytes(sealed(record(0, 0.5)))
    assert scores.look()["rows"] == [["lab/one", "1", "0", "0.500"]]
    # As `rescore` does of a run that is then resumed.
    write_whole(path, (sealed(record(number, 0.25)) for number in range(3)))
    assert scores.look()["rows"] == [["lab/one", "3", "0", "0.250"]]


def test_folders_that_are_none_broken_ones_and_load_tests_have_a_row_each(tmp_path: Path) -> None:
    made_run(tmp_path / "good")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_text("{")
    odd = {"format": 1, "specification": {"benchmark": "task"}, "counts": [3], "ended": "now"}
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "manifest.json").write_text(json.dumps(odd))
    (tmp_path / "load").mkdir()
    (tmp_path / "load" / "load.json").write_bytes(msgspec.json.encode(swept()))
    (tmp_path / "load" / "report.html").write_text("")
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "load.json").write_text('{"models": ')
    (tmp_path / "empty" / "deep").mkdir(parents=True)
    rows = {row["name"]: row for row in RunFolders([tmp_path]).rows()}
    assert {name: (row["kind"], row["state"]) for name, row in rows.items()} == {
        "good": ("run", "begun"),
        "broken": ("run", "unreadable"),
        "odd": ("run", "unreadable"),
        "load": ("load", "ended"),
        "torn": ("load", "unreadable"),
    }
    assert rows["load"]["models"] == ["sim/steady"] and "broken" in rows["broken"]["line"]
    # What the terminal said at the end of the load test.
    assert rows["load"]["figures"] == tell(swept()) and "p99" in rows["load"]["figures"]
    assert rows["load"]["report"] == str(tmp_path / "load" / "report.html")


def test_folders_of_the_same_name_and_odd_manifests_hide_no_run(tmp_path: Path) -> None:
    roots = [tmp_path / "a" / "runs", tmp_path / "b" / "runs"]
    for root in roots:
        made_run(root / "first")
    (roots[0] / "odd").mkdir()
    (roots[0] / "odd" / "manifest.json").write_text(
        '{"format": 1, "specification": {"benchmark": "task"}, "started": 5}'
    )
    folders = RunFolders(roots)
    assert {row["name"] for row in folders.rows()} == {"a/runs/first", "a/runs/odd", "b/runs/first"}
    assert folders.path_of("b/runs/first") == roots[1] / "first"
    both = [root / "first" for root in roots]
    assert {row["name"] for row in RunFolders(both).rows()} == {"a/runs/first", "b/runs/first"}


@pytest.mark.needs_benchmark("millstone")
def test_all_views_of_a_run_may_be_asked_for_at_once(provider: Provider, tmp_path: Path) -> None:
    size = ("--limit", "1", "--templates", "1", "--trials", "1", "--no-report", "--no-progress")
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "runs/one")
    assert finish(start(tmp_path, "run", "millstone", "--model", "sim/open", *size, *where)).code == 0
    asked = ("/details?run=one&item=", "/scores?run=one", "/question?run=one&rater=Ann", "/columns?run=one", "/runs")
    with viewing(tmp_path, "runs") as view, ThreadPoolExecutor(len(asked)) as threads:
        view.ask("/runs")
        assert [status for status, _, _ in threads.map(view.ask, asked)] == [200] * len(asked)


def test_final_scores_are_those_of_the_models_that_answered(tmp_path: Path) -> None:
    folder = made_run(tmp_path, 0, models=["openai/gpt-6-luna"])
    with RunFolder(folder, json.loads((folder / "manifest.json").read_text())["specification"]) as run:
        counts = [{"model": "openai/gpt-6-luna", "temperature": None, "ok": 2, "served": {"gpt-6.2-sol": 2}}]
        run.write_manifest(ended="now", counts=counts, answers_as={"openai/gpt-6-luna": "openai/gpt-6-luna"})
    entry = {"mean": 0.5, "ci95": [None, None], "ci95_note": "few", "items": 2, "items_scored": 2, "answers": 2}
    scores = {"t": {"models": {"openai/gpt-6-luna (gpt-6.2-sol)": {**entry, "answers_without_score": 0}}}}
    (folder / "scores.json").write_text(json.dumps(scores))
    [row] = RunScores(folder).look()["rows"]
    assert row[:2] == ["openai/gpt-6-luna (gpt-6.2-sol)", "0.500"]


def test_items_are_read_on_and_are_those_of_the_report(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", 3)
    tables, path = ItemTables(tmp_path / "cache"), folder / "records.jsonl"
    assert whole_columns(tables.columns({"run": folder}))["items"] == ["0", "1", "2"]
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.write(b"x" * (size - 1))
        file.seek(size)
        file.write(sealed(record(3, 0.25)))
    columns = whole_columns(tables.columns({"run": folder}))
    assert columns["items"] == ["0", "1", "2", "3"] and columns["cells"]["score"] == [[1.0, 1.0, 1.0, 0.25]]
    details = tables.details({"run": folder}, "3")
    assert details is not None and details["models"][0]["answers"][0]["score"] == 0.25
    assert tables.details({"run": folder}, "nothing") is None


def test_another_server_need_not_read_a_large_run_again(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", LINES_LEAST)
    tables, took_s = [ItemTables(tmp_path / "cache", 60.0) for _ in range(2)], []
    for each in tables:
        began = time.process_time()
        each.details({"run": folder}, "nothing")
        took_s.append(time.process_time() - began)
    assert took_s[1] < 0.7 * took_s[0]
    # What is read of the first lines by now is what they are.
    size, mark = (path := folder / "records.jsonl").stat().st_size, json.loads(path.read_bytes().split(b"\n")[0])
    path.write_bytes(path.read_bytes().replace(b'"score": 1.0', b'"score": 0.5'))
    assert mark["score"] == 1.0 and path.stat().st_size == size
    assert set(whole_columns(ItemTables(tmp_path / "cache", 60.0).columns({"run": folder}))["cells"]["score"][0]) == {
        0.5
    }


def test_a_request_reads_for_a_short_time_and_says_which_share_its_table_is_of(tmp_path: Path) -> None:
    run = {"run": made_run(tmp_path / "run", 2_000)}
    tables, whole = (
        ItemTables(tmp_path / "cache", 0.0),
        whole_columns(ItemTables(tmp_path / "cache", 60.0).columns(run)),
    )
    first = whole_columns(tables.columns(run))
    assert 0 < len(first["items"]) < 500 and 0 < first["share"] < 0.3
    assert tables.details(run, "1999") is None
    opened = tables.details(run, "0")
    assert opened is not None and opened["share"] < 1
    shares = [tables.share(run)]
    while shares[-1] < 1:
        shares.append(tables.share(run))
    assert shares == sorted(set(shares)) and len(shares) > 2
    assert whole_columns(tables.columns(run)) == whole and whole["share"] == 1


def test_of_many_records_the_scores_of_the_first_stand_there_with_their_share(tmp_path: Path) -> None:
    scores = RunScores(made_run(tmp_path / "run", 2_000), 0.0)
    looks = [scores.look()]
    while looks[-1]["share"] < 1:
        looks.append(scores.look())
    answers = [int(look["rows"][0][1].replace(",", "")) for look in looks]
    assert answers == sorted(set(answers)) and len(answers) > 4 and answers[-1] == 2_000
    assert looks[0]["share"] == pytest.approx(answers[0] / 2_000, abs=0.01)


def test_items_that_were_read_while_a_run_went_on_get_the_names_of_those_that_answered(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", 0, models=["openai/gpt-6-luna"])
    line = {"model": "openai/gpt-6-luna", "id": "q/0", "item": "q", "status": "ok", "served": "gpt-6.2-sol"}
    tables, names = ItemTables(tmp_path / "cache"), []
    with RunFolder(folder, json.loads((folder / "manifest.json").read_text())["specification"]) as run:
        run.records.append(json.dumps(line).encode())
        names.append(whole_columns(tables.columns({"run": folder}))["models"][0]["name"])
        counts = [{"model": "openai/gpt-6-luna", "temperature": None, "ok": 1, "served": {"gpt-6.2-sol": 1}}]
        run.write_manifest(ended="now", counts=counts, answers_as={"openai/gpt-6-luna": "openai/gpt-6-luna"})
    names.append(whole_columns(tables.columns({"run": folder}))["models"][0]["name"])
    assert names == ["openai/gpt-6-luna", "openai/gpt-6-luna (gpt-6.2-sol)"]


def test_records_that_were_replaced_are_read_anew(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", 2)
    tables, path = ItemTables(tmp_path / "cache"), folder / "records.jsonl"
    assert whole_columns(tables.columns({"run": folder}))["cells"]["score"] == [[1.0, 1.0]]
    write_whole(path, path.read_bytes().replace(b'"score": 1.0', b'"score": 0.5'))
    assert whole_columns(tables.columns({"run": folder}))["cells"]["score"] == [[0.5, 0.5]]


def test_two_runs_stand_side_by_side(tmp_path: Path) -> None:
    runs = {name: made_run(tmp_path / name, 2) for name in ("a", "b")}
    with (runs["b"] / "records.jsonl").open("ab") as file:
        file.write(sealed(record(2, 0.0)))
    columns = whole_columns(ItemTables(tmp_path / "cache").columns(runs))
    assert [model["name"] for model in columns["models"]] == ["a: lab/one", "b: lab/one"]
    assert columns["cells"]["answers"] == [[1, 1, 0], [1, 1, 1]]


def test_runs_without_a_common_item_say_so(tmp_path: Path) -> None:
    runs = {name: made_run(tmp_path / name, 0) for name in ("a", "b")}
    for at, folder in enumerate(runs.values()):
        assert whole_columns(ItemTables(tmp_path / "cache").columns(runs))["notes"] == []
        (folder / "records.jsonl").write_bytes(sealed(record(at)))
    [note] = whole_columns(ItemTables(tmp_path / "cache").columns(runs))["notes"]
    assert "no item in common" in note


def test_two_tasks_of_one_file_have_the_same_items_under_other_names(tmp_path: Path) -> None:
    for name in ("a", "b"):
        made_run(tmp_path / "two" / name, task=name)
    made_run(tmp_path / "two" / "other", benchmark="millstone", task=None)
    rows = {row["name"]: (row["benchmark"], row["items_of"]) for row in RunFolders([tmp_path / "two"]).rows()}
    assert rows == {"a": ("a", "task"), "b": ("b", "task"), "other": ("millstone", "millstone")}
