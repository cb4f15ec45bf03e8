"""A run that measured nothing: its exit code, its summary, its JSON and its page say so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import SMALL, SMALL_PROMPTS, CommandLine, Provider, scores_of


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
