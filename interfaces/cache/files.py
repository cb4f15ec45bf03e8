"""`cache export` and `cache import`: writes a run's responses as a snapshot or as WARC, and reads a snapshot into a
cache.

Owns the choice of cache and file, and the messages. Writers: the engine's snapshot_writer, and warc.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from ...bench.evaluation.door.registry import options_of
from ...configuration.errors import DONE, WITH_FAILURES, UsageError
from ...engine.fault import LocalFault
from ...engine.runs.run_folder import FAILURES, RECORDS, holding, note_in_manifest
from ...engine.server_address import is_address
from ...engine.store.cache import Cache
from ...engine.store.run_keys import keys_of
from ...engine.store.snapshot import Snapshot
from ...engine.store.snapshot_writer import SnapshotCounts, pack, take
from ...format import count_text, size_text
from ...wiring import Settings
from ..terminal.output import note, say_result

# A manifest has times in whole seconds.
_ENDED_WITHIN_S = 1.0


def export_snapshot(run: Path, manifest: dict[str, Any], file: Path, cache: str | None, *, as_json: bool) -> int:
    folder = _cache_of(run, manifest, cache)
    _check_is_free(file)
    with holding(run):
        with opened(folder, "name the run's with --cache") as store:
            packed = pack(store, keys_of(run), file, until=_ended(manifest))
        note_in_manifest(run, snapshot=packed.digest)
    _say(file, folder, packed, _snapshot_text(file, packed), as_json=as_json)
    if packed.newer:
        note(
            f"millstream: {packed.newer:,} of these came after the run had ended: another run has asked again, and a "
            f"repeat may differ"
        )
    if packed.missing:
        note(
            f"millstream: {packed.missing:,} calls of this run have no answer in {folder} (any more): a repeat in mode "
            f"strict fails there; if they lie in another cache, name it with --cache"
        )
    return WITH_FAILURES if packed.missing else DONE


def export_warc(run: Path, manifest: dict[str, Any], file: Path, cache: str | None, *, as_json: bool) -> int:
    from .warc import write_warc

    folder = _cache_of(run, manifest, cache)
    _check_is_free(file)
    about = {"isPartOf": f"run {manifest.get('run_id')}", "robots": "obey"}
    with opened(folder, "name the run's with --cache") as store:
        written = write_warc(store, keys_of(run), file, about)
    silent = f"; {written.silent:,} more hosts gave none" if written.silent else ""
    text = f"{file}: {count_text(written.responses, 'response')} of pages ({size_text(written.bytes)}){silent}"
    _say(file, folder, written, text, as_json=as_json)
    if not written.responses:
        note("millstream: this run fetched no page that the cache still holds")
    return DONE


def import_snapshot(file: Path, cache: str | None, *, as_json: bool) -> int:
    folder = cache_at(cache)
    with closing(Snapshot(file)) as snapshot, closing(Cache(folder)) as store:
        taken = take(snapshot, store)
    there = taken.records - taken.added
    text = (
        f"{folder}: {count_text(taken.added, 'record')} taken from {file}"
        f"{f', {there:,} were there already' if there else ''}; digest {taken.digest}"
    )
    _say(file, folder, taken, text, as_json=as_json)
    return DONE


def _say(file: Path, folder: Path, counts: Struct, text: str, *, as_json: bool) -> None:
    say_result(as_json, lambda: {"file": str(file), "cache": str(folder), **structs.asdict(counts)}, lambda: text)


def _snapshot_text(file: Path, packed: SnapshotCounts) -> str:
    return (
        f"{file}: {count_text(packed.answers, 'answer')}, {count_text(packed.failures, 'failure')}, "
        f"{count_text(packed.bodies, 'body', 'bodies')} and "
        f"{count_text(packed.texts, 'text')} ({size_text(packed.bytes)}); digest {packed.digest}"
    )


def _ended(manifest: dict[str, Any]) -> float | None:
    ended = manifest.get("ended")
    if not isinstance(ended, str):
        return None
    try:
        return datetime.fromisoformat(ended).timestamp() + _ENDED_WITHIN_S
    except ValueError:
        return None


def _cache_of(run: Path, manifest: dict[str, Any], given: str | None) -> Path:
    """Returns the cache that was named, else the one that the run used."""
    if not any((run / name).exists() for name in (RECORDS, FAILURES)):
        raise UsageError(f"{run} has no records yet: there is nothing to export")
    if given is None:
        try:
            given = options_of(manifest)[1].cache
        except (KeyError, TypeError):
            given = None
    return cache_at(given)


def cache_at(folder: str | None) -> Path:
    """Returns the folder of the cache that was named; None, or the address of a shared cache: the user's cache
    folder."""
    if folder is None or is_address(folder):
        return Settings().cache_folder()
    return Path(folder).expanduser()


@contextmanager
def opened(
    folder: Path, what_to_do: str = "nothing has been stored there", *, read_only: bool = True
) -> Iterator[Cache]:
    """Opens a cache during the block. Raises LocalFault, with what to do, if there is none."""
    if not (folder / "data.mdb").exists():
        raise LocalFault(f"cache {folder} does not exist: {what_to_do}")
    with closing(Cache(folder, read_only=read_only)) as store:
        yield store


def _check_is_free(file: Path) -> None:
    if file.exists():
        raise UsageError(f"{file} is there already: move it away, or give another name")
    if not file.parent.is_dir():
        raise UsageError(f"{file}: there is no folder {file.parent}")
