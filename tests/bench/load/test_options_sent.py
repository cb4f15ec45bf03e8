"""What a load test was asked for is what the provider gets: its prompts, its lengths, its pace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from command_line import Done, Provider, lines_of

CommandLine = Callable[..., Done]


def keyed(folder: Path) -> None:
    """A configuration in which no key is needed."""
    (folder / "lanes.toml").write_text(
        '[lanes."here/steady"]\nrpm = 6\n[providers.here]\nkind = "openai"\nbase_url = "http://127.0.0.1:9/v1"\n'
    )


def test_prompts_of_a_file_are_sent_behind_other_letters_and_to_the_letter_if_asked(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    keyed(tmp_path)
    (tmp_path / "prompts").write_text('first of all\n{"messages": [{"role": "user", "content": "and then"}]}\n')
    words = ("load", "here/steady", "--config", "lanes.toml", "--base-url", provider.base_url, "--cache", "cache")
    rest = ("--prompts", "prompts", "--rate", "50", "--calls", "6", "--no-report", "--no-progress")
    done = cli(*words, *rest, "--out", "one")
    assert done.code == 0, done
    assert "rpm 6 that lanes.toml declares for here/steady is not kept" in done.err
    assert "2 prompts from prompts, each behind other letters" in done.err
    # No prompt came twice.
    assert sorted(provider.received().values()) == [1] * 6
    provider.reset()
    assert cli(*words, *rest, "--exact-prompts", "--whole", "--out", "two").code == 0
    assert sorted(provider.received().values()) == [3, 3]


def test_a_traces_calls_come_at_its_pace_with_its_tokens(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    keyed(tmp_path)
    (tmp_path / "trace.csv").write_text("time,input_tokens,output_tokens\n100,50,3\n101,80,1\n104,20,0\n")
    words = ("load", "here/steady", "--config", "lanes.toml", "--base-url", provider.base_url, "--cache", "cache")
    rest = ("--replay", "trace.csv", "--speed", "10", "--prompt-tokens", "trace", "--max-tokens", "trace")
    done = cli(*words, *rest, "--out", "test", "--no-report", "--no-progress", "--json")
    assert done.code == 0, done
    assert "3 time stamps from 'time', read as seconds" in done.err and "at most 3 calls over 0.4 s" in done.err
    found = sorted(lines_of(tmp_path / "test" / "calls.jsonl"), key=lambda each: float(each["due"]))
    assert [(each["input_tokens"], each["output_tokens"]) for each in found] == [(50, 3), (80, 1), (20, 1)]
    assert all(abs(each["due"] - due) < 0.05 for each, due in zip(found, (0.0, 0.1, 0.4), strict=True))
    assert json.loads(done.out) == json.loads((tmp_path / "test" / "load.json").read_text())
    again = cli(*words, *rest, "--out", "test")
    assert again.code == 2 and "test holds a load test already" in again.err and again.out == ""
    # What it wrote is a trace too.
    done = cli(*words, "--replay", "test/calls.jsonl", "--out", "again", "--no-report", "--no-progress")
    assert done.code == 0 and "3 time stamps from 'due', read as seconds" in done.err


def test_a_report_is_drawn_at_its_end_and_named(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    keyed(tmp_path)
    words = ("load", "here/steady", "--config", "lanes.toml", "--base-url", provider.base_url, "--cache", "cache")
    done = cli(*words, "--rate", "50", "--calls", "5", "--out", "test", "--no-progress")
    page = tmp_path / "test" / "report.html"
    assert done.code == 0 and done.out.endswith(f"report: {page}\n")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "report.html").write_text("mine")
    again = cli(*words, "--rate", "50", "--calls", "2", "--out", "foreign", "--no-progress")
    assert again.code == 0 and "no report was written: " in again.err
    assert (foreign / "report.html").read_text() == "mine" and (foreign / "load.json").exists()
    assert "here/steady" in page.read_text("utf-8") and any((tmp_path / "test" / "tables").iterdir())
