"""Checks whether an LMDB file can be trusted: reads every page that LMDB would follow, by plain reads.

LMDB maps its file and believes what stands there: a page number beyond the end, a node beyond its page, or a page that
is both free and in use kills the process or mixes up answers. Knows the layout of LMDB 0.9 and nothing of answers:
values have a checksum of their own. Changes nothing.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_HEADER = struct.Struct("=QHHHH")  # number, padding, flags, lower, upper
_OVERFLOW = struct.Struct("=QHHI")  # number, padding, flags, how many pages
_NODE = struct.Struct("=HHHH")  # low, high, flags, size of the key
_TREE = struct.Struct("=IHHQQQQQ")  # padding, flags, depth, branches, leaves, overflow pages, entries, root
_META = struct.Struct("=IIQQ")  # magic, version, address, size of the map; two trees follow, then these:
_META_END = struct.Struct("=QQ")  # last page, transaction
_NUMBER = struct.Struct("=Q")
_META_BYTES = _HEADER.size + _META.size + 2 * _TREE.size + _META_END.size

_MAGIC, _VERSION = 0xBEEFC0DE, 1
_BRANCH, _LEAF, _IS_OVERFLOW, _IS_META = 1, 2, 4, 8
_BIG, _NAMED = 1, 2
_INTEGER_KEYS = 8
_NO_ROOT = 2**64 - 1
_KEY_MAX = 511
_DEPTH_MAX = 31  # a cursor has room for 32
_PAGE_SIZES = tuple(1 << power for power in range(9, 16))
_TRANSACTION_MAX = 1 << 62


class DamagedPages(Exception):
    """Raised for a damaged file; the message says what is wrong, in words that follow the file's name."""


class Tree(NamedTuple):
    """One database within the file: `root` is the number of its first page."""

    flags: int
    depth: int
    entries: int
    root: int


class Meta(NamedTuple):
    """The content of one of the file's first two pages: the state after a commit."""

    page_size: int
    free: Tree
    main: Tree
    last_page: int
    transaction: int


def read_meta(fd: int) -> Meta | None:
    """Returns the state after the latest commit; None for an empty file (an empty store). Raises DamagedPages."""
    first = _meta_at(fd, 0, 0)
    if first is None:
        return None
    second = _meta_at(fd, first.page_size, 1)
    if second is None or second.page_size != first.page_size:
        raise DamagedPages("its first two pages are not whole")
    return max(first, second, key=lambda meta: meta.transaction)


def missing_bytes(path: Path) -> int:
    """Returns how many bytes the file is too short for its latest commit; 0 if it is whole."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        meta = read_meta(fd)
        return 0 if meta is None else max(0, (meta.last_page + 1) * meta.page_size - os.fstat(fd).st_size)
    finally:
        os.close(fd)


def check_pages(path: Path, names: tuple[bytes, ...]) -> None:
    """Raises DamagedPages unless LMDB can read and change the file as it is. `names`: the databases that may be in it.
    Call it only while nobody writes the file."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        meta = read_meta(fd)
        if meta is not None:
            _Walk(fd, meta).check(names)
    except struct.error as error:
        raise DamagedPages("a page is cut short") from error
    finally:
        os.close(fd)


def _meta_at(fd: int, offset: int, number: int) -> Meta | None:
    page = os.pread(fd, _META_BYTES, offset)
    if not page and not number:
        return None
    if len(page) < _META_BYTES:
        raise DamagedPages("its first two pages are cut short")
    at, _, flags, _, _ = _HEADER.unpack_from(page)
    magic, version, _, _ = _META.unpack_from(page, _HEADER.size)
    if magic != _MAGIC or flags != _IS_META or at != number:
        raise DamagedPages("it is no file of LMDB, or its first two pages are damaged")
    if version != _VERSION:
        raise DamagedPages(f"its version {version} of LMDB's format is not {_VERSION}")
    trees_at = _HEADER.size + _META.size
    page_size = _TREE.unpack_from(page, trees_at)[0]
    last_page, transaction = _META_END.unpack_from(page, trees_at + 2 * _TREE.size)
    if page_size not in _PAGE_SIZES or transaction > _TRANSACTION_MAX or last_page < 1:
        raise DamagedPages("its first two pages are damaged")
    free, main = (_tree_in(page, trees_at + place * _TREE.size) for place in range(2))
    if free.flags != _INTEGER_KEYS or main.flags:
        raise DamagedPages("its first two pages are damaged")
    return Meta(page_size, free, main, last_page, transaction)


def _tree_in(data: bytes, at: int) -> Tree:
    _, flags, depth, _, _, _, entries, root = _TREE.unpack_from(data, at)
    return Tree(flags, depth, entries, root)


class _Node(NamedTuple):
    """One entry of a page. `value_at`: the offset in its page of its value, or of the number of the value's page."""

    key: bytes
    flags: int
    size: int
    value_at: int


class _Walk:
    """One pass over all pages that a state leads to. `_visited` has one byte per page: 1 once visited."""

    def __init__(self, fd: int, meta: Meta) -> None:
        self._fd = fd
        self._meta = meta
        self._page_size = meta.page_size
        self._in_file = os.fstat(fd).st_size // meta.page_size
        # LMDB may have left out free pages at the end; a page in use may not be missing.
        self._limit = min(self._in_file, meta.last_page + 1)
        self._visited = bytearray(self._limit)
        self._visited[:2] = b"\1\1"

    def check(self, names: tuple[bytes, ...]) -> None:
        meta = self._meta
        if meta.last_page >= self._in_file + (1 << 32):
            raise DamagedPages("its first two pages are damaged")
        for page, node in self._tree(meta.main, "its list of databases"):
            if node.key not in names or node.flags != _NAMED or node.size != _TREE.size:
                raise DamagedPages("it holds a database that is not one of a cache")
            tree = _tree_in(page, node.value_at)
            if tree.flags:
                raise DamagedPages(f"the description of {node.key.decode()} is damaged")
            for page_of, held in self._tree(tree, node.key.decode()):
                if held.flags not in (0, _BIG):
                    raise DamagedPages(f"an entry of {node.key.decode()} is damaged")
                if held.flags:
                    self._overflow(page_of, held)
        self._check_free()

    def _tree(self, tree: Tree, name: str) -> Iterator[tuple[bytes, _Node]]:
        """Yields every entry of a database in order, each with its page's bytes."""
        if tree.root == _NO_ROOT:
            if tree.depth or tree.entries:
                raise DamagedPages(f"the description of {name} is damaged")
            return
        if not 0 < tree.depth <= _DEPTH_MAX:
            raise DamagedPages(f"the description of {name} is damaged")
        count = 0
        for page, nodes in self._leaves(tree, tree.root, tree.depth, None, None):
            count += len(nodes)
            for node in nodes:
                yield page, node
        if count != tree.entries:
            raise DamagedPages(f"{name} has {count:,} entries, and should have {tree.entries:,}")

    def _leaves(
        self, tree: Tree, number: int, depth: int, low: bytes | None, high: bytes | None
    ) -> Iterator[tuple[bytes, list[_Node]]]:
        """Yields every leaf under a page with its entries; keys must be from `low` to below `high` (None: no bound)."""
        page = self._page(number)
        at, _, flags, lower, upper = _HEADER.unpack_from(page)
        count = (lower - _HEADER.size) >> 1
        is_leaf = depth == 1
        least = 1 if is_leaf or tree is self._meta.free else 2
        if at != number or flags != (_LEAF if is_leaf else _BRANCH) or lower & 1 or lower > upper or count < least:
            raise DamagedPages(f"page {number:,} is damaged")
        places = struct.unpack_from(f"={count}H", page, _HEADER.size)
        nodes, children = self._nodes(page, number, places, upper, is_leaf=is_leaf)
        keys = [node.key for node in nodes]
        self._check_order(number, keys if is_leaf else keys[1:], low, high, is_numbers=tree is self._meta.free)
        if is_leaf:
            yield page, nodes
            return
        for place, child in enumerate(children):
            after = keys[place + 1] if place + 1 < count else high
            yield from self._leaves(tree, child, depth - 1, keys[place] if place else low, after)

    def _nodes(
        self, page: bytes, number: int, places: tuple[int, ...], upper: int, *, is_leaf: bool
    ) -> tuple[list[_Node], list[int]]:
        """Returns a page's entries and children; they must fill it from `upper` to its end without gap or overlap."""
        nodes, children, extents = [], [], []
        end = self._page_size
        for place in places:
            if place < upper or place & 1 or place + _NODE.size > end:
                raise DamagedPages(f"page {number:,} is damaged")
            low, high, flags, key_size = _NODE.unpack_from(page, place)
            value_at = place + _NODE.size + key_size
            size = low | high << 16
            if is_leaf:
                after = value_at + (_NUMBER.size if flags & _BIG else size)
            else:
                children.append(size | flags << 32)
                after = value_at
            if key_size > _KEY_MAX or after > end or (is_leaf and not key_size):
                raise DamagedPages(f"page {number:,} is damaged")
            extents.append((place, after + (after & 1)))
            nodes.append(_Node(page[place + _NODE.size : value_at], flags, size, value_at))
        extents.sort()
        at = upper
        for begin, after in extents:
            if begin != at:
                raise DamagedPages(f"page {number:,} is damaged")
            at = after
        if at != end:
            raise DamagedPages(f"page {number:,} is damaged")
        return nodes, children

    def _check_order(
        self, number: int, keys: list[bytes], low: bytes | None, high: bytes | None, *, is_numbers: bool
    ) -> None:
        inside = keys if low is None else [low, *keys]
        if high is not None:
            inside = [*inside, high]
        if is_numbers:
            # Numbers stand with their lowest byte first: turned round they compare like bytes.
            if any(len(key) != _NUMBER.size for key in inside):
                raise DamagedPages(f"page {number:,} is damaged")
            inside = [key[::-1] for key in inside]
        # The first key of a leaf may be the one that leads to it.
        begin = 1 if low is None or len(inside) < 2 or inside[0] != inside[1] else 2
        if any(inside[place - 1] >= inside[place] for place in range(begin, len(inside))):
            raise DamagedPages(f"the keys of page {number:,} are out of order")

    def _page(self, number: int) -> bytes:
        self._mark_used(number, 1)
        page = os.pread(self._fd, self._page_size, number * self._page_size)
        if len(page) < self._page_size:
            raise DamagedPages(f"page {number:,} is cut short")
        return page

    def _mark_used(self, number: int, count: int) -> None:
        if number + count > self._limit:
            raise DamagedPages("it has been cut short, or a page of it is damaged")
        if any(self._visited[number : number + count]):
            raise DamagedPages(f"page {number:,} is in use twice")
        self._visited[number : number + count] = b"\1" * count

    def _overflow(self, page: bytes, node: _Node) -> int:
        """Checks the pages of a large value, and returns the number of the first."""
        (number,) = _NUMBER.unpack_from(page, node.value_at)
        if number >= self._limit:
            raise DamagedPages("it has been cut short, or a page of it is damaged")
        head = os.pread(self._fd, _OVERFLOW.size, number * self._page_size)
        at, _, flags, count = _OVERFLOW.unpack(head)
        if at != number or flags != _IS_OVERFLOW or count * self._page_size < _OVERFLOW.size + node.size:
            raise DamagedPages(f"page {number:,} is damaged")
        self._mark_used(number, count)
        return int(number)

    def _check_free(self) -> None:
        """Checks that no page is free and in use, or free twice, and that pages missing in the file are free."""
        beyond: set[int] = set()
        for page, node in self._tree(self._meta.free, "its list of free pages"):
            if node.flags not in (0, _BIG):
                raise DamagedPages("its list of free pages is damaged")
            data = self._value(page, node)
            (count,) = _NUMBER.unpack_from(data)
            if (count + 1) * _NUMBER.size > len(data):
                raise DamagedPages("its list of free pages is damaged")
            before = self._meta.last_page + 1
            for number in struct.unpack_from(f"={count}Q", data, _NUMBER.size):
                if not 1 < number < before:  # in falling order
                    raise DamagedPages("its list of free pages is damaged")
                before = number
                if number < self._limit:
                    if self._visited[number]:
                        raise DamagedPages(f"page {number:,} is free and in use")
                    self._visited[number] = 1
                else:
                    beyond.add(number)
        if len(beyond) < self._meta.last_page + 1 - self._limit:
            raise DamagedPages("it has been cut short, or a page of it is damaged")

    def _value(self, page: bytes, node: _Node) -> bytes:
        if not node.flags:
            return page[node.value_at : node.value_at + node.size]
        number = self._overflow(page, node)
        data = os.pread(self._fd, node.size, number * self._page_size + _OVERFLOW.size)
        if len(data) < node.size:
            raise DamagedPages(f"page {number:,} is cut short")
        return data
