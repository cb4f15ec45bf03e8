"""Conversations small enough to see through, and a run of them over a scripted outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import rmtree
from typing import Any

import orjson
import pytest
from chameleon_outside import JUDGE, MODEL, SEARCH, ScriptedOutside
from chameleon_sweep import read_done, run_sweep, specification
from chameleon_types import Asking, Line, Making, Running
from virtual_time import run_virtually

from millstream.bench.chameleon.dataset import ConversationSet, build
from millstream.bench.chameleon.dataset_file import FileEntry
from millstream.bench.chameleon.run_spec import ConversationSpec
from millstream.bench.evaluation.running.steps import AT_ONCE
from millstream.engine.fault import Stop
from millstream.engine.pairs import Pair
from millstream.engine.runs.run_folder import RunFolder


@pytest.fixture
def made() -> Making:
    """So many conversations over two domains, so many questions each, no two questions alike."""

    def make(conversations: int = 3, questions: int = 3, name: str = "made") -> ConversationSet:
        return build(
            name,
            [
                FileEntry(
                    {
                        "id": f"c{at}",
                        "topic": f"Topic {at}",
                        "domain": f"Domain {at % 2}",
                        "initial_belief": "balanced",
                        "debate_strength": "strong",
                        "questions": [f"How is question {number} of {at}?" for number in range(1, questions + 1)],
                    },
                    f"made[{at}]",
                )
                for at in range(conversations)
            ],
        )

    return make


@pytest.fixture
def asking() -> Asking:
    def ask(pairs: Sequence[Pair] = (Pair(MODEL, 0.0),), **changes: Any) -> ConversationSpec:
        plain: dict[str, Any] = {
            "pairs": tuple(pairs),
            "judge": JUDGE,
            "search": SEARCH,
            "pages": 3,
            "tokens": {**{pair.model: 100_000 for pair in pairs}, JUDGE: 100_000},
        }
        return ConversationSpec(**{**plain, **changes})

    return ask


@pytest.fixture
def running(tmp_path: Path) -> Running:
    """Hold what is not over in `tmp_path / "run"`, in virtual time; `is_another` begins anew."""

    def run(
        outside: ScriptedOutside,
        dataset: ConversationSet,
        asked: ConversationSpec,
        *,
        at_once: int = AT_ONCE,
        retry: bool = False,
        is_another: bool = False,
    ) -> list[Stop]:
        if is_another:
            rmtree(tmp_path / "run", ignore_errors=True)
        folder = RunFolder(tmp_path / "run", specification(dataset, asked, {}), retry=retry)
        with folder:
            folder.write_manifest()
            return run_virtually(run_sweep(outside, folder, dataset, asked, read_done(folder), at_once=at_once))

    return run


@pytest.fixture
def lines(tmp_path: Path) -> Callable[[str], list[Line]]:
    def read(name: str = "records") -> list[Line]:
        return [orjson.loads(line) for line in (tmp_path / "run" / f"{name}.jsonl").read_bytes().splitlines()]

    return read
