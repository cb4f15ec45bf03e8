"""The two forms of an attack: the short one of the suite, and the long one of `make torture`.

A test says how often it attacks in each (`times`), draws from `SEED`, and says at its end what became of it (`record`):
docs/reliability.md is made of these lines.
"""

from __future__ import annotations

import json
import os

IS_LONG = os.environ.get("MILLSTREAM_TORTURE") == "long"
SEED = int(os.environ.get("MILLSTREAM_TORTURE_SEED", "1"))


def times(short: int, long: int) -> int:
    """Returns how often to attack: in the suite, or in the long run."""
    return long if IS_LONG else short


def record(promise: str, tried: int, survived: int, worst: str, seeds: str = "") -> None:
    """Says what became of an attack on a promise, by its number in tests/promises.toml, if somebody listens.

    tried: how many attacks there were, with the unit in `worst` where it is no plain case.
    worst: the worst that was seen, in one sentence.
    seeds: which seeds were drawn from, so that the same attacks can be made again.
    """
    path = os.environ.get("MILLSTREAM_TORTURE_OUT")
    if path:
        line = {"promise": promise, "tried": tried, "survived": survived, "worst": worst, "seeds": seeds}
        with open(path, "a", encoding="utf-8") as out:
            out.write(json.dumps({**line, "test": os.environ.get("PYTEST_CURRENT_TEST", "").split(" ")[0]}) + "\n")
