"""The known quotas of lanes: those declared, those learned from answers, and what was used in the last minute.

Reads the notes and ledgers beside the cache; sends nothing, and creates none. An API key is named by its variable.
"""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from ...engine.call import WEB
from ...engine.lane import Lane
from ...engine.lanes import lane_files
from ...engine.lanes.growth import START
from ...engine.lanes.ledger import Ledger
from ...engine.limits import DAY_S, Quota, Tokens, declared_quota, quota_of
from ...format import decimal_text, figure_text, rough_time
from ...providers.retrieval import EVERY_HOST
from ...report.text import table
from ...wiring import Settings, accesses_to, stem_of

_LISTENS_S = 0.2
_COLUMNS = ("lane", "a minute", "declared", "learned", "in use", "last minute")
_AMOUNTS = (("requests", "rpm"), ("tokens", "tpm"), ("input", "itpm"), ("output", "otpm"))
_WINDOWS = {1.0: "a second", 60.0: "a minute", 3_600.0: "an hour", 86_400.0: "a day", 30 * 86_400.0: "a month"}


class KnownLane(Struct, frozen=True):
    """The lane of one model and one API key, as `quota` shows it. `declared`: its configured limits; `seen`: limits
    that the provider has reported; `used`: requests and tokens of the last minute, None without a readable ledger;
    `reached`: how far it came by itself."""

    model: str
    key: str
    address: str
    declared: Lane
    seen: tuple[lane_files.ReportedLimit, ...]
    used: tuple[int, Tokens] | None
    reached: lane_files.Reached = lane_files.Reached()

    @property
    def quota(self) -> Quota:
        return declared_quota(self.declared).lowered_by(quota_of(seen.limit for seen in self.seen))


def lanes_of(settings: Settings, models: Sequence[str]) -> list[KnownLane]:
    """Returns the lanes of these models, one for each API key. Raises ConfigurationError if a key is missing."""
    lanes = []
    for model in models:
        for access in accesses_to(model, settings):
            note = lane_files.LaneNote(model, access.variable, access.target.base_url, settings.lane_of(model))
            lanes.append(_known_lane(note, stem_of(access, settings)))
    return lanes


def recent_lanes(cache: Path, but: Iterable[KnownLane] = ()) -> list[KnownLane]:
    """Returns every lane that was used in the last day, except those in `but`, with the quotas declared then. Of a
    model's lanes at several addresses, as a local server gets a new port at each start, only the latest and those of
    the last minute; of a server of this machine that has ended only the last minute's."""
    left_out = {(lane.model, lane.key, lane.address) for lane in but}
    notes = [(path.with_suffix(""), note) for path, note in lane_files.notes_in(lane_files.lanes_folder(cache))]
    notes = [(stem, note) for stem, note in notes if note.opened_at > time.time() - DAY_S]
    latest: dict[tuple[str, str], float] = {}
    for _, note in notes:
        latest[note.model, note.key] = max(note.opened_at, latest.get((note.model, note.key), 0.0))
    lanes = [
        (_known_lane(note, stem), note.opened_at == latest[note.model, note.key] and _is_there(note.address))
        for stem, note in notes
        if (note.model, note.key, note.address) not in left_out
    ]
    return [lane for lane, is_latest in lanes if is_latest or (lane.used is not None and lane.used[0])]


def _is_there(address: str) -> bool:
    """Returns whether something listens at an address of this machine; True of all others, which are left alone."""
    place = urlsplit(address)
    if place.hostname not in ("127.0.0.1", "localhost", "::1"):
        return True
    with suppress(OSError), socket.create_connection((place.hostname, place.port or 80), _LISTENS_S):
        return True
    return False


def _known_lane(lane: lane_files.LaneNote, stem: Path) -> KnownLane:
    note = lane_files.read_note(stem.with_suffix(lane_files.NOTE))
    seen = () if note is None else note.fresh(time.time())
    used = _used(stem.with_suffix(lane_files.LEDGER))
    reached = lane_files.Reached() if note is None else note.reached
    return KnownLane(lane.model, lane.key, lane.address, lane.declared, seen, used, reached)


def _used(path: Path) -> tuple[int, Tokens] | None:
    if not path.exists():
        return None
    try:
        ledger = Ledger(Quota(), path)
    except OSError:
        return None
    try:
        return ledger.used(time.monotonic())
    finally:
        ledger.close()


def as_json(lanes: Iterable[KnownLane], pages: Iterable[Lane] = ()) -> dict[str, Any]:
    page_lanes = {
        lane.model: {"rpm": lane.rpm, "spacing_s": lane.spacing_s, "concurrency": lane.in_flight_most} for lane in pages
    }
    return {"lanes": [_lane_json(lane) for lane in lanes], **({"pages": page_lanes} if page_lanes else {})}


def tell_pages(lane: Lane) -> str:
    """Returns the pace of pages and their calls in flight as text. Nothing is learned about a web host."""
    who = {WEB: "pages together", EVERY_HOST: "pages of each host"}.get(lane.model) or f"pages of {lane.model[4:]}"
    pace = "as fast as their hosts are spared"
    if lane.rpm is not None:
        pace = f"{lane.rpm:,.0f} a minute"
    elif lane.spacing_s:
        pace = f"{lane.spacing_s:g} s between two"
    return f"{who}: {pace}, {lane.in_flight_most:,} in flight"


def _lane_json(lane: KnownLane) -> dict[str, Any]:
    requests, tokens = (None, None) if lane.used is None else lane.used
    return {
        "model": lane.model,
        "key": lane.key or None,
        "address": lane.address,
        "declared": {**_amounts(declared_quota(lane.declared)), "concurrency": lane.declared.in_flight_most},
        "learned": [_seen_json(seen) for seen in lane.seen],
        "in_use": _amounts(lane.quota),
        "reached": _reached_json(lane.reached) if lane.reached.in_flight else None,
        "used": {
            "requests": requests,
            "input": None if tokens is None else tokens.input,
            "output": None if tokens is None else tokens.output,
        },
    }


def _reached_json(reached: lane_files.Reached) -> dict[str, Any]:
    seconds_ago = round(max(0.0, time.time() - reached.at), 1)
    return {"in_flight": reached.in_flight, "per_s": reached.per_s, "seconds_ago": seconds_ago}


def _amounts(quota: Quota) -> dict[str, float | None]:
    return {name: getattr(quota, name) for _, name in _AMOUNTS}


def _seen_json(seen: lane_files.ReportedLimit) -> dict[str, Any]:
    names = ("of", "limit", "window_s", "remaining")
    fields = {name: getattr(seen.limit, name) for name in names}
    return {**fields, "seconds_ago": round(max(0.0, time.time() - seen.at), 1)}


def tell(lanes: Sequence[KnownLane]) -> str:
    """Returns the table of lanes, then a line on those without any known quota, for each way in which they begin."""
    rows: list[tuple[str, ...]] = [_COLUMNS]
    unknown: dict[str, list[str]] = {}
    names = Counter(map(_named, lanes))
    for lane in lanes:
        name = _named(lane) if names[_named(lane)] == 1 else f"{_named(lane)} at {lane.address}"
        lane_rows = _rows(lane, name)
        rows += lane_rows
        if not any(cell != "-" for row in lane_rows for cell in row[2:4]):
            begins = f"{_begins(lane.reached)}, and up to {lane.declared.in_flight_most:,}"
            unknown.setdefault(begins, []).append(name)
    lines = [
        f"no quota is declared or learned for {', '.join(names)}: begins with {begins}, until the provider refuses "
        "calls or answers slow down"
        for begins, names in unknown.items()
    ]
    return "\n".join([table(rows), *([""] if lines else []), *lines])


def _rows(lane: KnownLane, name: str) -> list[tuple[str, ...]]:
    requests, tokens = lane.used or (0, Tokens())
    used = {"requests": requests, "tokens": tokens.total, "input": tokens.input, "output": tokens.output}
    rows: list[tuple[str, ...]] = []
    for amount, option in _AMOUNTS:
        declared, in_use = getattr(declared_quota(lane.declared), option), getattr(lane.quota, option)
        learned = [seen for seen in lane.seen if seen.limit.of == amount]
        if amount != "requests" and declared is None and not learned and not (amount == "tokens" and used[amount]):
            continue
        limits = ", ".join(map(_learned, learned)) or "-"
        last = "-" if lane.used is None else f"{used[amount]:,}"
        rows.append(("" if rows else name, amount, decimal_text(declared), limits, decimal_text(in_use), last))
    return rows


def _begins(reached: lane_files.Reached) -> str:
    """Returns where a lane without a known quota begins."""
    if not reached.in_flight:
        return f"{START} calls in flight"
    most = f" at {figure_text(reached.per_s)} a second" if reached.per_s is not None else ""
    found = rough_time(round(time.time() - reached.at))
    return f"{reached.in_flight:,} calls in flight{most} (found {found} ago)"


def _named(lane: KnownLane) -> str:
    return f"{lane.model} ({lane.key})" if lane.key else lane.model


def _learned(seen: lane_files.ReportedLimit) -> str:
    window_s = seen.limit.window_s
    window = "" if window_s == 60 else f" {_WINDOWS.get(window_s, f'in {window_s:g} s')}"
    return f"{seen.limit.limit or 0:,.0f}{window} ({rough_time(round(time.time() - seen.at))} ago)"
