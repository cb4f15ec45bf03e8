"""`millstream data millstone` from saved pages, and with paraphrases that a model writes and is paid for once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Done
from paraphrasing import good_answer, writing_server

from millstream.bench.millstone.dataset import load
from millstream.fixtures import full_size

# The program's own workers, which read pages.
pytestmark = pytest.mark.process

DATA = ("data", "millstone")


def issues(count: int = 3, **changes: object) -> dict[str, dict[str, Any]]:
    return {
        f"issue-{n}": {**content, **changes} for n, (_, content) in zip(range(count), full_size.issues(), strict=False)
    }


def write(folder: Path, contents: dict[str, dict[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content), "utf-8")
    return folder


def refused(done: Done, code: int = 2) -> str:
    *_, line = done.err.splitlines()
    assert done.code == code and line.startswith("millstream: "), done
    assert "Traceback" not in done.err
    return line.removeprefix("millstream: ")


PAGE = """<html><body><div class="topic-identifier">Should {0} be free?</div>
<section class="pro"><h2>Pro 1: It helps.</h2>
<p class="topic-paragraph">Much <a href="#pcref-1-1">[1]</a>.</p></section>
<section class="con"><h2>Con 1: It costs.</h2><p class="topic-paragraph">More.</p></section>
<h2>Sources</h2><ol><li>One</li></ol></body></html>"""


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    folder = tmp_path / "pages"
    folder.mkdir()
    for name in ("ferries", "trams", "boats"):
        (folder / f"{name}.html").write_text(PAGE.format(name), "utf-8")
    return folder


def test_pages_become_a_set_that_says_what_it_lacks(cli: CommandLine, tmp_path: Path, pages: Path) -> None:
    done = cli(*DATA, "--from-pages", "pages", "--out", "bare.json")
    assert done.code == 0
    assert done.out.splitlines()[-1] == (
        "3 issues have no paraphrases, so this set can't be run yet: a model writes them with "
        "`millstream data millstone bare.json --rephrase MODEL --out FILE`"
    )
    content = json.loads((tmp_path / "bare.json").read_bytes())["issues"]["ferries"]
    assert content == {
        "question": "Should ferries be free?",
        "pros": ["It helps.\nMuch [1]."],
        "cons": ["It costs.\nMore."],
        "sources": {"[1]": "One"},
        "paraphrases": [],
    }
    run = cli("plan", "millstone", "--model", "sim/open", "--dataset", "bare.json")
    assert "paraphrases: expected 6, got none: a model writes them with `millstream data millstone" in refused(run)
    again = cli(*DATA, "bare.json", "--out", "other.json")
    assert again.code == 2 and again.out.count("expected 6, got none: a model writes them") == 3


# Paraphrases


def rephrase(cli: CommandLine, base_url: str, *arguments: str, out: str = "whole.json") -> Done:
    sending = ("--rephrase", "vllm/writer", "--base-url", base_url, "--cache", "cache", "--no-progress")
    return cli(*DATA, *arguments, "--out", out, *sending)


def test_a_model_completes_pages_at_once_or_later_and_is_paid_once(
    cli: CommandLine, tmp_path: Path, pages: Path
) -> None:
    with writing_server() as server:
        done = rephrase(cli, server.base_url, "--from-pages", "pages")
        assert done.code == 0, done
        told = "3 issues rephrased by vllm/writer, 0 failed: 3 answers, 0 of them from the cache, no price"
        assert told in done.out.splitlines()
        assert set(server.asked.values()) == {1} and len(server.asked) == 3
        assert cli(*DATA, "--from-pages", "pages", "--out", "bare.json").code == 0
        later = rephrase(cli, server.base_url, "bare.json", out="later.json")
        assert later.code == 0 and "3 answers, 3 of them from the cache" in later.out
        assert sum(server.asked.values()) == 3
    assert (tmp_path / "later.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    assert [len(issue.paraphrases) for issue in load(tmp_path / "whole.json").issues] == [6, 6, 6]
    assert cli(*DATA, "whole.json", "--out", "checked.json").code == 0
    assert (tmp_path / "checked.json").read_bytes() == (tmp_path / "whole.json").read_bytes()


def test_only_issues_without_paraphrases_are_asked_and_the_others_stay_as_they_are(
    cli: CommandLine, tmp_path: Path
) -> None:
    contents = issues(3)
    contents["issue-0"]["paraphrases"][3]["orientation"] = "con"
    contents["issue-1"] |= {"paraphrases": contents["issue-1"]["paraphrases"][:4], "question": "Should tea be free?"}
    write(tmp_path / "in", contents)
    with writing_server() as server:
        done = rephrase(cli, server.base_url, "in")
    assert done.code == 3  # the label of issue-0
    assert server.asked == {"Should tea be free?": 1}
    written = json.loads((tmp_path / "whole.json").read_bytes())["issues"]
    assert (written["issue-0"], written["issue-2"]) == (contents["issue-0"], contents["issue-2"])
    assert written["issue-1"] == {**contents["issue-1"], "paraphrases": json.loads(good_answer("Should tea be free?"))}


def test_where_every_issue_has_its_paraphrases_nobody_is_asked(cli: CommandLine, tmp_path: Path) -> None:
    write(tmp_path / "in", issues(2))
    done = rephrase(cli, "http://127.0.0.1:9/v1", "in")
    assert done.code == 0
    assert done.err == "millstream: every issue has its paraphrases: nothing was asked\n"
    assert load(tmp_path / "whole.json").digest == load(tmp_path / "in").digest


def test_nothing_is_sent_for_a_file_that_is_there(cli: CommandLine, tmp_path: Path, pages: Path) -> None:
    with writing_server() as server:
        assert rephrase(cli, server.base_url, "--from-pages", "pages").code == 0
        before = (tmp_path / "whole.json").read_bytes()
        again = rephrase(cli, server.base_url, "--from-pages", "pages")
        assert again.code == 0 and "whole.json: holds the same already" in again.out
        (pages / "kites.html").write_text(PAGE.format("kites"), "utf-8")
        said = refused(rephrase(cli, server.base_url, "--from-pages", "pages"))
        assert said.startswith("--out whole.json exists, and 1 issues would have to be asked: nothing was sent or over")
        live = refused(rephrase(cli, server.base_url, "--from-pages", "pages", "--mode", "live"))
        assert live.startswith("--out whole.json exists, and mode live would ask again")
        assert sum(server.asked.values()) == 3
    assert (tmp_path / "whole.json").read_bytes() == before


def test_money_without_a_price_is_refused_and_a_limit_holds(cli: CommandLine, tmp_path: Path, pages: Path) -> None:
    with writing_server() as server:
        limit = ("--from-pages", "pages", "--max-cost", "0.01", "--config", "prices.toml")
        (tmp_path / "prices.toml").write_text("")
        assert "has no price, so --max-cost can't be kept" in refused(rephrase(cli, server.base_url, *limit))
        (tmp_path / "prices.toml").write_text('[prices."vllm/writer"]\ninput = 1.0\noutput = 10.0\n')
        assert 'max_output under [models."vllm/writer"]' in refused(rephrase(cli, server.base_url, *limit))
        with (tmp_path / "prices.toml").open("a") as file:
            file.write('[models."vllm/writer"]\nmax_output = 10_000\n')
        done = rephrase(cli, server.base_url, *limit)
        assert done.code == 4 and sum(server.asked.values()) == 0
        assert "3 issues are pending: " in done.out and "the same command asks for the rest alone" in done.out
        assert not (tmp_path / "whole.json").exists()
        done = rephrase(cli, server.base_url, *limit, "--max-cost", "5")
        assert done.code == 0 and f"0 of them from the cache, ${3 * (900 * 1 + 400 * 10) / 1e6:,.4f}\n" in done.out
        again = rephrase(cli, server.base_url, *limit)
        assert again.code == 0 and "3 answers, 3 of them from the cache, $0.0000\n" in again.out


def test_what_was_rephrased_is_told_to_a_program(cli: CommandLine, tmp_path: Path, pages: Path) -> None:
    with writing_server(lambda question: "No." if "trams" in question else good_answer(question)) as server:
        told = json.loads(rephrase(cli, server.base_url, "--from-pages", "pages", "--json").out)
    rephrased = told["rephrased"]
    assert (told["exit_code"], told["left_out"], told["totals"]["issues"]) == (3, ["trams"], 2)
    assert (rephrased["model"], rephrased["issues"], rephrased["pending"]) == ("vllm/writer", ["boats", "ferries"], [])
    assert (list(rephrased["failed"]), rephrased["answers"], rephrased["signal"]) == (["trams"], 7, None)
    assert rephrased["cost"] is None
    assert {file["issue"]: file["state"] for file in told["files"]} == {
        "boats": "used",
        "ferries": "used",
        "trams": "left out",
    }
