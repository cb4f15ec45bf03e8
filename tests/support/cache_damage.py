"""A cache's file damaged in many ways, and a whole piece of work on each: run as a program, since one may kill it.

Prints a line for each case: its number, its kind, and `refused`, `whole` or what went wrong.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path

from answers import body_of, fill, filled, key_of

from millstream.engine.fault import LocalFault
from millstream.engine.store.cache import Cache
from millstream.engine.store.entries import derived_key

COUNT = 600
MORE = 60
PAGE = 4096
_BRANCH, _LEAF, _OVERFLOW = 1, 2, 4


def prepare(folder: Path) -> Path:
    """Several levels of pages, large values, texts, free pages at many places."""
    filled(folder, COUNT + 200)
    cache = Cache(folder)

    async def change() -> None:
        for number in range(0, COUNT, 7):
            cache.keep(derived_key(key_of(number), b"1"), b"text %d" % number)
        await fill(cache, range(COUNT, COUNT + 1))

    asyncio.run(change())
    cache.close()
    with_holes = Cache(folder, scope=b"s" * 16)
    asyncio.run(fill(with_holes, range(100)))
    with_holes.drop_scope()
    with_holes.close()
    return folder


def pages_of(whole: bytes, flags: int) -> list[int]:
    """Numbers of the pages of a kind, those that are free now among them."""
    kinds = (struct.unpack_from("=QHH", whole, at) for at in range(0, len(whole), PAGE))
    return [number for number, (at, _, found) in enumerate(kinds) if found == flags and at == number]


def _flip(whole: bytes, chance: random.Random, places: Callable[[], int], count: int = 1) -> bytes:
    data = bytearray(whole)
    for _ in range(count):
        data[places()] ^= 1 << chance.randrange(8)
    return bytes(data)


def _in_pages(flags: int, most: int) -> Callable[[bytes, random.Random], bytes]:
    def damage(whole: bytes, chance: random.Random) -> bytes:
        page = chance.choice(pages_of(whole, flags))
        return _flip(whole, chance, lambda: page * PAGE + chance.randrange(most))

    return damage


def _zeroed(whole: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(whole) // PAGE) * PAGE
    return whole[:at] + bytes(PAGE) + whole[at + PAGE :]


def _moved(whole: bytes, chance: random.Random) -> bytes:
    """A page stands where another was."""
    source, at = (chance.randrange(len(whole) // PAGE) * PAGE for _ in range(2))
    return whole[:at] + whole[source : source + PAGE] + whole[at + PAGE :]


KINDS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "cut anywhere": lambda whole, chance: whole[: chance.randrange(len(whole))],
    "cut at a page": lambda whole, chance: whole[: chance.randrange(1, len(whole) // PAGE) * PAGE],
    "cut at the end": lambda whole, chance: whole[: -chance.randrange(1, 3 * PAGE)],
    "a bit": lambda whole, chance: _flip(whole, chance, lambda: chance.randrange(len(whole))),
    "many bits": lambda whole, chance: _flip(whole, chance, lambda: chance.randrange(len(whole)), 50),
    "first pages": lambda whole, chance: _flip(
        whole, chance, lambda: chance.randrange(2) * PAGE + chance.randrange(152)
    ),
    "branch": _in_pages(_BRANCH, 400),
    "leaf": _in_pages(_LEAF, PAGE),
    "leaf head": _in_pages(_LEAF, 32),
    "overflow head": _in_pages(_OVERFLOW, 16),
    "a zeroed page": _zeroed,
    "a moved page": _moved,
    "more at the end": lambda whole, chance: whole + chance.randbytes(chance.randrange(3 * PAGE)),
}


def work(folder: Path) -> str:
    """Read all, write more, drop some, as a run and the verbs of the cache do. What of it was wrong."""
    cache = Cache(folder)
    wrong = ""
    try:
        for number in range(COUNT):
            entry = cache.get(key_of(number))
            if entry is not None and entry.response.body != body_of(number):
                wrong = f"wrong answer {number}"
        known = {key_of(number): body_of(number) for number in range(COUNT + 200)}
        if any(known.get(key) != entry.response.body for key, entry in cache.entries()):
            wrong = "wrong entry"
        for number in range(0, COUNT, 3):
            asyncio.run(fill(cache, range(number, number + 2)))
        asyncio.run(fill(cache, range(COUNT, COUNT + MORE)))
        cache.derived_from(key_of(0))
        cache.statistics()
        cache.prune(older_than_s=3600)
    finally:
        cache.close()
    cache = Cache(folder)
    if [cache.get(key_of(number)) for number in range(COUNT, COUNT + MORE)].count(None):
        wrong = wrong or "a new answer is lost"
    cache.prune()
    cache.close()
    return wrong


def main(source: Path, folder: Path, first: int, after: int) -> None:
    whole = (source / "data.mdb").read_bytes()
    for number in range(first, after):
        kind = list(KINDS)[number % len(KINDS)]
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        print(number, kind, end=": ", flush=True)
        (folder / "data.mdb").write_bytes(KINDS[kind](whole, random.Random(number)))
        try:
            print(work(folder) or "whole", flush=True)
        except LocalFault as fault:
            print("refused", fault, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
