"""Claims about the conversations that a page holds: which are whole, how much they are, and that they are inert."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from chameleon_records import PERSONAS, STEADY, SWAYING, run_records, turn_record, url
from chameleon_run import panel_of, read_run, written_run
from hostile import hostile

from millstream.bench.chameleon.report.browser import BUDGET, LONGEST, ConversationBrowser, browser
from millstream.engine.pairs import Pair
from millstream.report.escaping import packed


def opened(made: ConversationBrowser) -> Any:
    """What the page's script unpacks."""
    return json.loads(gzip.decompress(base64.b64decode(packed(made))))


def made_of(folder: Path, records: list[dict[str, Any]], budget: int = BUDGET, **more: Any) -> ConversationBrowser:
    return browser(panel_of(written_run(folder, records, **more)), budget)


def test_every_turn_holds_what_its_record_holds(tmp_path: Path) -> None:
    records = list(run_records(PERSONAS, [0.0, None], conversations=3, turns=4))
    made = made_of(tmp_path, records)
    assert len(made.rows) == len(made.whole) == 3 * 2 * 3
    by_place = {(record["model"], record["temperature"], record["id"]): record for record in records}
    seen = 0
    for at, turns in made.whole.items():
        row = made.rows[at]
        model, _, heat = made.pairs[row.pair].partition(" @ ")
        topic, domain, name = made.conversations[row.conversation]
        for turn in turns:
            record = by_place[model, float(heat) if heat else None, f"{name}/{turn.number}"]
            assert (record["topic"], record["domain"]) == (topic, domain)
            assert made.texts[turn.question.text] == record["question"]
            assert made.texts[turn.query.text] == record["query"]
            assert made.texts[turn.answer.text] == record["text"] and not turn.answer.chars
            assert made.texts[turn.rationale.text] == record["rationale"]
            assert [made.texts[claim.text] for claim in turn.claims] == record["key_claims"]
            assert made.stances[turn.stance] == record["stance"] == made.stances[int(row.stances[turn.number - 1])]
            assert (turn.confidence, turn.judge_number) == (record["confidence"], record["judge_confidence"])
            shown = [(made.urls[place], made.statuses[status]) for place, status, _ in turn.sources]
            assert shown == [(hit["url"], hit["status"]) for hit in record["retrieved"]]
            assert {made.urls[place] for place, _, is_cited in turn.sources if is_cited} == set(record["cited"])
            assert [made.texts[each.text] for each in turn.invalid] == [
                str(each) for each in record["invalid_citations"]
            ]
            seen += 1
    assert seen == len(records)
    assert made.remarks == ()


def test_changes_and_reuse_of_turns_are_those_of_the_figures(tmp_path: Path) -> None:
    made = made_of(tmp_path, list(run_records([SWAYING], [None], conversations=4, turns=6)))
    for at, turns in made.whole.items():
        row = made.rows[at]
        assert sum(turn.is_change for turn in turns) == row.changes
        terms = [turn.reuse for turn in turns if turn.reuse is not None]
        cited = sum(any(is_cited for *_, is_cited in turn.sources) for turn in turns[1:])
        assert len(terms) == cited and row.srr == pytest.approx(sum(terms) / cited, abs=1e-3)


def test_the_script_reads_the_fields_in_their_order(tmp_path: Path) -> None:
    data = opened(made_of(tmp_path, [turn_record(question="Why?", text="So.", cited=[url(1, 1)])]))
    assert data["rows"] == [[0, 0, "0", None, None, None, None, 0]]
    [turn] = data["whole"]["0"]
    assert len(turn) == 17
    assert [data["texts"][turn[at][0]] for at in (6, 8)] == ["Why?", "So."]
    assert turn[15] == [[0, 0, True]] and data["statuses"] == ["ok"]


def test_within_the_budget_the_highest_and_the_lowest_are_kept_of_every_model(tmp_path: Path) -> None:
    records = list(run_records([STEADY, SWAYING], [None], conversations=12, turns=6))
    whole, some = made_of(tmp_path, records), made_of(tmp_path, records, budget=30_000)
    assert len(whole.whole) == 24 > len(some.whole) > 2
    assert some.rows == whole.rows
    kept = {some.rows[at].conversation for at in some.whole}
    assert len(some.whole) == 2 * len(kept)
    means = {
        name: sum(row.score or 0 for row in some.rows if row.conversation == name) / 2
        for name in {row.conversation for row in some.rows}
    }
    ordered = sorted(means, key=lambda name: -means[name])
    half = len(kept) - len(kept) // 2
    assert kept == {*ordered[:half], *ordered[len(ordered) - len(kept) // 2 :]}
    assert f"are kept of {len(kept)} of 12 conversations" in some.remarks[0]
    assert sum(map(len, some.texts)) + sum(map(len, some.urls)) < 2 * 30_000


def test_a_long_answer_is_cut_and_its_length_told(tmp_path: Path) -> None:
    made = made_of(tmp_path, [turn_record(text="x" * 1_000_000, rationale="y" * 2_000)])
    [[turn]] = made.whole.values()
    assert turn.answer.chars == 1_000_000 and len(made.texts[turn.answer.text]) < LONGEST + 10
    assert turn.rationale.chars == 2_000
    assert made.remarks == ("Answers are cut at 3,000 characters, other texts at 600; their lengths are told.",)


def test_thousands_of_sources_are_cut_and_told(tmp_path: Path) -> None:
    made = made_of(tmp_path, [turn_record(cited=[url(at, at) for at in range(3_000)])])
    [[turn]] = made.whole.values()
    assert len(turn.sources) == 100 and "at most 100 sources" in made.remarks[0]


def test_an_incomplete_conversation_is_there_and_says_so(tmp_path: Path) -> None:
    records = [turn_record(), turn_record("n"), turn_record("n", turn=2)]
    assert [(row.pair, row.missing) for row in made_of(tmp_path, records).rows] == [(0, 1), (1, 0)]


def test_a_source_that_is_cited_and_was_never_retrieved_is_shown_too(tmp_path: Path) -> None:
    record = turn_record(cited=[url(1, 1), url(2, 2)], retrieved=[url(1, 1)])
    made = made_of(tmp_path, [record])
    [[turn]] = made.whole.values()
    assert [(made.urls[at], made.statuses[status], cited) for at, status, cited in turn.sources] == [
        (url(1, 1), "ok", True),
        (url(2, 2), "cited", True),
    ]


def test_records_that_changed_since_they_were_read_are_refused(tmp_path: Path) -> None:
    run = written_run(tmp_path, [turn_record(), turn_record(turn=2)])
    run.records.write_bytes(b"x" * 40)
    with pytest.raises(ValueError, match="changed while it was read"):
        browser(panel_of(run))


def test_a_run_without_a_turn_needs_no_file_of_records(tmp_path: Path) -> None:
    run = read_run("run", tmp_path / "records.jsonl", [], asked={Pair("m", None): {"c": 15}})
    made = browser(panel_of(run))
    assert (made.pairs, made.rows) == (("m",), ())


def test_what_can_not_be_seen_has_a_stand_in(tmp_path: Path) -> None:
    records = [
        turn_record(conversation=f"c{at}", text=text, question=text, topic=text, rationale=text, cited=[text[:2_000]])
        for at, text in enumerate(hostile())
    ]
    data = opened(made_of(tmp_path, records))
    words = [
        *data["texts"],
        *data["urls"],
        *data["statuses"],
        *(each for names in data["conversations"] for each in names),
    ]
    for text in words:
        assert not any(sign in text for sign in "\x00\x07\x1b\x7f\x9b\u202e\u2066\u2028")
