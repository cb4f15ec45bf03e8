"""Writes what a probe found: the table and sentences for a person, JSON for a program, and the lanes file.

Owns their words, and that no file is overwritten. Sends nothing.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from signal import Signals
from typing import Any

from msgspec import Struct, field

from ...configuration.errors import UsageError
from ...engine.fault import LocalFault
from ...engine.lanes.ledger import BURST_SHARE
from ...format import count_text
from ...report.text import inert, table
from ...wiring.running import RunEnd
from .result import FoundQuota

FOLDER = "probes"
# In file names every other character of a model's name becomes a hyphen.
_SAFE = re.compile(r"[^A-Za-z0-9._-]+")
_COLUMNS = ("model", "requests a minute", "tokens a minute", "burst", "window")
_NAMES_MAX = 10_000


class Way(Struct, frozen=True):
    """How a model was reached. `address`: the provider's URL; `key`: the environment variable that holds the API key
    (empty: none); `keys_left`: how many more API keys its lane has, which were not probed."""

    address: str
    key: str = ""
    keys_left: int = 0


class Report(Struct, frozen=True, kw_only=True):
    """Everything that is written about a probe: on the terminal, as JSON and in the lanes file. `lanes`: what was found
    of each model; `calls`, `cost`: the calls sent and the dollars spent (None: a model has no known price); `ways`: how
    each model was reached; `end`: how the probe ended; `ended`: date and time (UTC)."""

    lanes: Mapping[str, FoundQuota]
    calls: int
    cost: float | None
    ways: Mapping[str, Way]
    end: RunEnd = field(default_factory=RunEnd)
    ended: str = ""

    @property
    def exit_code(self) -> int:
        found = self.lanes.values()
        return self.end.exit_code(
            is_pending=any(each.ended for each in found), has_failures=any(each.is_empty for each in found)
        )

    @property
    def why(self) -> str:
        """What ended the probe early; empty: nothing."""
        if self.end.fault is not None:
            return str(self.end.fault)
        return "" if self.end.signal is None else f"interrupted by {Signals(self.end.signal).name}"


def as_json(report: Report) -> dict[str, Any]:
    lanes = {model: found.as_lane() for model, found in report.lanes.items()}
    return {"lanes": lanes, "calls": report.calls, "cost": None if report.cost is None else round(report.cost, 6)}


def tell(report: Report) -> str:
    rows = [_COLUMNS, *(_row(model, found) for model, found in report.lanes.items())]
    lines = ((model, line) for model, found in report.lanes.items() for line in _lines(report.ways.get(model), found))
    sentences = [f"{model}: {line.removeprefix(f'{model}: ')}" for model, line in lines]
    return "\n".join([table(rows, lean=(0, 4)), "", *sentences, spent_line(report)])


def spent_line(report: Report) -> str:
    cost = "cost unknown" if report.cost is None else f"${report.cost:.6f}"
    return f"{count_text(report.calls, 'call')}, {cost}"


def _row(model: str, found: FoundQuota) -> tuple[str, ...]:
    lane = found.as_lane()
    numbers = ["-" if lane[name] is None else f"{lane[name]:,}" for name in ("rpm", "tpm", "burst")]
    return (model, *numbers, lane["window"] or "-")


def _lines(way: Way | None, found: FoundQuota) -> Iterator[str]:
    yield from found.lines()
    if not found.has_usage:
        yield "its answers name no usage, so tokens a minute were not looked for"
    if way is not None and way.keys_left:
        yield f"found with the key in {way.key}; its lane has {way.keys_left:,} more, which were not probed"


# The lanes file


def check_place(out: str | None, models: Sequence[str], cache: Path) -> Path:
    """Returns the path to write to: `out`, or if it is None a free name for these models in a folder of the cache.
    Raises UsageError if `out` exists or has no folder, LocalFault if its folder can't be written to."""
    if out is None:
        more = f"-and-{len(models) - 1}-more" if len(models) > 1 else ""
        return _free(cache / FOLDER / f"{_SAFE.sub('-', models[0])}{more}.toml")
    path = Path(out).expanduser()
    if path.exists():
        raise UsageError(f"--out: {path} exists and is not overwritten: name another, or remove it")
    if not path.parent.is_dir():
        raise UsageError(f"--out: expected a file in a folder that exists, got {path}: make {path.parent} first")
    if not os.access(path.parent, os.W_OK):
        raise LocalFault(f"{path.parent} can't be written to: give a file elsewhere with --out")
    return path


def _free(path: Path) -> Path:
    names = (path, *(path.with_stem(f"{path.stem}-{number}") for number in range(2, _NAMES_MAX)))
    return next((each for each in names if not each.exists()), path)


def write_new(path: Path, text: str, *, may_rename: bool) -> Path:
    """Writes the file whole or not at all and returns its path. A file that exists is never overwritten: with
    `may_rename` the next free number is added to the name, else LocalFault is raised, as for every failed write."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if may_rename:
            path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, "utf-8")
        while True:
            try:
                os.link(draft, path)
                return path
            except FileExistsError:
                if not may_rename or (free := _free(path)) == path:
                    raise
                path = free
    except OSError as error:
        raise LocalFault(
            f"{path} can't be written ({error.strerror}): what was found stands above; put it into a file elsewhere"
        ) from error
    finally:
        draft.unlink(missing_ok=True)


def lanes_text(report: Report) -> str:
    """Returns the lanes file as TOML, or an empty text if nothing was found that a lane can declare."""
    lanes = {model: quota for model, quota in report.lanes.items() if _of_lane(quota)}
    if not lanes:
        return ""
    head = [
        f"# What `millstream probe` found, {report.ended}: {spent_line(report)}.",
        "# No number is above what was enforced then, if nobody else used the quota nearly all of it. For --config.",
        *([f"# It was cut short: {inert(' '.join(report.why.split()))}"] if report.why else []),
    ]
    parts = ["\n".join(head)]
    for model, quota in lanes.items():
        # JSON's texts and numbers are valid TOML.
        name = json.dumps(model, ensure_ascii=False).replace("\x7f", "\\u007f")
        rows = (f"{key} = {json.dumps(value)}" for key, value in _of_lane(quota).items())
        parts.append("\n".join([*_comments(report, model, quota), f"[lanes.{name}]", *rows]))
    return "\n\n".join(parts) + "\n"


def _of_lane(found: FoundQuota) -> dict[str, Any]:
    lane = found.as_lane()
    # A lane can declare no less than one a minute.
    names = ("rpm", "tpm", "burst")
    return {name: lane[name] for name in names if lane[name] is not None and lane[name] >= 1}


def _comments(report: Report, model: str, found: FoundQuota) -> Iterator[str]:
    way, lane = report.ways[model], found.as_lane()
    yield f"# at {way.address}" + (f" with the key in {way.key}" if way.key else "")
    if lane["window"] is not None:
        yield f"# window: {lane['window']}" + ("" if lane["burst"] is None else f"; at once: {lane['burst']:,}")
    for line in found.lines():
        yield f"# {inert(' '.join(line.split()))}"
    at_once = 1 + int((lane["rpm"] or 0) * BURST_SHARE)
    if lane["burst"] is not None and lane["burst"] < at_once:
        yield f"# a lane of this rpm may send {at_once} at once, more than that: such calls may have to wait"
