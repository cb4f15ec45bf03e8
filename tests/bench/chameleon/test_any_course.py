"""Whatever the latencies and wherever a call fails: a turn has one line, in order, and what was paid stands in them."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import orjson
import pytest
from chameleon_outside import JUDGE, MODEL, OTHER, SEARCH, ScriptedOutside, asked_question, digest, kind_of
from chameleon_sweep import read_done, recount, run_sweep, specification
from chameleon_types import Asking, Making
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from virtual_time import run_virtually

from millstream.bench.chameleon.run_spec import planned_turns
from millstream.engine.call import Call, Failure
from millstream.engine.runs.pairs import Pair
from millstream.engine.runs.run_folder import RunFolder

PAIRS = (Pair(MODEL, 0.0), Pair(OTHER, None))
TOKENS = {MODEL: 100_000, OTHER: 100_000, JUDGE: 100_000}
LATENCY = st.sampled_from((0.01, 0.3, 1.0, 4.0))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    latency=st.fixed_dictionaries(dict.fromkeys((MODEL, OTHER, JUDGE, SEARCH, "web"), LATENCY)),
    slots=st.fixed_dictionaries({lane: st.sampled_from((1, 2, 50)) for lane in (MODEL, OTHER, JUDGE, SEARCH, "web")}),
    at_once=st.integers(1, 8),
    failing=st.integers(0, 30),
)
def test_each_turn_has_one_line_in_order_and_what_was_paid_stands_in_them(
    made: Making, asking: Asking, latency: dict[str, float], slots: dict[str, int], at_once: int, failing: int
) -> None:
    def answer(call: Call) -> Failure | None:
        # One call in so many hundred fails for good, whichever it is.
        return Failure("server_error", "500") if int(digest(call.input, call.trial)[:4], 16) % 200 < failing else None

    dataset, asked = made(4, 4), asking(PAIRS, tokens=TOKENS, pages=2)
    specified = specification(dataset, asked, {})
    outside = ScriptedOutside(latency_s=latency, concurrency=slots, answer=answer)
    with tempfile.TemporaryDirectory() as name:
        with RunFolder(Path(name), specified) as folder:
            folder.write_manifest()
            assert run_virtually(run_sweep(outside, folder, dataset, asked, read_done(folder), at_once=at_once)) == []
        records, failures = (
            [orjson.loads(line) for line in (Path(name) / f"{kind}.jsonl").read_bytes().splitlines()]
            for kind in ("records", "failures")
        )
        counted = recount(map(orjson.dumps, records), map(orjson.dumps, failures), planned_turns(specified))
    turns: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for record in records:
        turns[record["model"], record["conversation"]].append(record["turn"])
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in turns.values())
    for failure in failures:
        assert failure["turn"] == len(turns[failure["model"], failure["conversation"]]) + 1
    for pair in PAIRS:
        ended = counted.of(pair)
        assert ended.answered + ended.failures + ended.held == 16
    # A call that failed was sent as often as it was asked for, any other once.
    whole = Counter(event.what for event in outside.events if event.kind in ("answer", "query"))
    assert failing or set(whole.values()) == {1}
    answered = sum(kind_of(call) != "" and answer(call) is None for call in outside.calls)
    paid = 0.001 * answered + 0.0001 * outside.answered[SEARCH]
    assert sum(line["cost"] or 0.0 for line in (*records, *failures)) == pytest.approx(paid)
    assert all(asked_question(call) for call in outside.calls if kind_of(call) == "answer")
