"""The runs and load tests below some folders, each as a row: its state, how far it is, what it costs, what holds it up.

Reads manifests, live states and figures; a file that has not changed is not read again. Reads no record and takes no
lock, so that a run never meets this reader.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...bench.evaluation.page.reporting import PAGE
from ...bench.load.folder import CALLS, LOAD
from ...bench.load.report.write import read
from ...bench.load.summary import tell
from ...configuration.errors import UsageError
from ...engine.fault import LocalFault
from ...engine.runs.live import is_sending, state_of
from ...engine.runs.run_folder import MANIFEST, read_manifest
from ...report.escaping import visible
from ...report.labels import folder_labels

# So deep are folders looked into below the named ones, and so many runs are shown.
DEPTH_MAX, RUNS_MAX = 4, 2_000
# New folders are looked for once a second, or more rarely where that takes long.
_FIND_EVERY_S, _FINDING_SHARE = 1.0, 0.05
_WRITTEN_LATELY_S = 5.0
# What a field that is missing, or of another type, makes of the code that reads a file of somebody else.
OF_FIELDS = (LookupError, TypeError, AttributeError, ValueError)
_COUNTED = ("ok", "refused", "pending", "held", "cached")


class RunFolders:
    """All runs and load tests in `roots` and below them."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = folder_labels(roots)
        self._paths: dict[str, Path] = {}
        self._find_at = 0.0
        # Several threads ask at once.
        self._lock = threading.Lock()
        self._kept: dict[Path, tuple[tuple[int, int], Mapping[str, Any]]] = {}

    def path_of(self, name: str) -> Path | None:
        """Returns the folder of a row's name; None: there is no such row."""
        with self._lock:
            return self._paths.get(name) or self._found().get(name)

    def rows(self) -> list[dict[str, Any]]:
        """Returns the rows, those that send first, then the latest."""
        with self._lock:
            rows = [{"name": name, **self._row(path)} for name, path in self._found().items()]
        return sorted(rows, key=lambda row: (row["state"] in _SENDING, str(row.get("started") or "")), reverse=True)

    def _found(self) -> Mapping[str, Path]:
        began = time.monotonic()
        if began >= self._find_at:
            found = dict.fromkeys(path for root in self._roots for path in _below(root, DEPTH_MAX))
            self._paths = {_name_of(path, self._roots): path for path in list(found)[:RUNS_MAX]}
            self._kept = {path: kept for path, kept in self._kept.items() if path in found}
            ended = time.monotonic()
            self._find_at = ended + max(_FIND_EVERY_S, (ended - began) / _FINDING_SHARE)
        return self._paths

    def _row(self, path: Path) -> dict[str, Any]:
        report = {"report": str(path / PAGE) if (path / PAGE).is_file() else None}
        if not (path / MANIFEST).exists():
            return {"kind": "load", **self._once(path, LOAD if (path / LOAD).exists() else CALLS, _load_row), **report}
        row = dict(self._once(path, MANIFEST, _run_row))
        state = state_of(path)
        if is_sending(state):
            row.update(state or {})
        elif state is not None and row["state"] != "ended":
            row.update(state="silent", silent_s=state["silent_s"], line=state.get("line", ""))
        return {"kind": "run", **row, **report}

    def _once(self, path: Path, name: str, read: Callable[[Path], Mapping[str, Any]]) -> Mapping[str, Any]:
        """Returns what was read in a folder, anew if the file has changed."""
        try:
            status = (path / name).stat()
        except OSError:
            return {"state": "unreadable"}
        mark = (status.st_mtime_ns, status.st_size)
        kept = self._kept.get(path)
        is_written = name == CALLS  # its row depends on the time
        if kept is None or kept[0] != mark or is_written:
            try:
                row = read(path)
            except OF_FIELDS as error:
                row = {"state": "unreadable", "line": f"{name} is none of ours ({error!r:.200})"}
            kept = self._kept[path] = mark, row
        return kept[1]


_SENDING = ("running", "paused", "ending")


def _below(root: Path, depth: int) -> Iterator[Path]:
    try:
        with os.scandir(root) as entries:
            here = sorted(entries, key=lambda entry: entry.name)
        names = {entry.name for entry in here}
        folders = [entry.name for entry in here if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return
    if names & {MANIFEST, LOAD, CALLS}:
        yield root
        return
    for name in folders if depth else ():
        if not name.startswith("."):
            yield from _below(root / name, depth - 1)


def _name_of(path: Path, roots: Mapping[Path, str]) -> str:
    """Returns the path below its root, with the root's label where there are several."""
    root, label = next(each for each in roots.items() if path.is_relative_to(each[0]))
    below = path.relative_to(root)
    named = str(below) if len(roots) == 1 and path != root else str(Path(label, below))
    # A line's end parts the names of several runs in an address.
    return visible(named).replace("\n", "␊")


def _run_row(path: Path) -> dict[str, Any]:
    try:
        manifest = read_manifest(path)
    except LocalFault as fault:
        return {"state": "unreadable", "line": str(fault)}
    specification, counts = manifest["specification"], manifest.get("counts") or ()
    row: dict[str, Any] = {
        "state": "ended" if manifest.get("ended") else "begun",
        "benchmark": specification.get("task") or specification.get("benchmark"),
        # Two tasks have other names and may have the same items.
        "items_of": specification.get("benchmark"),
        "models": list(specification.get("models") or ()),
        "started": str(manifest.get("started") or ""),
        "ended": str(manifest.get("ended") or ""),
    }
    if counts:
        sums = {name: sum(each.get(name) or 0 for each in counts) for name in _COUNTED}
        failed = sum(sum((each.get("failed") or {}).values()) for each in counts)
        done = sums["ok"] + sums["refused"] + failed
        costs = [each["cost"] for each in counts if each.get("cost") is not None]
        row.update(done=done, total=done + sums["pending"] + sums["held"], failed=failed, cached=sums["cached"])
        spent = manifest.get("spent")
        row.update(spent=spent if spent is not None else sum(costs) if costs else None)
        if row["state"] == "ended" and sums["pending"]:
            row.update(state="stopped", stopped=next(iter(manifest.get("stops") or ()), None))
    return row


def _load_row(path: Path) -> dict[str, Any]:
    if not (path / LOAD).exists():
        age_s = time.time() - (path / CALLS).stat().st_mtime
        return {"state": "running" if age_s < _WRITTEN_LATELY_S else "begun", "line": "a load test: figures at its end"}
    try:
        load = read(path)
        return {
            "state": "ended",
            "models": list(load.models),
            "started": datetime.fromtimestamp(load.began, UTC).isoformat(timespec="seconds"),
            "spent": load.spent,
            "line": "load test: " + ", ".join(filter(None, (load.ending, load.ending_detail))),
            "figures": tell(load),
        }
    except (LocalFault, UsageError) as error:
        return {"state": "unreadable", "line": f"{LOAD} can't be read: {error}"}
