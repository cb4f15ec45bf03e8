"""How judges are asked: the first call to one of which nothing is known decides for all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from virtual_time import run_virtually

from millstream.bench.evaluation.door.judges import Judges
from millstream.engine.call import Call, Failure, Outcome, Reply

REFUSED = Failure("rejected", "400: 'temperature' does not support 0.0 with this model")
Answer = Callable[[Call], Reply | Failure]


def asked(answer: Answer, *calls: Call) -> tuple[list[Outcome], list[tuple[str, float | None, int]]]:
    """Returns the outcomes of calls that begin at once, and model, temperature and time of all that was sent."""
    sent = []

    async def send(call: Call) -> Outcome:
        sent.append((call.model, call.temperature, round(asyncio.get_running_loop().time())))
        await asyncio.sleep(1)
        said = answer(call)
        return Outcome(call, said) if isinstance(said, Reply) else Outcome(call, failure=said)

    async def ask() -> list[Outcome]:
        judges = Judges()
        return await asyncio.gather(*(judges.ask(call, send) for call in calls))

    return run_virtually(ask()), sent


def call(model: str, temperature: float | None = 0.0) -> Call:
    return Call(model, "Is it right?", temperature=temperature)


def test_judges_are_tried_side_by_side_and_each_of_them_once() -> None:
    outcomes, sent = asked(
        lambda call: REFUSED if call.temperature == 0 and call.model == "lab/a" else Reply("yes"),
        *(call(model) for model in ("lab/a", "lab/b") for _ in range(5)),
    )
    assert all(outcome.reply is not None for outcome in outcomes)
    assert {outcome.call.temperature for outcome in outcomes[:5]} == {None}
    assert {outcome.call.temperature for outcome in outcomes[5:]} == {0.0}
    assert [(model, temperature) for model, temperature, _ in sent].count(("lab/a", 0.0)) == 1
    first = min(at for _, _, at in sent)
    assert max(at for model, _, at in sent if model == "lab/b") == first + 1
    assert max(at for model, _, at in sent if model == "lab/a") == first + 2


def test_what_fails_without_a_temperature_too_is_told_with_the_reason_that_is_left() -> None:
    (other,), _ = asked(
        lambda call: REFUSED if call.temperature == 0 else Failure("rejected", "no max_tokens"), call("lab/a")
    )
    assert other.failure == Failure("rejected", "no max_tokens")
    absent = Failure("not_cached", "the answer is not in the cache")
    (outcome,), sent = asked(lambda call: absent, call("lab/a"))
    assert outcome.call.temperature == 0.0 and len(sent) == 2


def test_another_temperature_than_0_is_meant_and_sent_as_it_is() -> None:
    outcomes, sent = asked(lambda call: REFUSED, call("lab/a", 0.7), call("lab/a", None))
    assert [outcome.failure for outcome in outcomes] == [REFUSED, REFUSED]
    assert [temperature for _, temperature, _ in sent] == [0.7, None]
