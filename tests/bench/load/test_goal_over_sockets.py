"""A search for a goal through the real command, against a server that answers so many calls a second and no more."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from command_line import Provider, lines_of, run_command, simulated_provider

# A busy machine lowers the rate that is found.
pytestmark = [pytest.mark.alone, pytest.mark.long]

# Between the first rate and the one in the middle, with room for calls that come unevenly on a busy machine.
A_SECOND = 43
# So slow that what such a machine adds is little beside it.
LATENCY = "constant:0.3"
GOAL = "p50 latency <= 1 s and errors <= 5%"


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    with simulated_provider(tmp_path, LATENCY) as provider:
        yield provider


def test_a_search_finds_the_rate_up_to_which_a_server_answers(provider: Provider, tmp_path: Path) -> None:
    provider.set_quota(requests=A_SECOND, window_s=1.0)
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "out", "--json", "--no-progress")
    asked = ("--prompt-tokens", "20", "--max-tokens", "4", "--whole", "--arrivals", "constant")
    search = ("--goal", GOAL, "--from", "36", "--to", "72", "--precision", "50%")
    ended = run_command(tmp_path, "load", "sim/open", *where, *asked, *search)
    assert ended.code == 0, ended.err
    load = json.loads((tmp_path / "out/load.json").read_text())
    assert json.loads(ended.out) == load and load["ending"] == "goal"
    own, lines = load["models"]["sim/open"], lines_of(tmp_path / "out/calls.jsonl")
    if own["goal"]["client_at"] is not None:
        pytest.skip(f"this machine was too busy to search: {load['client']['reasons']}")
    # Of 72 a second, 40% are refused, of the 50.9 in the middle, 16%.
    assert (own["goal"]["kept"], own["goal"]["goal"]) == (36.0, GOAL)
    assert own["goal"]["missed"] == pytest.approx((36 * 72) ** 0.5, abs=1e-3)
    assert [(step["rate"], step["standing"] == "kept") for step in own["steps"]] == [
        (36.0, True),
        (72.0, False),
        (own["goal"]["missed"], False),
    ]
    # What the steps tell is what was sent, one after the other, and what the server saw of it.
    assert [step["calls"] for step in own["steps"]] == [n for _, n in sorted(Counter(x["step"] for x in lines).items())]
    assert all(first["begins_s"] + first["seconds"] <= then["begins_s"] for first, then in pairwise(own["steps"]))
    assert own["begun"] == len(lines) == provider.calls()
    assert provider.summary()["statuses"].get("429", 0) == own["errors"]["rate_limited"]
