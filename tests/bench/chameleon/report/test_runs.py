"""Claims about how runs are read for a report, and how their models are told apart."""

from __future__ import annotations

from pathlib import Path

from chameleon_records import PERSONAS, STEADY, run_records, talk, turn_record
from chameleon_run import panel_of, read_run, written_run

from millstream.engine.pairs import Pair


def test_failures_are_counted_by_kind_wherever_they_stand(tmp_path: Path) -> None:
    failed = {**turn_record(turn=2), "status": "timeout", "stance": None}
    # Another program may leave fields empty that ours fills.
    failures = [failed, {**failed, "turn": 3, "status": "search_failed", "retrieved": None, "error": None}]
    run = written_run(tmp_path, [turn_record(), failed], failures=failures)
    assert dict(run.traces.failed[Pair("m", None)]) == {"timeout": 2, "search_failed": 1}


def test_a_model_that_two_runs_asked_alike_stands_twice_by_their_labels(tmp_path: Path) -> None:
    one = written_run(tmp_path / "a", run_records([STEADY], [0.0, None], conversations=2, turns=3), "first")
    two = written_run(tmp_path / "b", run_records(PERSONAS[:2], [0.0], conversations=2, turns=3), "second")
    names = [str(sample.pair) for sample in panel_of(one, two).samples]
    assert names == [
        "sim/steady (first)",
        "sim/steady (first) @ 0",
        "sim/steady (second) @ 0",
        "sim/wavering @ 0",
    ]


def test_standings_count_turns_asked_answered_refused_failed_and_pending(tmp_path: Path) -> None:
    pair = Pair("m", 0.5)
    refused = turn_record(turn=2, temperature=0.5, status="refused", stance="unclear")
    failed = {"model": "m", "temperature": 0.5, "status": "search_failed"}
    run = written_run(
        tmp_path, [turn_record(temperature=0.5), refused], failures=[failed], asked={pair: {"c": 5, "d": 5}}
    )
    made = panel_of(run)
    [standing] = map(made.status, made.samples)
    assert (standing.model, standing.expected, standing.answered, standing.refused) == ("m @ 0.5", 10, 2, 1)
    assert (standing.failures, standing.pending, standing.is_told) == (1, 7, True)


def test_without_a_manifest_what_is_missing_is_what_the_turns_show(tmp_path: Path) -> None:
    lines = [*talk("SCB"), *talk("SC", model="n")]
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"\n".join(lines))
    made = panel_of(read_run("run", path, lines))
    found = map(made.status, made.samples)
    assert [(each.model, each.expected, each.pending, each.is_told) for each in found] == [
        ("m", 3, 0, False),
        ("n", 3, 1, False),
    ]
