"""What a probe found, as the table and sentences for a person, JSON for a program, and the lanes file.

Owns their words, that no number is above what was found, and that no file is overwritten. Sends nothing.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count
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
from .answers import Window

FOLDER = "probes"
# In file names every other character of a model's name becomes a hyphen.
_SAFE = re.compile(r"[^A-Za-z0-9._-]+")
_COLUMNS = ("model", "requests a minute", "tokens a minute", "burst", "window")


class Way(Struct, frozen=True):
    """How a model was reached. `address`: the provider's URL; `key`: the environment variable that holds the API key
    (empty: none); `keys_left`: how many more API keys its lane has, which were not probed."""

    address: str
    key: str = ""
    keys_left: int = 0


class FoundQuota(Struct):
    """The quotas of one model, as far as found (None: not found): requests and tokens a minute, calls at once after a
    rest (`burst`), and the kind of window as headers show it. `tested_*`: the most that was admitted within a minute;
    `header_*`: the limit a minute that headers report; `has_usage`: whether answers report tokens; `ended`: what ended
    the probe early (empty: nothing)."""

    rpm: float | None = None
    tpm: float | None = None
    burst: float | None = None
    window: Window | None = None
    tested_rpm: int = 0
    tested_tpm: int = 0
    header_rpm: float | None = None
    header_tpm: float | None = None
    has_usage: bool = True
    ended: str = ""

    def lines(self) -> Iterator[str]:
        """Yields sentences for a person: what was not found, what headers say beside it, and what ended the probe."""
        for what, limit, header, tested in (
            ("requests", self.rpm, self.header_rpm, self.tested_rpm),
            ("tokens", self.tpm, self.header_tpm, self.tested_tpm),
        ):
            if limit is None:
                most = f"at least {tested:,}, which were admitted within a minute" if tested else "no step was finished"
                yield f"{what} a minute: not found; {most}"
            if header is not None:
                enforced = "" if limit is None else f"; at least {_rounded(limit):,} are admitted"
                yield f"headers say {header:,.0f} {what} a minute{enforced}"
        if self.ended:
            yield self.ended

    def as_lane(self) -> dict[str, Any]:
        numbers = {"rpm": self.rpm, "tpm": self.tpm, "burst": self.burst}
        return {**{name: _rounded(number) for name, number in numbers.items()}, "window": self.window}


def _rounded(number: float | None) -> float | int | None:
    """Returns the number rounded down: to whole numbers from 100 on, to hundredths below; None stays None."""
    if number is None:
        return None
    whole = math.floor(number + 1e-9)
    return whole if whole >= 100 or math.isclose(whole, number) else math.floor(number * 100) / 100


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
        return self.end.exit_code(
            is_pending=any(quota.ended for quota in self.lanes.values()),
            has_failures=any(quota.rpm is quota.tpm is None for quota in self.lanes.values()),
        )

    @property
    def spent(self) -> str:
        """The calls and dollars in words."""
        cost = "cost unknown" if self.cost is None else f"${self.cost:.6f}"
        return f"{count_text(self.calls, 'call')}, {cost}"


def as_json(report: Report) -> dict[str, Any]:
    lanes = {model: quota.as_lane() for model, quota in report.lanes.items()}
    return {"lanes": lanes, "calls": report.calls, "cost": None if report.cost is None else round(report.cost, 6)}


def tell(report: Report) -> str:
    rows: list[tuple[str, ...]] = [_COLUMNS]
    sentences: list[str] = []
    for model, quota in report.lanes.items():
        lane, way = quota.as_lane(), report.ways.get(model, Way(""))
        numbers = ("-" if lane[name] is None else f"{lane[name]:,}" for name in ("rpm", "tpm", "burst"))
        rows.append((model, *numbers, lane["window"] or "-"))
        lines = list(quota.lines())
        if not quota.has_usage:
            lines.append("its answers name no usage, so tokens a minute were not looked for")
        if way.keys_left:
            lines.append(f"found with the key in {way.key}; its lane has {way.keys_left:,} more, which were not probed")
        sentences += [f"{model}: {line.removeprefix(f'{model}: ')}" for line in lines]
    return "\n".join([table(rows, lean=(0, 4)), "", *sentences, report.spent])


# The lanes file


def check_place(out: str | None, models: Sequence[str], cache: Path) -> Path:
    """Returns the path to write to: `out`, or if it is None a free name for these models in a folder of the cache.
    Raises UsageError if `out` exists or has no folder, LocalFault if its folder can't be written to."""
    if out is None:
        more = f"-and-{len(models) - 1}-more" if len(models) > 1 else ""
        path = cache / FOLDER / f"{_SAFE.sub('-', models[0])}{more}.toml"
        return _free(path)
    path = Path(out).expanduser()
    if path.exists():
        raise UsageError(f"--out: {path} exists and is not overwritten: name another, or remove it")
    if not path.parent.is_dir():
        raise UsageError(f"--out: expected a file in a folder that exists, got {path}: make {path.parent} first")
    if not os.access(path.parent, os.W_OK):
        raise LocalFault(f"{path.parent} can't be written to: give a file elsewhere with --out")
    return path


def _free(path: Path) -> Path:
    """Returns the path, if it is free, or with the next free number at the end of its name."""
    names = chain([path], (path.with_stem(f"{path.stem}-{number}") for number in count(2)))
    return next(each for each in names if not each.exists())


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
                if not may_rename:
                    raise
                path = _free(path)
    except OSError as error:
        raise LocalFault(
            f"{path} can't be written ({error.strerror}): copy the quotas that are printed above into a file elsewhere"
        ) from error
    finally:
        draft.unlink(missing_ok=True)


def lanes_text(report: Report) -> str:
    """Returns the lanes file as TOML, or an empty text if nothing was found that a lane can declare."""
    parts = [part for model, quota in report.lanes.items() if (part := _lane_text(report.ways[model], model, quota))]
    if not parts:
        return ""
    head = [
        f"# What `millstream probe` found, {report.ended}: {report.spent}.",
        "# No number is above what was enforced then, if nobody else used the quota nearly all of it. For --config.",
    ]
    why = str(report.end.fault or "")
    if report.end.signal is not None:
        why = f"interrupted by {Signals(report.end.signal).name}"
    head += [f"# It was cut short: {_one_line(why)}"] if why else []
    return "\n\n".join(["\n".join(head), *parts]) + "\n"


def _lane_text(way: Way, model: str, quota: FoundQuota) -> str:
    lane = quota.as_lane()
    # A lane can declare no less than one a minute.
    declared = {name: lane[name] for name in ("rpm", "tpm", "burst") if lane[name] is not None and lane[name] >= 1}
    if not declared:
        return ""
    lines = [f"at {way.address}" + (f" with the key in {way.key}" if way.key else "")]
    if lane["window"] is not None:
        lines.append(f"window: {lane['window']}" + ("" if lane["burst"] is None else f"; at once: {lane['burst']:,}"))
    lines += quota.lines()
    at_once = 1 + int((lane["rpm"] or 0) * BURST_SHARE)
    if lane["burst"] is not None and lane["burst"] < at_once:
        lines.append(f"a lane of this rpm may send {at_once} at once, more than that: such calls may have to wait")
    # JSON's texts and numbers are valid TOML.
    name = json.dumps(model, ensure_ascii=False).replace("\x7f", "\\u007f")
    rows = (f"{key} = {json.dumps(value)}" for key, value in declared.items())
    return "\n".join([*(f"# {_one_line(line)}" for line in lines), f"[lanes.{name}]", *rows])


def _one_line(text: str) -> str:
    return inert(" ".join(text.split()))
