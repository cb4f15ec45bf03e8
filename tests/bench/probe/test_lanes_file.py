"""What a probe leaves: a table, sentences, and a file that the configuration reads and that replaces nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from millstream.bench.probe.lanes_file import (
    FoundQuota,
    Report,
    Way,
    as_json,
    check_place,
    lanes_text,
    tell,
    write_new,
)
from millstream.configuration.configuration import read_configuration
from millstream.configuration.errors import UsageError
from millstream.engine.fault import LocalFault
from millstream.wiring.running import RunEnd

FOUND = FoundQuota(rpm=499.2, tpm=198_000.7, burst=499, window="sliding", header_rpm=500)


def report(**changes: Any) -> Report:
    given: dict[str, Any] = {
        "lanes": {"lab/m": FOUND, "lab/none": FoundQuota()},
        "calls": 731,
        "cost": 0.0312345678,
        "ways": {"lab/m": Way("http://127.0.0.1:9/v1", "LAB_KEY"), "lab/none": Way("http://127.0.0.1:9/v1")},
        "ended": "2026-11-21 14:05 UTC",
    }
    return Report(**{**given, **changes})


def test_the_object_printed_has_these_fields_and_null_for_what_is_not_known() -> None:
    assert as_json(report()) == {
        "lanes": {
            "lab/m": {"rpm": 499, "tpm": 198_000, "burst": 499, "window": "sliding"},
            "lab/none": {"rpm": None, "tpm": None, "burst": None, "window": None},
        },
        "calls": 731,
        "cost": 0.031235,
    }
    assert as_json(report(cost=None))["cost"] is None


def test_a_person_reads_the_numbers_and_how_far_the_missing_ones_were_looked_for() -> None:
    told = tell(report(lanes={"lab/m": FOUND, "lab/none": FoundQuota(has_usage=False)}))
    rows = [line.split() for line in told.splitlines()]
    assert ["lab/m", "499", "198,000", "499", "sliding"] in rows
    assert ["lab/none", "-", "-", "-", "-"] in rows
    assert "lab/m: headers say 500 requests a minute; at least 499 are admitted" in told
    assert "lab/none: its answers name no usage" in told
    assert told.endswith("731 calls, $0.031235")


def test_the_file_is_a_configuration_of_the_lanes_that_were_found(tmp_path: Path) -> None:
    path = write_new(tmp_path / "lanes.toml", lanes_text(report()), may_rename=False)
    (lane,) = read_configuration(str(path)).lanes
    assert (lane.model, lane.rpm, lane.tpm, lane.burst) == ("lab/m", 499, 198_000, 499)
    text = path.read_text()
    for said in ("2026-11-21 14:05 UTC", "# at http://127.0.0.1:9/v1 with the key in LAB_KEY", "# window: sliding"):
        assert said in text


def test_what_a_server_said_stays_in_its_comment(tmp_path: Path) -> None:
    said = FoundQuota(rpm=60, ended='lab/m: 400: first\n[lanes."evil/m"]\rrpm = 1\u2028# \x1b[31m')
    text = lanes_text(report(lanes={"lab/m": said}, end=RunEnd(fault=LocalFault("\x7f\nrpm = 1"))))
    path = write_new(tmp_path / "lanes.toml", text, may_rename=False)
    assert [lane.model for lane in read_configuration(str(path)).lanes] == ["lab/m"]


def test_nothing_found_makes_no_file_and_a_lane_of_less_than_one_a_minute_is_none() -> None:
    assert lanes_text(report(lanes={"lab/none": FoundQuota(rpm=0.4)})) == ""


def test_a_bucket_that_holds_less_than_a_lane_may_send_at_once_is_told() -> None:
    small = FoundQuota(rpm=600, burst=2, window="bucket")
    assert "may send 4 at once, more than that" in lanes_text(report(lanes={"lab/m": small}))
    assert "at once, more than that" not in lanes_text(report())


def test_a_default_name_that_is_taken_gets_a_number_and_a_given_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cache, models = tmp_path / "cache", ("lab/m 1",)
    place = check_place(None, models, cache)
    assert place == cache / "probes" / "lab-m-1.toml"
    assert write_new(place, "kept", may_rename=True) == place
    assert check_place(None, models, cache) == cache / "probes" / "lab-m-1-2.toml"
    assert check_place(None, ("lab/m", "lab/n", "lab/o"), cache).name == "lab-m-and-2-more.toml"
    Path("lanes.toml").write_text("kept")
    with pytest.raises(UsageError, match="exists and is not overwritten"):
        check_place("lanes.toml", models, cache)


def test_a_file_that_came_meanwhile_is_not_overwritten_either(tmp_path: Path) -> None:
    taken = tmp_path / "lanes.toml"
    taken.write_text("kept")
    with pytest.raises(LocalFault, match="can't be written"):
        write_new(taken, "new", may_rename=False)
    assert write_new(taken, "new", may_rename=True) == tmp_path / "lanes-2.toml"
    assert (taken.read_text(), (tmp_path / "lanes-2.toml").read_text()) == ("kept", "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lanes-2.toml", "lanes.toml"]


def test_a_model_that_admitted_no_call_was_not_measured_rather_than_found_without_a_limit() -> None:
    told = tell(report(lanes={"lab/m": FOUND, "lab/none": FoundQuota()}))
    assert "lab/none: requests a minute: not found; no step was finished" in told
