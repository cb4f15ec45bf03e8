"""What lm-eval asks, as calls."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from millstream.configuration.errors import UsageError
from millstream.engine.call import Call, Message
from millstream.interfaces.plugins.lm_eval_asking import ChatPrompt, LmEvalGeneration, generation_of, weighing_of

MODEL = "openai/steady"


def asked(context: str = "A or B?", **given: Any) -> LmEvalGeneration:
    return generation_of(MODEL, context, given, max_tokens=256, seed=None)


def test_a_task_that_says_nothing_is_greedy_and_has_the_usual_limit() -> None:
    assert asked().call == Call(MODEL, "A or B?", temperature=0.0, max_tokens=256)


@pytest.mark.parametrize("name", ["max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens"])
def test_every_name_of_a_limit_is_understood_and_none_is_sent_as_it_stands(name: str) -> None:
    given: dict[str, Any] = {name: 12}
    assert asked(**given).call == Call(MODEL, "A or B?", temperature=0.0, max_tokens=12)


@pytest.mark.parametrize(
    ("given", "temperature"),
    [
        ({"do_sample": False}, 0.0),
        ({"do_sample": False, "temperature": 0.7}, 0.0),
        ({"do_sample": True, "temperature": 0.7}, 0.7),
        ({"temperature": "0.7"}, 0.7),
        ({"temperature": None}, None),
        ({"temperature": "None", "do_sample": False}, None),
    ],
)
def test_a_temperature_is_sent_where_sampling_is_wanted(given: dict[str, Any], temperature: float | None) -> None:
    assert asked(**given).call.temperature == temperature


def test_four_stops_are_sent_and_all_of_them_cut() -> None:
    generation = asked(until=["\n\n", "Q:", "", "</s>", "###", "END"])
    assert generation.call.stop == ("\n\n", "Q:", "</s>", "###")
    assert generation.cut("position END Q:") == "position "
    assert generation.cut("position") == "position"
    assert asked(until="\n").cut("A\nB") == "A"


@pytest.mark.parametrize("until", [None, "None", [], [""]])
def test_without_a_stop_none_is_sent_and_nothing_cut(until: object) -> None:
    generation = asked(until=until)
    assert generation.call.stop is None
    assert generation.cut("A\n\nB") == "A\n\nB"


def test_other_words_go_into_the_body_as_they_are() -> None:
    call = asked(top_p=0.9, seed=7, top_k=40, repetition_penalty=1.1).call
    assert (call.top_p, call.seed, call.extra) == (0.9, 7, {"top_k": 40, "repetition_penalty": 1.1})


def test_a_value_that_is_none_is_told_in_one_line() -> None:
    with pytest.raises(UsageError, match="generation_kwargs can't be sent to openai/steady: temperature"):
        asked(temperature=-1)
    with pytest.raises(UsageError, match="could not convert string to float"):
        asked(temperature="warm")


def test_a_conversation_is_sent_as_its_turns_and_outlives_a_pickle() -> None:
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "A or B? ✓"}]
    prompt = ChatPrompt(json.dumps(turns))
    kept = pickle.loads(pickle.dumps(prompt))
    assert asked(kept).call.input == (Message("system", "Be brief."), Message("user", "A or B? ✓"))
    assert asked(str(prompt)).call.input == str(prompt)


def test_a_task_keeps_its_settings() -> None:
    given = {"until": ["\n"], "do_sample": False, "max_gen_toks": 5}
    generation_of(MODEL, "A?", given, max_tokens=256, seed=None)
    assert given == {"until": ["\n"], "do_sample": False, "max_gen_toks": 5}


def test_a_text_is_weighed_by_its_echo() -> None:
    wanted = Call(MODEL, "A", temperature=0.0, max_tokens=1, logprobs=1, extra={"echo": True})
    assert weighing_of(MODEL, "A") == wanted
