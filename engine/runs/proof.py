"""The checks that every proof of a run makes: the manifest's hashes, each line of both journals, counts and scores.

Reports what is wrong and changes nothing. Knows no benchmark: what else to check, and the scores, are passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar, cast, get_args

import msgspec
import orjson
from msgspec import Struct, field, structs

from ...format import command_text
from ..call import Usage
from ..fault import LocalFault
from ..folder_file import read_whole
from .journal import damaged_places, read_blocks, torn_tail
from .run_folder import FAILURES, MANIFEST, RECORDS, manifest_hash, specification_hash

WRONGS_KEPT = 1_000
# The statuses of a record; every other is the kind of a failure.
ANSWERED = ("ok", "refused")
_AMOUNTS = ("attempts", "maybe_billed", "latency_ms")
_AMOUNT_MAX = 10**12
_NUMBER = (int, float)
_COUNTS = tuple(f".{count}" for count in Usage.__struct_fields__)
# What computing a run's scores again raises for a folder that was changed.
NOT_COMPARABLE = (ValueError, TypeError, OSError, LocalFault)


class StatusRecord(Protocol):
    """The interface of a record of any benchmark: a struct with a status."""

    __struct_fields__: ClassVar[tuple[str, ...]]

    @property
    def status(self) -> str: ...


_Record = TypeVar("_Record", bound=StatusRecord)
_Line = TypeVar("_Line")


class Proof(Struct):
    """The result of proving a run: its counts of records, failures and pending items, and what is wrong. `wrong` has
    the first thousand messages, `wrongs` counts all; `unproven` says what could not be checked, `remarks`
    what a reader of sound figures must know; `torn` names torn
    last lines. `held`: items that wait until an earlier failure is tried again."""

    records: int = 0
    failures: int = 0
    pending: int = 0
    held: int = 0
    torn: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    wrongs: int = 0
    unproven: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def add(self, what: str) -> None:
        self.wrongs += 1
        if len(self.wrong) < WRONGS_KEPT:
            self.wrong.append(what)


def proof_of(manifest: Mapping[str, Any], data: str | None, why_unread: str = "") -> Proof:
    """Returns a new proof in which the manifest's hashes and the data set's digest are checked. `data`: that digest;
    None: the data set can't be read, for this reason where it is known."""
    proof = Proof()
    check_hashes(manifest, MANIFEST, proof)
    noted = manifest["specification"].get("data")
    if data is None:
        reason = f" ({why_unread})" if why_unread else ""
        proof.unproven.append(f"data set: not readable{reason}, so its digest was not compared")
    elif data != noted:
        proof.add(f"data set: its digest is {data[:12]}…, the run's was {str(noted)[:12]}…")
    return proof


def check_hashes(manifest: Mapping[str, Any], name: str, proof: Proof) -> bool:
    """Adds to the proof if a manifest's own hashes are not those of its contents, and returns whether it is unchanged.
    `name` is that of its file."""
    is_unchanged = manifest_hash(manifest) == manifest.get("manifest_hash")
    if specification_hash(manifest["specification"]) != manifest.get("specification_hash"):
        proof.add(f"{name}: the specification's hash is not the one noted beside it: one of both was changed")
    if not is_unchanged:
        proof.add(f"{name}: its hash is not the one noted in it: something in it was changed")
    return is_unchanged


def whole_records(
    folder: Path, name: str, kind: type[_Record], benchmark: str, proof: Proof
) -> Iterator[tuple[str, _Record]]:
    """Yields each whole record of one journal, with its place in words (lines from 1); adds all else to the proof."""
    fields = [field.name for field in structs.fields(cast(type[Struct], kind)) if _has_amounts(field)]
    for number, (here, record) in enumerate(whole_lines(folder / name, kind, f"record of {benchmark}", proof), 1):
        if name == RECORDS:
            proof.records = number
        else:
            proof.failures = number
        if record is None:
            continue
        for wrong in _impossible(record, fields):
            proof.add(f"{here}: {wrong}")
        if (record.status not in ANSWERED) != (name == FAILURES):
            proof.add(f"{here}: status {record.status} does not belong in this file")
        yield here, record


def whole_lines(
    path: Path, kind: type[_Line], what: str, proof: Proof, mended_by: str = "start"
) -> Iterator[tuple[str, _Line | None]]:
    """Yields each line of a file, with its place in words (lines from 1). One that is damaged, or that is no `what`, is
    added to the proof and yielded as None; so is a torn last line, but it is not yielded. `mended_by`: what sets that
    one aside."""
    decode, name, before = msgspec.json.Decoder(kind).decode, path.name, 0
    for lines in read_blocks(path):
        damaged = damaged_places(lines, must_be_sealed=True)
        for at, data in enumerate(lines):
            here, line = f"{name} line {before + at + 1}", None
            if at in damaged:
                proof.add(f"{here}: damaged: its checksum is missing or wrong")
            else:
                try:
                    line = decode(data)
                except (msgspec.MsgspecError, UnicodeError) as error:
                    proof.add(f"{here}: no {what}: {error}")
            yield here, line
        before += len(lines)
    proof.torn += torn_tail(path, mended_by)


def _has_amounts(field: structs.FieldInfo) -> bool:
    return field.name.startswith("cost") or field.name in _AMOUNTS or Usage in (field.type, *get_args(field.type))


def _impossible(record: StatusRecord, fields: Sequence[str]) -> list[str]:
    """Returns the counts and amounts in these fields that no run writes: below 0, or beyond what any call has."""
    wrong = []
    for name in fields:
        if not (value := getattr(record, name)):
            continue
        is_usage = value.__class__ is Usage
        for place, amount in enumerate(structs.astuple(value)) if is_usage else ((0, value),):
            if amount and isinstance(amount, _NUMBER) and not 0 <= amount <= _AMOUNT_MAX:
                wrong.append(f"{name}{_COUNTS[place] if is_usage else ''} {amount:,}: expected 0 to {_AMOUNT_MAX:,}")
    return wrong


class OwnCalls:
    """Finds copies: two trials of one item never have the same calls, since a call's key has the trial's number."""

    def __init__(self, proof: Proof) -> None:
        self._proof = proof
        self._places: dict[Hashable, str] = {}

    def add(self, here: str, item: tuple[Hashable, ...], keys: tuple[str, ...]) -> None:
        """Notes a record's line, its item (with model, temperature and step) and the cache keys of its calls."""
        if any(keys) and (first := self._places.setdefault((*item, *keys), here)) != here:
            self._proof.add(f"{here}: its calls are those of {first}: one of both is a copy")


def compare_counts(manifest: Mapping[str, Any], proof: Proof) -> None:
    counts = manifest.get("counts")
    if manifest.get("ended") is None or not counts:
        proof.unproven.append("counts: the run has not ended, so the manifest has none")
        return
    noted = sum(row["ok"] + row["refused"] for row in counts), sum(sum(row["failed"].values()) for row in counts)
    if noted != (proof.records, proof.failures):
        proof.add(
            f"manifest.json: counts {noted[0]:,} records and {noted[1]:,} failures; {RECORDS} holds "
            f"{proof.records:,}, {FAILURES} {proof.failures:,}"
        )


def compare_scores(
    folder: Path,
    manifest: Mapping[str, Any],
    benchmark: str,
    compute: Callable[[], dict[str, Any]],
    proof: Proof,
) -> None:
    """Compares scores.json with what `compute` returns, and notes differences in the proof. `benchmark` names the part
    of the file that has the models."""
    path = folder / "scores.json"
    if not path.exists():
        proof.unproven.append("scores.json: not there, so nothing to compare")
        return
    if manifest.get("ended") is None:
        # Written when an earlier part of the run ended, or by `score` meanwhile: the records have grown since.
        proof.unproven.append("scores.json: the run has not ended, so its scores are of an earlier state")
        return
    try:
        noted = orjson.loads(read_whole(path))
        computed = orjson.loads(orjson.dumps(compute()))
    except NOT_COMPARABLE as error:
        proof.add(f"scores.json: can't be compared: {error}")
        return
    part = noted.get(benchmark) if isinstance(noted, dict) else None
    models, theirs = computed[benchmark].get("models", {}), part.get("models", {}) if isinstance(part, dict) else {}
    if noted != computed:
        differing = [model for model in models.keys() | theirs.keys() if models.get(model) != theirs.get(model)]
        named = ", ".join(sorted(differing)) or "the whole file"
        proof.add(
            f"scores.json: not what the records give, for {named}: `{command_text('score', folder)}` writes it anew"
        )
