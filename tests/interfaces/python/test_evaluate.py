"""`evaluate` in a script and in a notebook: the run of the command line, its result as values, and what Ctrl-C does."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Provider

import millstream as ms
from millstream.bench.task.rows import TaskError

MODELS = ["sim/open", "sim/steady"]
ROWS = [{"id": f"r{number}", "word": f"w{number}", "group": "g"} for number in range(12)]


def first_digit(reply: ms.Reply, row: dict[str, Any]) -> dict[str, float]:
    digit = int(reply.text.rpartition(" ")[2][0], 16)
    return {"digit": digit / 15, "is_even": digit % 2 == 0}


def task(**fields: Any) -> ms.Task:
    return ms.Task(
        **{"data": ROWS, "prompt": "Say {word}", "score": first_digit, "trials": 2, "name": "words", **fields}
    )


@pytest.fixture
def options(provider: Provider, tmp_path: Path) -> dict[str, Any]:
    return {"base_url": provider.base_url, "cache": str(tmp_path / "cache"), "report": False}


def test_it_gives_scores_intervals_groups_comparisons_and_records(
    provider: Provider, tmp_path: Path, options: dict[str, Any]
) -> None:
    found = ms.evaluate(task(), MODELS, tmp_path / "run", **{**options, "report": True})
    assert found.is_whole and provider.calls() == 2 * 2 * len(ROWS)
    model = found.models["sim/open"]
    records = [record for record in found.records() if record.model == "sim/open"]
    assert model.score.mean == pytest.approx(sum(record.score or 0.0 for record in records) / len(records))
    low, mean, high = (value or 0.0 for value in (model.score.low, model.score.mean, model.score.high))
    assert 0 < low < mean < high
    assert set(model.scores) == {"digit", "is_even"} and model.groups["g"] == model.score
    assert [(pair.a, pair.b, pair.found.difference) for pair in found.pairs] == [("sim/open", "sim/steady", 0.0)]
    assert (found.failures, found.pending, found.cost, list(found.failed())) == (0, 0, None, [])
    assert found.report == tmp_path / "run/report.html" and found.report.exists()
    assert f"sim/open {model.score}" in repr(found) and "24 answers" in str(found)


def test_a_notebook_shows_it_as_tables_in_which_every_text_is_inert(tmp_path: Path, options: dict[str, Any]) -> None:
    hostile = "<script>alert(1)</script>"
    rows = [{**row, "group": hostile if number % 2 else "plain"} for number, row in enumerate(ROWS)]
    found = ms.evaluate(task(data=rows), MODELS, tmp_path / "run", **options)
    html = found._repr_html_()
    assert hostile not in html and "&lt;script&gt;" in html and "<a" not in html
    score = found.models["sim/open"].score
    cells = re.sub("<[^>]+>", "|", html)
    assert f"|sim/open||–||{score.mean:.3f}||{score.low:.3f} to {score.high:.3f}" in cells
    for text in ("group plain", "sim/open − sim/steady", "no price is known", str(tmp_path / "run")):
        assert text in html


def test_its_records_are_a_data_frame_of_pandas(tmp_path: Path, options: dict[str, Any]) -> None:
    found = ms.evaluate(task(), MODELS, tmp_path / "run", **options)
    frame = found.to_pandas()
    assert len(frame) == 2 * 2 * len(ROWS) and set(frame["model"]) == set(MODELS)
    means = frame.groupby("model")["score"].mean()
    assert means["sim/open"] == pytest.approx(found.models["sim/open"].score.mean)
    assert set(frame["row.word"]) == {row["word"] for row in ROWS}


def test_the_same_call_reads_a_finished_folder_and_the_command_line_does_too(
    provider: Provider, cli: CommandLine, tmp_path: Path, options: dict[str, Any]
) -> None:
    first = ms.evaluate(task(), MODELS, tmp_path / "run", **options)
    sent = provider.calls()
    again = ms.evaluate(task(), MODELS, tmp_path / "run", **options)
    assert again.models == first.models and provider.calls() == sent
    for verb in ("verify", "score", "report"):
        assert cli(verb, "run").code == 0
    assert "a scorer is a function, which is not run here" in cli("verify", "run").out
    done = cli("resume", "run")
    assert done.code == 2 and "run that program again" in done.err


def test_it_works_where_a_loop_runs_as_in_a_notebook(tmp_path: Path, options: dict[str, Any]) -> None:
    async def cell() -> ms.Evaluation:
        return ms.evaluate(task(), "sim/open", tmp_path / "run", **options)

    assert asyncio.run(cell()).models["sim/open"].answers == 24


def test_progress_is_shown_on_request_alone(
    tmp_path: Path, options: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    ms.evaluate(task(), "sim/open", tmp_path / "silent", **options)
    assert capfd.readouterr() == ("", "")
    ms.evaluate(task(), "sim/steady", tmp_path / "shown", progress=True, **options)
    out, err = capfd.readouterr()
    assert out == "" and "24 of 24" in err


def test_failures_and_silence_are_told_in_the_result(
    provider: Provider, tmp_path: Path, options: dict[str, Any]
) -> None:
    provider.set_faults("rejected=400,at=1-3")
    found = ms.evaluate(task(), "sim/open", tmp_path / "run", **options)
    assert (found.failures, found.is_whole) == (3, False)
    assert [line.status for line in found.failed()] == ["rejected"] * 3
    provider.set_faults()
    assert ms.evaluate(task(), "sim/open", tmp_path / "run", retry=True, **options).is_whole
    silent = ms.evaluate(task(score=ms.choice("A")), "sim/open", tmp_path / "silent", **options)
    assert silent.models["sim/open"].score.mean is None
    assert silent.unmeasured[0].startswith("sim/open has no score: 24 of its 24 answers")


def test_a_wrong_argument_is_told_before_anything_is_begun(tmp_path: Path, options: dict[str, Any]) -> None:
    evaluate: Any = ms.evaluate
    for arguments, more, error, said in (
        (("capitals", MODELS), {}, TaskError, "expected an ms.Task or an ms.Benchmark, got 'capitals'"),
        ((task(), []), {}, TaskError, "models: expected at least one"),
        ((task(), MODELS), {"max_const": 5}, TypeError, r"no option 'max_const': it has temperature, reasoning_effort"),
    ):
        with pytest.raises(error, match=said):
            evaluate(*arguments, tmp_path / "run", **options, **more)
    assert not (tmp_path / "run").exists()
