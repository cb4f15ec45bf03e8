"""Seeded changes to the files of a finished run: accidents at any byte or line, and forgeries with new checksums."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from millstream.engine.runs.journal import sealed
from millstream.engine.runs.run_folder import manifest_hash, specification_hash

JOURNALS = ("records.jsonl", "failures.jsonl", "judgements.jsonl", "judgements-failures.jsonl")
DOCUMENTS = ("scores.json", "manifest.json", "judgements.json")
DERIVED = ("report.html", "tables/", ".lock")


class Change(NamedTuple):
    """What was changed in which file; `field` is the forged field of a line or document, by its names with dots."""

    file: str
    kind: str
    field: str = ""


def plant(folder: Path, other: Path, random: Random) -> Change:
    """Changes one file of a folder; lines of another program's folder may stand in for its own."""
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    journals = [name for name in files if name in JOURNALS and (folder / name).stat().st_size]
    proven = [name for name in files if name in DOCUMENTS] + journals
    # One in twenty falls upon what the report is made of; all else upon what a run is proven by.
    name = random.choice(files if random.random() < 0.05 else proven)
    path = folder / name
    if name in DOCUMENTS and random.random() < 0.3:
        return Change(name, "forged", _forge_document(path, random))
    if name in journals and random.random() < 0.5:
        return Change(name, "forged", _forge_line(path, random))
    if name in journals and random.random() < 0.4:
        kind = random.choice(list(LINES))
        lines = path.read_bytes().splitlines(keepends=True)
        LINES[kind](lines, (other / "records.jsonl").read_bytes().splitlines(keepends=True), random)
        path.write_bytes(b"".join(lines))
        return Change(name, kind)
    kind = random.choice([*BYTES, "deleted", "renamed"])
    if kind == "deleted":
        path.unlink()
    elif kind == "renamed":
        shutil.move(path, path.with_name(path.name + ".old"))
    else:
        path.write_bytes(BYTES[kind](path.read_bytes(), random))
    return Change(name, kind)


def _flip(data: bytes, random: Random) -> bytes:
    at = random.randrange(max(len(data), 1))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :] if data else b"\n"


def _digit(data: bytes, random: Random) -> bytes:
    places = [at for at, byte in enumerate(data) if 48 <= byte <= 57]
    if not places:
        return _flip(data, random)
    at = random.choice(places)
    return data[:at] + b"%d" % ((data[at] - 48 + random.choice((1, 9))) % 10) + data[at + 1 :]


BYTES: dict[str, Callable[[bytes, Random], bytes]] = {
    "bit": _flip,
    "digit": _digit,
    "truncated": lambda data, random: data[: random.randrange(max(len(data), 1))],
    "torn last line": lambda data, random: data[: -random.randint(1, 200)],
    "appended": lambda data, random: data + random.choice((b"x", b"{}\n", b"\0" * 512, b'{"id":"a"}\n')),
}


def _move(lines: list[bytes], _others: list[bytes], random: Random) -> None:
    lines.insert(random.randrange(len(lines)), lines.pop(random.randrange(len(lines))))


LINES: dict[str, Callable[[list[bytes], list[bytes], Random], None]] = {
    "line removed": lambda lines, others, random: lines.__delitem__(random.randrange(len(lines))),
    "line doubled": lambda lines, others, random: lines.append(random.choice(lines)),
    "line moved": _move,
    "line of another folder": lambda lines, others, random: lines.__setitem__(
        random.randrange(len(lines)), random.choice(others)
    ),
}


def _forge_line(path: Path, random: Random) -> str:
    """Changes one value of one line and gives the line the checksum that its bytes ask for."""
    lines = path.read_bytes().splitlines()
    at = random.randrange(len(lines))
    line = json.loads(lines[at])
    del line["crc"]
    field = _forge_value(line, random)
    lines[at] = sealed(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode()).rstrip(b"\n")
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return field


def _forge_document(path: Path, random: Random) -> str:
    """Changes one value of a document; the manifest gets the hash that its contents ask for."""
    document = json.loads(path.read_bytes())
    field = _forge_value(document, random)
    write_document(path, document)
    return field


def write_document(path: Path, document: dict[str, Any]) -> None:
    """Writes a document with the hashes that its contents ask for."""
    if path.name != "scores.json":
        document["specification_hash"] = specification_hash(document["specification"])
        document["manifest_hash"] = manifest_hash(document)
    path.write_text(json.dumps(document, indent=2))


def _forge_value(holder: Any, random: Random) -> str:
    places = list(_leaves(holder))
    names = random.choice(places)
    for name in names[:-1]:
        holder = holder[name]
    holder[names[-1]] = _other(holder[names[-1]], random)
    return ".".join(name if isinstance(name, str) else "*" for name in names)


def _leaves(value: Any, names: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [leaf for name, more in inner for leaf in _leaves(more, (*names, name))]
    return found or ([names] if names and not isinstance(value, dict | list) else [])


def _other(value: Any, random: Random) -> Any:
    """Returns another value of the same type where there is one."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + random.choice((1, -1))
        case str():
            return value + "x" if not value or random.random() < 0.5 else value[:-1]
        case _:
            return 1
