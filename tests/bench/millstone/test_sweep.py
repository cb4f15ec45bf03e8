"""The lines of a sweep: counted as a naive reader counts them, and refused by their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import orjson
import pytest
from answered_run import calls, row, specification_of, tally_of
from msgspec import structs

from millstream.bench.evaluation.door.item_line import StepTotals
from millstream.bench.evaluation.running.recount import recount
from millstream.bench.millstone.dataset import load, select
from millstream.bench.millstone.grid import Grid
from millstream.bench.millstone.options import GridOptions, Options
from millstream.bench.millstone.records import RecordError
from millstream.bench.millstone.work import SAMPLE
from millstream.engine.call import Failure, Outcome, Reply, Usage
from millstream.engine.pairs import Pair
from millstream.engine.runs.run_folder import specification_hash

TEXTS = ("position <<A>>", "Position B", "Answer: A", "I don't know.")


OPTIONS = Options(model=(), limit=1, templates=1, trials=3)


def pairs(models: tuple[str, ...] = ("a/one", "a/two"), last: float = 0.5) -> tuple[Pair, ...]:
    return tuple(Pair(model, temperature) for model in models for temperature in (None, last))


ASKED = pairs()


def journals() -> dict[str, list[bytes]]:
    """Lines of a run of whose calls some were refused and some failed."""
    random, lines = Random(7), dict[str, list[bytes]](records=[], failures=[])
    for pair in ASKED:
        for call in calls(Grid(select(load(SAMPLE), limit=1), GridOptions(templates=1, trials=3)), pair):
            number = random.randrange(1_000)
            outcome = Outcome(call, Reply(TEXTS[number % 4], Usage(100, 4)), key="k", attempts=1, cost=0.25)
            if number % 10 == 0:
                outcome = Outcome(call, failure=Failure("rejected", "400"), key="k", attempts=1)
            elif number % 7 == 0:
                outcome = Outcome(call, Reply("", None, "content_filter", refused=True), key="k", attempts=1)
            lines["failures" if outcome.failure else "records"].append(row(outcome, "paper"))
    return lines


def test_the_recount_agrees_with_a_naive_one() -> None:
    lines = journals()
    records, failures = ([orjson.loads(line) for line in lines[name]] for name in ("records", "failures"))
    counted = recount(StepTotals(), {f"{name}.jsonl": lines[name] for name in lines})
    tally = tally_of(lines["records"])
    for pair in ASKED:

        def count(rows: list[dict[str, object]], keep: Callable[[dict[str, object]], bool], at: Pair = pair) -> int:
            return sum(keep(row) for row in rows if (row["model"], row["temperature"], row["effort"]) == at)

        ended = counted.of(pair)
        assert ended.ok == count(records, lambda row: row["status"] == "ok")
        assert ended.refused == count(records, lambda row: row["status"] == "refused") > 0
        assert ended.failed == {"rejected": count(failures, lambda row: True)}
        assert ended.input_tokens == 100 * ended.ok
    # Of the four texts only "Answer: A" is read by the careful reading alone.
    differing = Counter(row["model"] for row in records if row["text"] == "Answer: A")
    told = {answers.pair.model: 0 for answers in tally.models()}
    for answers in tally.models():
        told[answers.pair.model] += answers.disagreements()
    assert told == dict(differing)


def test_a_bad_line_is_named() -> None:
    with pytest.raises(RecordError, match=r"^there: line 2: "):
        tally_of([b"", b'{"id":"x"}'], source="there")
    with pytest.raises(RecordError, match=r"^failures.jsonl: line 1: "):
        recount(StepTotals(), {"failures.jsonl": [b"{}"]})


def test_the_specification_has_what_decides_answers_and_nothing_else() -> None:
    def digest(asked: tuple[Pair, ...] = ASKED, endpoint: str = "e", **changes: object) -> str:
        return specification_hash(specification_of(structs.replace(OPTIONS, **changes), asked, endpoint))

    assert digest() == digest(pairs()) == digest(silence="literal")
    others = [
        digest(pairs(("a/one",))),
        digest(pairs(last=0.7)),
        digest(tuple(pair._replace(effort="low") for pair in pairs())),
        digest(max_tokens=50),
        digest(stance="careful"),
        digest(endpoint="f"),
    ]
    assert len({digest(), *others}) == 7
