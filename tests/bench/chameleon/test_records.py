"""Lines of turns: written, read again, and refused where they are none; counted and proven."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from chameleon_outside import MODEL, OTHER, ScriptedOutside, asked_question, judgement, kind_of
from chameleon_sweep import prove, recount, specification
from chameleon_types import Asking, Making, Running
from msgspec import structs

from millstream.bench.chameleon.dataset import ConversationSet
from millstream.bench.chameleon.records import Record, RetrievedPage
from millstream.bench.chameleon.run_spec import planned_turns
from millstream.bench.evaluation.running.journals import RecordError, decoded, encode
from millstream.engine.call import Call, Failure, Reply
from millstream.engine.pairs import Pair
from millstream.engine.runs.journal import sealed
from millstream.engine.runs.proof import Proof
from millstream.engine.runs.run_folder import manifest_hash, read_manifest
from millstream.metrics.chameleon.scores import scores
from millstream.metrics.chameleon.traces import Traces

PAIR = Pair(MODEL, 0.0)


def troubled(call: Call) -> str | Reply | Failure | None:
    """Of every kind of turn one: refused, unreadable, repaired, failed."""
    text, kind = str(call.input), kind_of(call)
    if kind == "answer" and "question 2 of 0" in asked_question(call):
        return Reply("I can't.", None, "content_filter", refused=True)
    if kind in ("judge", "repair") and "Question: How is question 3 of 0?" in text:
        return "no idea"
    if kind == "judge" and "Question: How is question 1 of 1?" in text:
        return "{}"
    if kind == "repair" and "Question: How is question 1 of 1?" in text:
        return judgement("critical", "It might disagree.")
    if kind == "answer" and "question 2 of 1" in asked_question(call):
        return Failure("timeout", "600 s")
    return None


@pytest.fixture
def run(made: Making, asking: Asking, running: Running, tmp_path: Path) -> tuple[Path, ConversationSet]:
    """Three conversations of four turns; a folder with every kind of line in it, as a run that has ended leaves it."""
    dataset, asked = made(3, 4), asking()
    running(ScriptedOutside(answer=troubled), dataset, asked)
    folder = tmp_path / "run"
    close(folder, dataset)
    return folder, dataset


def read(lines: list[bytes], source: str = "records") -> Iterator[Record]:
    return decoded(lines, Record, source)


def rows(folder: Path, name: str = "records") -> list[bytes]:
    return (folder / f"{name}.jsonl").read_bytes().splitlines()


def close(folder: Path, dataset: ConversationSet) -> None:
    """Scores and counts, as the end of a run writes them."""
    manifest = read_manifest(folder)
    asked = planned_turns(manifest["specification"])
    traces = Traces()
    for line in rows(folder):
        traces.add(line)
    (folder / "scores.json").write_bytes(orjson.dumps({"chameleon": scores(traces, None, asked)}))
    ended = recount(rows(folder), rows(folder, "failures"), asked).of(PAIR)
    counts = [{**PAIR._asdict(), "ok": ended.ok, "refused": ended.refused, "failed": ended.failed, "cost": ended.cost}]
    options = {"chameleon": {"model": [PAIR.model], "judge": "script/j", "turns": manifest["specification"]["turns"]}}
    note(folder, ended="2026-01-01", counts=counts, options=options)


def note(folder: Path, **changes: Any) -> None:
    manifest = {**read_manifest(folder), **changes}
    manifest["manifest_hash"] = manifest_hash(manifest)
    (folder / "manifest.json").write_bytes(orjson.dumps(manifest))


def proven(run: tuple[Path, ConversationSet]) -> Proof:
    folder, dataset = run
    return prove(folder, read_manifest(folder), dataset)


def test_a_record_is_read_as_it_was_written(run: tuple[Path, ConversationSet]) -> None:
    records = list(read(rows(run[0])))
    failures = list(read(rows(run[0], "failures")))
    assert len(records) == 9
    for record in (*records, *failures):
        assert list(read([encode(record)])) == [record]
    by_id = {record.id: record for record in records}
    assert (by_id["c0/2"].status, by_id["c0/2"].stance) == ("refused", "unclear")
    assert (by_id["c0/3"].stance, by_id["c0/3"].raw_judgement) == ("unclear", "no idea")
    assert (by_id["c1/1"].stance, by_id["c1/1"].confidence, by_id["c1/1"].judge_repaired) == ("critical", 0.33, True)
    assert (failures[0].id, failures[0].step, failures[0].stance) == ("c1/2", "answer", None)


def test_a_lone_surrogate_costs_no_turn(run: tuple[Path, ConversationSet]) -> None:
    whole = next(iter(read(rows(run[0]))))
    odd = structs.replace(
        whole, text="x\ud800", retrieved=(RetrievedPage("corpus:\udcff.txt"),), cited=("corpus:\udcff.txt",)
    )
    (line,) = read([encode(odd)])
    assert (line.text, line.retrieved[0].url, line.cited) == ("x?", "corpus:?.txt", ("corpus:?.txt",))
    assert structs.replace(line, text=whole.text, retrieved=whole.retrieved, cited=whole.cited) == whole


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"turn": 0}, "turn"),
        ({"stance": "hostile"}, "stance"),
        ({"stance": None}, "stance: expected a stance with status ok, got null"),
        ({"status": "timeout"}, "stance: expected null, since a failure has no stance"),
        ({"status": "lost"}, "status: expected one of ok, refused, "),
        ({"confidence": 1.5}, "confidence"),
        ({"model": None}, "model"),
    ],
)
def test_a_line_that_is_no_record_is_named(
    run: tuple[Path, ConversationSet], change: dict[str, Any], message: str
) -> None:
    line = orjson.dumps({**orjson.loads(rows(run[0])[0]), **change})
    with pytest.raises(RecordError, match=f"^there: line 2: .*{message}"):
        list(read([b"", line], "there"))


def test_the_recount_tells_ok_refused_failed_and_held_apart(run: tuple[Path, ConversationSet], asking: Asking) -> None:
    folder, dataset = run
    asked = planned_turns(specification(dataset, asking(), {}))
    counted = recount(rows(folder), [*rows(folder, "failures"), b""], asked)
    ended = counted.of(PAIR)
    assert (ended.ok, ended.refused, ended.failed, ended.held) == (8, 1, {"timeout": 1}, 2)
    assert ended.answered + ended.failures + ended.held == 12
    assert counted.roles[PAIR] == {"answer": 1}
    traces = Traces()
    for line in rows(folder):
        traces.add(line)
    troubles = traces.troubles[PAIR]
    assert (troubles.repaired, troubles.unreadable) == (2, 1)
    # Seven judgements of one call, two that were asked for again; a refusal has none.
    assert counted.judging[PAIR].input_tokens == 100 * (6 + 2 * 2)
    assert counted.of(Pair(OTHER, None)).ok == 0
    lines = [*rows(folder), *rows(folder, "failures")]
    assert ended.cost == pytest.approx(sum(orjson.loads(line)["cost"] for line in lines))


def test_a_whole_run_is_proven(run: tuple[Path, ConversationSet]) -> None:
    proof = proven(run)
    assert (proof.wrong, proof.unproven, proof.torn) == ([], [], [])
    assert (proof.records, proof.failures, proof.pending, proof.held) == (9, 1, 0, 2)
    note(run[0], ended=None)
    assert [what.partition(":")[0] for what in proven(run).unproven] == ["counts", "scores.json"]
    assert prove(run[0], read_manifest(run[0]), None).unproven[0].startswith("data set: not readable (")


def changed(line: bytes, **changes: Any) -> bytes:
    content = orjson.loads(line)
    del content["crc"]
    return sealed(orjson.dumps({**content, **changes}))


def test_what_is_missing_double_or_changed_is_found(run: tuple[Path, ConversationSet]) -> None:
    folder, _ = run
    whole = rows(folder)
    path = folder / "records.jsonl"

    def found(*lines: bytes) -> str:
        path.write_bytes(b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines))
        return " | ".join(proven(run).wrong)

    assert found(*whole) == ""
    assert "counts 9 records and 1 failures; records.jsonl holds 8, failures.jsonl 1" in found(*whole[:-1])
    assert "stands there twice" in found(*whole, whole[0])
    assert "damaged: its checksum is missing or wrong" in found(whole[0].replace(b"supportive", b"unclear"), *whole[1:])
    assert "turn zz/1 is not in this run" in found(changed(whole[0], id="zz/1", conversation="zz"), *whole[1:])
    assert "is not in this run" in found(changed(whole[0], turn=9), *whole[1:])
    assert "script/other @ 0 is not in this run" in found(changed(whole[0], model=OTHER), *whole[1:])
    assert "has another question than the data set" in found(changed(whole[0], question="Else?"), *whole[1:])
    assert "no record of Chameleon" in found(changed(whole[0], stance="odd"), *whole[1:])
    assert "scores.json: not what the records give, for script/m" in found(
        changed(whole[0], stance="critical"), *whole[1:]
    )
    untrue = "not what the text and the rationale in it give"
    assert f"line 1: confidence: {untrue}" in found(changed(whole[0], confidence=0.33), *whole[1:])
    assert f"line 1: cited: {untrue}" in found(changed(whole[0], cited=[]), *whole[1:])
    assert f"line 1: cited, invalid_citations: {untrue}" in found(changed(whole[0], text="As in [3], [9]."), *whole[1:])
    (at,) = [at for at, line in enumerate(whole) if b'"refused"' in line]
    (unread,) = [at for at, line in enumerate(whole) if b'"raw_judgement"' in line]
    for place in (at, unread):
        told = found(*whole[:place], changed(whole[place], confidence=0.67), *whole[place + 1 :])
        assert f"line {place + 1}: confidence: {untrue}" in told
    failure = rows(folder, "failures")[0]
    assert "does not belong in this file" in found(*whole, failure)
    later = changed(whole[0], id="c1/3", conversation="c1", turn=3, question="How is question 3 of 1?")
    assert "c1 of script/m @ 0: turn 2 failed, and 1 later turns were asked" in found(*whole, later)
    path.write_bytes(b"\n".join(whole) + b'\n{"id":')
    assert proven(run).torn == [
        "records.jsonl: its last line is torn, as a kill leaves it; the next start sets it aside"
    ]


def test_a_changed_manifest_and_another_data_set_are_found(run: tuple[Path, ConversationSet], made: Making) -> None:
    folder, _ = run
    assert "data set: its digest is" in prove(folder, read_manifest(folder), made(3, 5)).wrong[0]
    manifest = read_manifest(folder)
    manifest["specification"]["pages"] = 99
    assert [what.partition(",")[0] for what in prove(folder, manifest, None).wrong][:2] == [
        "manifest.json: the specification's hash is not the one noted beside it: one of both was changed",
        "manifest.json: its hash is not the one noted in it: something in it was changed",
    ]
