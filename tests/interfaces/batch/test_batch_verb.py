"""`millstream batch`: a file of requests in, a file of answers out, over real HTTP."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from batches import ids_of, line, request, rows_of, text_of, write_mixed, write_sound
from command_line import COMMAND, CommandLine, Provider, environment, lines_of, run_command, start
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

LINES = 2_000


def batch(provider: Provider, *more: str, out: str = "out.jsonl") -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress")
    return ("batch", "in.jsonl", out, *where, *more)


def test_every_line_gets_a_row_and_each_broken_one_its_number_and_code(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    codes = write_mixed(tmp_path / "in.jsonl", LINES)
    done = cli(*batch(provider))
    assert done.code == 3, done.err
    rows = rows_of(tmp_path / "out.jsonl")
    assert len(rows) == LINES == len({row["id"] for row in rows})
    assert {row["error"]["line"]: row["error"]["code"] for row in rows if row["error"]} == codes
    assert all(row["error"]["message"].startswith(f"line {row['error']['line']}: ") for row in rows if row["error"])
    sound = [row for row in rows if row["response"]]
    assert len(sound) == LINES - len(codes) == provider.calls()
    assert {row["response"]["status_code"] for row in sound} == {200}
    assert len({row["custom_id"] for row in sound}) == len(sound)
    assert "1,900 answers, 100 failed" in done.out and "correct them in a file of their own" in done.out


def test_a_row_has_the_shape_that_the_official_types_know(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    responses = {"model": "sim/steady", "input": "And this: A or B?"}
    other = {"custom_id": "b", "method": "POST", "url": "/v1/responses", "body": responses}
    (tmp_path / "in.jsonl").write_bytes(line("a", "Which one: A or B?") + json.dumps(other).encode() + b"\n")
    assert cli(*batch(provider)).code == 0
    rows = {row["custom_id"]: row for row in rows_of(tmp_path / "out.jsonl")}
    assert set(rows["a"]) == {"id", "custom_id", "response", "error"}
    assert set(rows["a"]["response"]) == {"status_code", "request_id", "body"}
    chat = ChatCompletion.model_validate(rows["a"]["response"]["body"], strict=True)
    assert chat.model == "steady" and chat.choices[0].message.content
    assert Response.model_validate(rows["b"]["response"]["body"]).output_text


def test_what_a_provider_refuses_is_a_row_with_its_status_and_body(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    write_sound(tmp_path / "in.jsonl", 5)
    provider.set_faults("rejected=422,at=3-3")
    done = cli(*batch(provider, "--concurrency", "1"))
    assert done.code == 3 and "to ask rejected again: the same command with --retry" in done.out
    (row,) = [row for row in rows_of(tmp_path / "out.jsonl") if row["response"]["status_code"] != 200]
    assert (row["custom_id"], row["response"]["status_code"], row["error"]) == ("r3", 422, None)
    assert row["response"]["body"]["error"]["message"].startswith("rejected: ")


def test_errors_go_into_a_file_of_their_own_on_request(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    codes = write_mixed(tmp_path / "in.jsonl", 100)
    assert cli(*batch(provider, "--errors", "errors.jsonl")).code == 3
    assert all(row["error"] is None for row in rows_of(tmp_path / "out.jsonl"))
    assert {row["error"]["line"] for row in rows_of(tmp_path / "errors.jsonl")} == set(codes)
    # The same again knows both.
    done = cli(*batch(provider, "--errors", "errors.jsonl"))
    assert (done.code, "nothing was sent" in done.out) == (3, True)
    other = cli(*batch(provider))
    assert other.code == 2 and "errors: errors.jsonl in that run, none in this" in other.err


def test_lines_that_ask_the_same_get_a_sample_each_and_one_between_them_on_request(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "in.jsonl").write_bytes(
        b"".join(line(f"r{n}", "The same: A or B?", model="sim/open") for n in range(6))
    )
    assert cli(*batch(provider)).code == 0
    assert provider.calls() == 6
    trials = [note.get("trial", 0) for note in lines_of(tmp_path / "out.jsonl.millstream/records.jsonl")]
    assert sorted(trials) == list(range(6))
    # Another file that asks it again meets the same samples.
    assert cli(*batch(provider, out="again.jsonl")).code == 0
    assert provider.calls() == 6
    answers = [
        {row["custom_id"]: text_of(row) for row in rows_of(tmp_path / name)} for name in ("out.jsonl", "again.jsonl")
    ]
    assert answers[0] == answers[1]
    assert cli(*batch(provider, "--repeats", "same", "--mode", "live", out="same.jsonl")).code == 0
    assert provider.calls() == 7
    assert len({text_of(row) for row in rows_of(tmp_path / "same.jsonl")}) == 1


def test_several_samples_of_one_line_are_one_row_and_take_a_number_each(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "in.jsonl").write_bytes(line("a", "One: A or B?", n=3) + line("b", "One: A or B?"))
    assert cli(*batch(provider)).code == 0
    rows = {row["custom_id"]: row for row in rows_of(tmp_path / "out.jsonl")}
    assert len(rows["a"]["response"]["body"]["choices"]) == 3 and provider.calls() == 4
    notes = {note["id"]: note for note in lines_of(tmp_path / "out.jsonl.millstream/records.jsonl")}
    assert (len(notes["a"]["keys"]), notes["b"]["trial"]) == (3, 3)


def test_one_model_takes_the_place_of_all(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    rows = [request("a", "One?", model="gpt-4o"), request("b", "Two?", model="nobody/x")]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert cli(*batch(provider, "--model", "sim/open")).code == 0
    assert {note["model"] for note in lines_of(tmp_path / "out.jsonl.millstream/records.jsonl")} == {"sim/open"}
    assert {row["response"]["body"]["model"] for row in rows_of(tmp_path / "out.jsonl")} == {"open"}


def test_names_of_the_gateway_are_those_of_a_batch(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "lanes.toml").write_text('[gateway.models]\nfast = "sim/open"\n')
    (tmp_path / "in.jsonl").write_bytes(line("a", "One?", model="fast") + line("b", "Two?"))
    assert cli(*batch(provider, "--config", "lanes.toml")).code == 0
    models = {note["id"]: note["model"] for note in lines_of(tmp_path / "out.jsonl.millstream/records.jsonl")}
    assert models == {"a": "sim/open", "b": "sim/steady"}
    (tmp_path / "lanes.toml").write_text('[gateway.models]\nfast = "sim/steady"\n')
    done = cli(*batch(provider, "--config", "lanes.toml"))
    assert done.code == 2 and "names.fast: sim/open in that run, sim/steady in this" in done.err


def test_the_inputs_order_is_restored_on_request_then_or_later(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    write_sound(tmp_path / "in.jsonl", 200)
    provider.set_faults("slow_body=0.05,at=1-40")
    assert cli(*batch(provider)).code == 0
    wanted = [f"r{n}" for n in range(1, 201)]
    before = ids_of(tmp_path / "out.jsonl")
    assert sorted(before) == sorted(wanted) and before != wanted
    assert cli(*batch(provider, "--in-order")).code == 0
    assert ids_of(tmp_path / "out.jsonl") == wanted
    assert (provider.calls(), cli(*batch(provider)).code) == (200, 0)
    assert ids_of(tmp_path / "out.jsonl") == wanted
    assert not list(tmp_path.glob("*new*")) and not list(tmp_path.glob(".out*"))


def test_failed_lines_are_asked_again_and_their_rows_replaced(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    write_sound(tmp_path / "in.jsonl", 30)
    provider.set_faults("rejected=400,at=1-5")
    assert cli(*batch(provider)).code == 3
    assert cli(*batch(provider)).code == 3
    assert provider.calls() == 30
    provider.set_faults()
    done = cli(*batch(provider, "--retry", "--json"))
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (told["answered"], told["failed"], told["already"]) == (30, 0, 25)
    assert sorted(ids_of(tmp_path / "out.jsonl")) == sorted(f"r{n}" for n in range(1, 31))
    assert {row["response"]["status_code"] for row in rows_of(tmp_path / "out.jsonl")} == {200}
    assert provider.calls() == 35
    assert len(rows_of(tmp_path / "out.jsonl.millstream/replaced.jsonl")) == 5


def test_a_retry_of_a_live_batch_asks_for_the_sample_alone_that_failed(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "in.jsonl").write_bytes(line("a", "Which one: A or B?", n=2))
    provider.set_faults("rejected=400,at=1-1")
    assert cli(*batch(provider, "--mode", "live", "--concurrency", "1")).code == 3
    provider.set_faults()
    assert provider.calls() == 2
    assert cli(*batch(provider, "--mode", "live", "--retry")).code == 0
    assert provider.calls() == 3


def test_a_limit_on_costs_counts_what_was_spent_before(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(b"".join(line(f"r{n}", f"No. {n}?", max_tokens=10) for n in range(100)))
    (tmp_path / "lanes.toml").write_text('[prices."sim/steady"]\ninput = 1000\noutput = 1000\n')
    limit = ("--config", "lanes.toml", "--max-cost", "0.5", "--concurrency", "1", "--json")
    first = cli(*batch(provider, *limit))
    told = json.loads(first.out)
    assert (first.code, told["stops"][0]["reason"]) == (4, "budget")
    assert 0 < told["cost"] <= 0.5 and told["pending"] > 0
    sent = provider.calls()
    again = json.loads(cli(*batch(provider, *limit)).out)
    assert (again["exit_code"], again["cost"], provider.calls()) == (4, told["cost"], sent)


def test_a_model_without_a_key_leaves_its_lines_pending_and_the_others_are_done(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "lanes.toml").write_text(f'[providers.sim]\nkind = "openai"\nbase_url = "{provider.base_url}"\n')
    (tmp_path / "in.jsonl").write_bytes(line("a", "One?") + line("b", "Two?", model="gpt-4o") + line("c", "Three?"))
    command = ("batch", "in.jsonl", "out.jsonl", "--config", "lanes.toml", "--cache", "cache", "--no-progress")
    done = cli(*command)
    assert done.code == 4 and "OPENAI_API_KEY" in done.out and "1 request is pending" in done.out
    assert sorted(ids_of(tmp_path / "out.jsonl")) == ["a", "c"]


def test_a_first_model_without_a_key_is_wrong_usage(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(line("b", "Two?", model="gpt-4o"))
    done = cli("batch", "in.jsonl", "out.jsonl", "--cache", "cache", "--no-progress")
    assert done.code == 2 and "OPENAI_API_KEY" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_an_output_of_another_input_or_of_nobody_is_never_overwritten(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    write_sound(tmp_path / "in.jsonl", 3)
    assert cli(*batch(provider)).code == 0
    before = (tmp_path / "out.jsonl").read_bytes()
    write_sound(tmp_path / "in.jsonl", 4)
    done = cli(*batch(provider))
    assert done.code == 2 and "is the output of another batch (input differs)" in done.err and "begin anew" in done.err
    (tmp_path / "mine.txt").write_text("my notes\n")
    done = cli(*batch(provider, out="mine.txt"))
    assert done.code == 2 and "was not written by this batch" in done.err
    assert (tmp_path / "mine.txt").read_text() == "my notes\n" and not (tmp_path / "mine.txt.millstream").exists()
    assert (tmp_path / "out.jsonl").read_bytes() == before and provider.calls() == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("batch", "none.jsonl", "out.jsonl"), "none.jsonl: expected a readable file"),
        (("batch", "in.jsonl", "in.jsonl"), "OUT: expected another file than IN"),
        (("batch", "in.jsonl", "no/out.jsonl"), "OUT: expected a file in a folder that exists"),
        (("batch", "in.jsonl", "out.jsonl", "--errors", "out.jsonl"), "--errors: expected another file than OUT"),
        (("batch", "in.jsonl", "out.jsonl", "--errors", "in.jsonl"), "--errors: expected another file than IN"),
        (("batch", "in.jsonl", "out.jsonl", "--errors", "-"), "--errors: expected a file, got -"),
        (("batch", "in.jsonl", "out.jsonl", "--errors", "out.jsonl.millstream"), "--errors: expected a file outside"),
        (("batch", "packed.gz", "out.jsonl"), "packed.gz: expected lines of JSON, got a gzip file"),
        (("batch", "-", "out.jsonl", "--set-aside-damaged"), "--set-aside-damaged: expected IN and OUT to be files"),
        (("batch", "in.jsonl", "."), "expected a file to write"),
        (("batch", "in.jsonl", "x" * 300), "OUT: expected a file that can be written, got: File name too long"),
        (("batch", "in.jsonl", "-", "--in-order"), "--in-order: expected IN and OUT to be files"),
        (("batch", "-", "out.jsonl", "--retry"), "--retry: expected IN and OUT to be files"),
        (("batch", "in.jsonl", "-", "--json"), "--json: expected OUT to be a file"),
        (("batch", "in.jsonl", "out.jsonl", "--model", "gpt-4o"), "--model: expected a model as provider/model"),
        (("batch", "in.jsonl", "out.jsonl", "--model", "search/brave"), "--model: expected a language model"),
        (("batch", "in.jsonl", "out.jsonl", "--model", "nobody/x"), "no provider 'nobody'"),
        (("batch", "in.jsonl", "out.jsonl", "--repeats", "never"), "--repeats: expected one of new, same"),
        (("batch", "in.jsonl", "out.jsonl", "--model", "sim/m", "--max-cost", "1"), "model sim/m has no price"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_line_and_touches_nothing(
    cli: CommandLine, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    write_sound(tmp_path / "in.jsonl", 1)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(b"{}"))
    before = sorted(path.name for path in tmp_path.iterdir())
    done = cli(*words)
    assert done.code == 2 and said in done.err and done.err.count("\n") == 1, done
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_an_empty_input_has_an_empty_output(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(b"\n\n")
    done = cli("batch", "in.jsonl", "out.jsonl", "--cache", "cache", "--no-progress")
    assert done.code == 0 and done.out.startswith("0 requests: 0 answers")
    assert (tmp_path / "out.jsonl").read_bytes() == b""


def test_pipes_carry_requests_in_and_rows_out_as_they_come(provider: Provider, tmp_path: Path) -> None:
    where = ("--base-url", provider.base_url, "--cache", "cache")
    process = subprocess.Popen(
        [*COMMAND, "batch", "-", "-", *where],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(line("a", "One: A or B?"))
    process.stdin.flush()
    # The input has not ended, and the answer is there.
    assert json.loads(process.stdout.readline())["custom_id"] == "a"
    out, err = process.communicate(b"nonsense\n" + line("a", "Two?") + line("b", "One: A or B?"), timeout=40)
    rows = [json.loads(row) for row in out.splitlines()]
    assert Counter((row["custom_id"], (row["error"] or {"code": "ok"})["code"]) for row in rows) == {
        (None, "invalid_json_line"): 1,
        ("a", "duplicate_custom_id"): 1,
        ("b", "ok"): 1,
    }
    assert process.returncode == 3 and b"can't be gone on with" in err and b"4 requests: 2 answers" in err
    assert provider.calls() == 2 and sorted(os.listdir(tmp_path)) == ["cache"]


def test_a_file_goes_to_stdout_with_progress_and_summary_beside_it(provider: Provider, tmp_path: Path) -> None:
    write_sound(tmp_path / "in.jsonl", 20)
    where = ("--base-url", provider.base_url, "--cache", "cache", "--errors", "errors.jsonl")
    done = run_command(tmp_path, "batch", "in.jsonl", "-", *where)
    assert done.code == 0, done.err
    assert len([json.loads(row) for row in done.out.splitlines()]) == 20
    assert "20 of 20 requests (100%)" in done.err and "20 requests: 20 answers" in done.err
    again = run_command(tmp_path, "batch", "in.jsonl", "-", *where)
    assert again.code == 2 and "errors.jsonl is there already" in again.err


def test_a_reader_of_stdout_that_goes_away_ends_the_batch(provider: Provider, tmp_path: Path) -> None:
    write_sound(tmp_path / "in.jsonl", 400)
    process = start(tmp_path, "batch", "in.jsonl", "-", "--base-url", provider.base_url, "--concurrency", "2")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    code, err = process.wait(40), process.stderr.read()
    process.stderr.close()
    assert code == 5 and "stdout can't be written (Broken pipe)" in err and "Traceback" not in err
    assert provider.calls() < 400


@pytest.mark.parametrize(("words", "closed"), [(("-", "out.jsonl"), "<&-"), (("in.jsonl", "-"), ">&-")])
def test_a_stream_that_is_closed_is_refused_before_a_file_has_its_number(
    provider: Provider, tmp_path: Path, words: tuple[str, str], closed: str
) -> None:
    write_sound(tmp_path / "in.jsonl", 3)
    command = shlex.join([*COMMAND, "batch", *words, "--base-url", provider.base_url, "--cache", "cache"])
    done = subprocess.run(
        f"{command} {closed}", shell=True, cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.PIPE, text=True
    )
    assert done.returncode == 2 and "expected - to be open, got std" in done.stderr and done.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == ["in.jsonl"] and provider.calls() == 0
