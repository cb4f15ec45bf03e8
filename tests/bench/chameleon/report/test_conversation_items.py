"""Claims about the conversations that a page holds: which are whole, what their turns show, and that they are inert."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chameleon_records import PERSONAS, SWAYING, run_records, talk, turn_record, url
from chameleon_run import read_run, written_run
from hostile import hostile
from packed_items import packed_items

from millstream.bench.chameleon.report.part import contents
from millstream.bench.chameleon.report.runs import ConversationRun
from millstream.bench.evaluation.running.journals import RecordError
from millstream.engine.pairs import Pair
from millstream.metrics.chameleon.figures import figures_of_turns
from millstream.metrics.chameleon.readings import Readings

# A part has its figures, which take a second to draw.
pytestmark = pytest.mark.slow


def data_of(*runs: ConversationRun) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns and the texts that the page's script unpacks."""
    return packed_items(contents(runs))


def turns_in(texts: dict[str, Any], conversation: str = "c") -> list[dict[str, Any]]:
    [model] = texts[conversation]["models"]
    turns: list[dict[str, Any]] = model["answers"]
    return turns


def paths_in(columns: dict[str, Any]) -> list[list[str]]:
    """The stances of each model's conversations by their first letters."""
    letters = [stance[0].upper() for stance in columns["steps"]]
    return [["".join(letters[int(sign)] for sign in path) for path in row] for row in columns["cells"]["path"]]


def test_every_turn_holds_what_its_record_holds(tmp_path: Path) -> None:
    records = list(run_records(PERSONAS, [0.0, None], conversations=3, turns=4))
    columns, texts = data_of(written_run(tmp_path, records))
    assert len(texts) == 3 and columns["notes"] == []
    by_place = {(record["model"], record["temperature"], record["id"]): record for record in records}
    seen = 0
    for name, details in texts.items():
        at = columns["items"].index(name)
        for model in details["models"]:
            lab, _, heat = columns["models"][model["model"]]["name"].partition(" @ ")
            for turn in model["answers"]:
                record = by_place[lab, float(heat) if heat else None, f"{name}/{turn['number']}"]
                assert (columns["titles"][at], columns["groups"][columns["group"][at]]) == (
                    record["topic"],
                    record["domain"],
                )
                assert turn["prompt"] == [{"role": "user", "content": [{"text": record["question"]}]}]
                assert (turn["text"], turn["label"]) == (record["text"], record["stance"])
                [judge] = turn["judge"]
                assert (judge["reason"], judge["score"]) == (record["rationale"], record["confidence"])
                facts = dict(turn["facts"])
                assert facts["claims"] == "\n".join(record["key_claims"])
                assert facts["the judge’s own number"] == f"{record['judge_confidence']:.3f}"
                said = "acknowledged" if record["contradictions_acknowledged"] else "not acknowledged"
                assert facts["contradictions"] == said
                assert facts.get("cited, but shown nowhere", "") == ", ".join(map(str, record["invalid_citations"]))
                [search] = turn["steps"]
                assert search["arguments"] == record["query"]
                sources = search["result"].split("\n")
                for number, (line, hit) in enumerate(zip(sources, record["retrieved"], strict=True), 1):
                    marks = ["cited"] if hit["url"] in record["cited"] else []
                    marks += [] if hit["status"] == "ok" else [hit["status"].replace("_", " ")]
                    assert line.split(" · ") == [f"{number}. {hit['url']}", *marks]
                seen += 1
    assert seen == len(records)


def test_figures_of_conversations_and_turns_are_those_of_the_scores(tmp_path: Path) -> None:
    run = written_run(tmp_path, run_records([SWAYING], [None], conversations=4, turns=6))
    columns, texts = data_of(run)
    for trace in run.traces.traces():
        at, figures = columns["items"].index(trace.conversation), figures_of_turns(trace.turns, Readings())
        shown = {name: rows[0][at] for name, rows in columns["figures"].items()}
        assert shown["Stance changes"] == figures.changes
        assert columns["cells"]["score"][0][at] == pytest.approx(figures.score, abs=1e-4)
        assert shown["Source re-use"] == pytest.approx(figures.srr, abs=1e-4)
        assert shown["Confidence"] == pytest.approx(figures.confidence, abs=1e-4)
        turns = turns_in(texts, trace.conversation)
        assert sum(turn["isChange"] for turn in turns) == figures.changes
        terms = [
            float(dict(turn["facts"])["source re-use"]) for turn in turns if "source re-use" in dict(turn["facts"])
        ]
        assert figures.srr == pytest.approx(sum(terms) / len(terms), abs=1e-3)
        assert columns["models"][0]["within"] is None


def test_stances_stand_in_the_order_of_their_turns_as_scores_read_them(tmp_path: Path) -> None:
    records = [json.loads(line) for line in talk("SCBUC")]
    records[1] = {**records[1], "text": "  "}  # an empty answer has no stance, whatever its judge said
    columns, texts = data_of(written_run(tmp_path, records[::-1]))
    assert paths_in(columns) == [["SUBUC"]]
    assert [turn["label"][0].upper() for turn in turns_in(texts)] == [*"SUBUC"]


def test_of_a_large_run_of_one_model_the_highest_and_the_lowest_are_whole(tmp_path: Path) -> None:
    records = list(run_records([SWAYING], [None], conversations=120, turns=3, words=1))
    for record in records:
        record["text"] = "x" * 30_000
        record["rationale"] = record["question"] = record["query"] = "y" * 6_000
    columns, texts = data_of(written_run(tmp_path, records))
    scores = dict(zip(columns["items"], columns["cells"]["score"][0], strict=True))
    assert 20 < len(texts) < 120 == len(scores)
    kept = sorted(scores[name] for name in texts)
    apart = sorted(scores[name] for name in scores.keys() - texts.keys())
    assert kept[len(kept) // 2 - 1] <= apart[0] and apart[-1] <= kept[len(kept) // 2 + 1]
    [note] = columns["notes"]
    assert f"of {len(texts)} items, those of the highest and the lowest scores" in note


def test_a_long_answer_is_cut_and_its_length_told(tmp_path: Path) -> None:
    _, texts = data_of(written_run(tmp_path, [turn_record(text="x" * 1_000_000)]))
    assert turns_in(texts)[0]["text"] == "x" * 6_000 + "… (994,000 more characters)"


def test_an_incomplete_conversation_is_there_and_says_so(tmp_path: Path) -> None:
    columns, _ = data_of(written_run(tmp_path, [turn_record(), turn_record("n"), turn_record("n", turn=2)]))
    assert columns["figures"]["Turns missing"] == [[1], [None]]


def test_a_source_that_is_cited_and_was_never_retrieved_is_shown_too(tmp_path: Path) -> None:
    _, texts = data_of(
        written_run(tmp_path, [turn_record(cited=[url(1, 1), url(2, 2)], retrieved=[url(1, 1), url(3, 3)])])
    )
    [search] = turns_in(texts)[0]["steps"]
    assert search["tool"] == "Sources: 3, 2 cited"
    assert search["result"] == f"1. {url(1, 1)} · cited\n2. {url(3, 3)}\n3. {url(2, 2)} · cited"


def test_records_of_another_program_need_their_id_alone(tmp_path: Path) -> None:
    lean = [{"model": "m", "id": f"t/{turn}", "stance": "critical", "retrieved": None} for turn in (1, 2)]
    columns, texts = data_of(written_run(tmp_path, lean))
    assert (columns["items"], paths_in(columns)) == (["t"], [["CC"]])
    assert [turn["number"] for turn in turns_in(texts, "t")] == [1, 2]


def test_records_that_changed_since_they_were_read_are_refused(tmp_path: Path) -> None:
    run = written_run(tmp_path, [turn_record(), turn_record(turn=2)])
    run.records.write_bytes(b"x" * 40)
    with pytest.raises(RecordError, match="changed while it was read"):
        contents([run])


def test_a_run_without_a_turn_needs_no_file_of_records(tmp_path: Path) -> None:
    columns, texts = data_of(read_run("run", tmp_path / "records.jsonl", [], asked={Pair("m", None): {"c": 15}}))
    assert ([each["name"] for each in columns["models"]], columns["items"], texts) == (["m"], [], {})


def test_two_runs_are_columns_side_by_side(tmp_path: Path) -> None:
    runs = [
        written_run(tmp_path / name, run_records(PERSONAS[:1], [0.0], conversations=3, turns=3, seed=seed), name)
        for seed, name in enumerate(("first", "second"))
    ]
    columns, texts = data_of(*runs)
    assert [each["name"] for each in columns["models"]] == ["first: sim/steady @ 0", "second: sim/steady @ 0"]
    assert len(texts) == 3 and all(len(each["models"]) == 2 for each in texts.values())
    assert paths_in(columns)[0] != paths_in(columns)[1]


def test_what_can_not_be_seen_has_a_stand_in(tmp_path: Path) -> None:
    records = [
        turn_record(conversation=f"c{at}", text=text, question=text, topic=text, rationale=text, cited=[text[:2_000]])
        for at, text in enumerate(hostile())
    ]
    columns, texts = data_of(written_run(tmp_path, records))
    for text in (json.dumps(columns, ensure_ascii=False), json.dumps(texts, ensure_ascii=False)):
        assert not any(sign in text for sign in "\x00\x07\x1b\x7f\x9b\u202e\u2066\u2028")
