"""load.json read back: as it was written, or a sentence about what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest
from load_files import steady, swept

from millstream.metrics.load.reading import DamagedLoad, load_of


def whole() -> bytes:
    return msgspec.json.encode(steady())


def test_what_was_written_is_read_back_whole() -> None:
    for load in (steady(), swept(stream=False)):
        assert load_of(msgspec.json.encode(load)) == load
        assert load_of(msgspec.json.format(msgspec.json.encode(load), indent=1)) == load


def changed(change: Callable[[Any], None]) -> bytes:
    fields = json.loads(whole())
    change(fields)
    return json.dumps(fields).encode()


def of_model(**values: Any) -> Callable[[Any], None]:
    return lambda fields: fields["models"]["sim/steady"].update(values)


WRONG: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "as JSON, got: Input data was truncated"),
    "no JSON": (lambda: b"hello", "as JSON, got: "),
    "a list": (lambda: b"[]", "as JSON, got: Expected `object`"),
    "another object": (lambda: b"{}", "expected version 1, got none"),
    "a later version": (
        lambda: changed(lambda fields: fields.update(version=2)),
        "expected version 1, got 2: read it with",
    ),
    "a version that is true": (
        lambda: changed(lambda fields: fields.update(version=True)),
        "expected version 1, got True",
    ),
    "cut": (lambda: whole()[: len(whole()) // 2], "as JSON, got: "),
    "not text": (lambda: b"\xff\xfe\x00", "as JSON, got: "),
    "no model": (lambda: changed(lambda fields: fields.update(models={})), "at least 1 model, got none"),
    "a field less": (
        lambda: changed(lambda fields: fields["models"]["sim/steady"].pop("calls")),
        "missing required field `calls`",
    ),
    "another type": (lambda: changed(of_model(calls="many")), "Expected `int`, got `str`"),
    "a rate below 0": (lambda: changed(of_model(rate=-1.0)), "Expected `float` >= 0.0"),
    "a number beyond all": (lambda: whole().replace(b'"rate":', b'"rate":1e999,"rat":', 1), "figures of a load test"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told_in_one_line(what: str) -> None:
    data, said = WRONG[what]
    with pytest.raises(DamagedLoad) as raised:
        load_of(data())
    assert said in str(raised.value) and "\n" not in str(raised.value)


def test_times_and_parts_below_nothing_are_not_drawn() -> None:
    def latency(fields: Any) -> Any:
        return fields["models"]["sim/steady"]["latency"]

    for change in (
        lambda fields: latency(fields).update(mean_s=-0.5),
        lambda fields: latency(fields)["percentiles"][0].update(value_s=-1),
        lambda fields: latency(fields)["percentiles"][0].update(percent=100.0),
        lambda fields: latency(fields).update(count=17),
        lambda fields: latency(fields).update(hdr="HIST"),
        lambda fields: fields["models"]["sim/steady"]["slices"][3].update(seconds=-1.0),
        lambda fields: fields["models"]["sim/steady"]["slices"][3]["latency"].update(longest_s=-1.0),
        lambda fields: fields["models"]["sim/steady"]["steps"][0]["token"].update(longest_s=-1.0),
        lambda fields: fields["models"]["sim/steady"]["steps"][0].update(kept=-1),
    ):
        with pytest.raises(DamagedLoad):
            load_of(changed(change))


def test_no_damage_does_more_than_say_so() -> None:
    random = Random(8)
    said, sound = 0, whole()
    for _ in range(300):
        data = bytearray(sound)
        for _ in range(random.randint(1, 3)):
            at = random.randrange(len(data))
            data[at : at + random.randint(0, 2)] = random.randbytes(random.randint(0, 2))
        try:
            load_of(bytes(data))
        except DamagedLoad as error:
            said += 1
            assert "\n" not in str(error)
    assert said > 150
