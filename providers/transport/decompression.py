"""Decompresses a body piece by piece, and never further than a given length.

Owns the codings that requests accept, and the names of others. Pure: bytes in, bytes out.
"""

from __future__ import annotations

import zlib

CODINGS = (b"gzip", b"x-gzip", b"deflate")
# Codings that no request accepts.
OTHERS = (b"br", b"zstd", b"compress", b"x-compress", b"dcb", b"dcz")
# The most parts of a gzip body: a part may be empty, with twenty bytes of framing.
PARTS_MAX = 1_000
_AS_GZIP, _AS_ZLIB, _AS_DEFLATE = 31, 15, -15


class Decompressor:
    """The decompression of one body. Raises zlib.error for bytes that are not compressed, behind its end too;
    zeros there are padding."""

    def __init__(self, coding: bytes) -> None:
        self._is_gzip = coding != b"deflate"
        self._inflater = zlib.decompressobj(_AS_GZIP) if self._is_gzip else None
        self._head = b""
        self._parts = 1

    @property
    def is_whole(self) -> bool:
        return not self._head if self._inflater is None else self._inflater.eof

    def take(self, data: bytes, most: int) -> bytes:
        """Returns the next decompressed bytes: at most `most`, or one more if there are more."""
        if self._inflater is None:
            data = self._head = self._head + data
            if len(data) < 2:
                return b""
            # Two formats are called deflate; one of them begins with a number that is divisible by 31.
            is_zlib = data[0] & 15 == 8 and int.from_bytes(data[:2], "big") % 31 == 0
            self._inflater = zlib.decompressobj(_AS_ZLIB if is_zlib else _AS_DEFLATE)
        pieces: list[bytes] = []
        while data and most >= 0:
            if self._inflater.eof:
                if not self._is_gzip or data[:1] != b"\x1f":
                    if data.strip(b"\0"):
                        raise zlib.error("bytes follow its compressed end")
                    break  # the rest is padding
                self._parts += 1
                if self._parts > PARTS_MAX:
                    raise zlib.error(f"it is packed in more than {PARTS_MAX} parts")
                self._inflater = zlib.decompressobj(_AS_GZIP)  # a gzip file may have several parts
            piece = self._inflater.decompress(data, most + 1)
            data = self._inflater.unconsumed_tail or self._inflater.unused_data
            pieces.append(piece)
            most -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
