"""Escapes texts of models and data sets for a page, a script block of a page, and a cell of a table; packs a script's
data.

Owns which characters are replaced by a visible sign. Text from outside reaches a report's files only through here.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from typing import Any

import msgspec

# Control characters but tab and newline; marks of text direction; lone surrogates; separators that break lines of
# scripts; code points that are no characters. Joiners stay: some scripts can't be written without them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_CONTROL_PICTURES = 0x2400
_DELETE = 0x7F
# The first characters by which a spreadsheet takes a cell for a formula; the last four in some languages.
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")
_IN_SCRIPT = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"})


def visible(text: str) -> str:
    """Returns the text with a visible sign in place of each invisible control character; lines end with \\n."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub(_stand_in, text.replace("\r\n", "\n"))


def in_html(text: str) -> str:
    """Returns the text escaped for an element or a quoted attribute."""
    return html.escape(visible(text))


def in_script(value: Any) -> str:
    """Returns a value as JSON that can't end the script block in which it stands."""
    try:
        encoded = msgspec.json.encode(value).decode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate, which JSON can only escape
        encoded = json.dumps(msgspec.to_builtins(value))
    return encoded.translate(_IN_SCRIPT)


def packed(value: Any) -> str:
    """Returns data for a page's scripts as one text that can stand in it: JSON, compressed, in base64. The same value
    gives the same text. Bytes are JSON already."""
    encoded = value if isinstance(value, bytes) else msgspec.json.encode(value)
    return base64.b64encode(gzip.compress(encoded, compresslevel=6, mtime=0)).decode("ascii")


def in_cell(text: str) -> str:
    """Returns the text for a cell of a CSV file; a text that a spreadsheet would compute gets an apostrophe in
    front."""
    safe = visible(text)
    return f"'{safe}" if text.startswith(_FORMULA) or safe.startswith(_FORMULA) else safe


def _stand_in(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    return "\N{SYMBOL FOR DELETE}" if code == _DELETE else f"[U+{code:04X}]"
