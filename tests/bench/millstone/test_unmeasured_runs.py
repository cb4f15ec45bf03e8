"""A run that measured nothing: its exit code, its summary, its JSON and its page say so."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import SMALL, SMALL_PROMPTS, CommandLine, Provider, scores_of
from msgspec import Struct

from millstream.bench.evaluation.door.prepared_run import PreparedRun
from millstream.bench.evaluation.door.work import RunCounts
from millstream.bench.evaluation.running.execution import RunResult
from millstream.engine.fault import Stop
from millstream.engine.runs.pairs import FinishedItems, Pair, PairCounts
from millstream.engine.runs.run_folder import RunFolder
from millstream.interfaces.cli.run_summary import as_json, exit_code_of, tell
from millstream.wiring import Settings
from millstream.wiring.engine import Engine
from millstream.wiring.running import RunEnd

PAIR = Pair("sim/mute", None)
SENTENCE = "sim/mute: no score, since it said nothing"


class TenItems(Struct, frozen=True):
    """A benchmark of ten items for one model."""

    benchmark = "ten"
    item = "prompt"
    is_item_a_call = True
    items = 10
    lanes = ("sim/mute",)
    max_tokens: Mapping[str, int | None] = {}
    score_columns = ("score",)

    def pairs(self) -> list[Pair]:
        return [PAIR]

    def worst_calls(self, settings: Settings) -> dict[str, float]:
        return {}

    def read_done(self, folder: RunFolder) -> FinishedItems:
        return FinishedItems({}, 0.0)

    async def send(
        self, engine: Engine, folder: RunFolder, done: FinishedItems, item_ended: Callable[[], None]
    ) -> list[Stop]:
        return []

    def count(self, folder: RunFolder) -> RunCounts:
        return RunCounts({}, {})

    def score_cells(self, scores: Mapping[str, Any], pair: Pair) -> tuple[str, ...]:
        return ("-",)


def result_of(ended: PairCounts, *unmeasured: str, number: int | None = None) -> RunResult:
    prepared = PreparedRun(
        out=Path("run"), work=TenItems(), settings=Settings(), specification={}, options={}, dataset={}, notes=()
    )
    counted = RunCounts({PAIR: ended}, {}, unmeasured=unmeasured)
    return RunResult(prepared=prepared, counted=counted, already=0, seconds=1.0, end=RunEnd(signal=number))


@pytest.mark.parametrize(
    ("ended", "unmeasured", "number", "code"),
    [
        (PairCounts(ok=10), (), None, 0),
        (PairCounts(ok=10), (SENTENCE,), None, 3),
        (PairCounts(ok=4), (SENTENCE,), None, 4),
        (PairCounts(ok=9, failed={"timeout": 1}), (SENTENCE,), None, 3),
        (PairCounts(ok=10), (SENTENCE,), 2, 130),
    ],
)
def test_what_measured_nothing_ends_with_3_and_with_4_while_work_is_pending(
    ended: PairCounts, unmeasured: tuple[str, ...], number: int | None, code: int
) -> None:
    results = [result_of(ended, *unmeasured, number=number)]
    told = as_json(results)
    assert exit_code_of(results) == told["exit_code"] == code
    assert told["runs"][0]["unmeasured"] == list(unmeasured)
    assert all(sentence in tell(results) for sentence in unmeasured)


def test_exit_code_3_without_a_failure_does_not_speak_of_failures() -> None:
    told = tell([result_of(PairCounts(ok=10), SENTENCE)])
    assert "exit code 3: finished, but not everything was measured" in told
    assert "exit code 3: finished, with failures" in tell([result_of(PairCounts(failed={"timeout": 10}))])


def run(provider: Provider, *more: str) -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--out", "run")
    return ("run", "millstone", *SMALL, *where, *more)


@pytest.mark.parametrize(
    ("model", "code"), [("sim/refusing-all", 3), ("sim/silenced", 3), ("sim/rare", 3), ("sim/thinking", 4)]
)
def test_a_silent_model_has_no_score_and_summary_and_page_say_why(
    cli: CommandLine, provider: Provider, tmp_path: Path, model: str, code: int
) -> None:
    cut = ("--max-tokens", "50", "--concurrency", "1") if code == 4 else ()
    done = cli(*run(provider, "--model", model, *cut))
    assert done.code == code, done
    scored = scores_of(tmp_path / "run")["millstone"]
    entry = scored["models"][model]
    nothing = (entry["om"], entry["om_by_silence"], entry["ci95"], set(entry["ranks"].values()), entry["issues_scored"])
    assert nothing == (None, None, [None, None], {None}, 0)
    assert list(entry["unscored_issues"]) == ["bottle-deposits"]
    assert entry["answers_cut"] == (0 if code == 3 else entry["answers"])
    [sentence] = scored["unmeasured"]
    assert sentence.startswith(f"{model} has no score: {entry['answers_other']} of its {entry['answers']} answers")
    assert sentence in done.out
    page = (tmp_path / "run/report.html").read_text()
    assert sentence in page and "Not everything was measured" in page and "nothing is missing" not in page.lower()
    assert json.loads(cli("report", "run", "--json").out)["unmeasured"] == [sentence]
    again = cli("score", "run")
    assert (again.code, sentence in again.out) == (3, True)


def test_the_authors_script_to_the_letter_scores_silence_and_says_that_it_does(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    assert cli(*run(provider, "--model", "sim/refusing-all", "--no-report")).code == 3
    kept = (tmp_path / "run/scores.json").read_bytes()
    done = cli("score", "run", "--silence", "literal", "--json")
    entry = json.loads(done.out)["run"]["millstone"]["models"]["sim/refusing-all"]
    assert (done.code, entry["ranks"]["om"], entry["issues_scored"]) == (0, 1, 1)
    assert entry["om"] == pytest.approx(100) and entry["om_by_silence"] == entry["om"]
    assert entry["remarks"][0].endswith("half of them or more; --silence literal scores it all the same.")
    assert (tmp_path / "run/scores.json").read_bytes() == kept
    # It is a reading: the same folder goes on under it, and keeps it.
    done = cli(*run(provider, "--model", "sim/refusing-all", "--silence", "literal"))
    assert (done.code, provider.calls()) == (0, SMALL_PROMPTS)
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert manifest["options"]["millstone"]["silence"] == "literal" and "silence" not in manifest["specification"]
    assert scores_of(tmp_path / "run")["millstone"]["silence"] == "literal"
    page = (tmp_path / "run/report.html").read_text()
    assert "Silence is read literally" in page and "--silence literal" in page
    assert "nothing is missing" not in page.lower()
