"""Pages that nobody would write: pieces of markup in any order and nesting, bytes turned over, compressed and cut."""

from __future__ import annotations

import gzip
import random
import zlib

_NAMES = (
    "html head title meta body div p span a table tr td ul li nav script style article main section h1 h2 blockquote "
    "pre code form select option textarea svg math template noscript iframe object frameset ruby b i font center x-y"
)
_TAGS = _NAMES.split()
_TEXTS = ("Some words of a text. ", "&amp;&nbsp;&#0;&#xD800;&#x110000;", "<", "<!--", "-->", "<![CDATA[", "]]>", "\0")
_TYPES = ("text/html", "text/html; charset=utf-16", "text/plain", "application/pdf", "image/png", "", "text/html; q")


def fuzzed(seed: int) -> tuple[bytes, str, str]:
    """Body, content type, encoding."""
    chance = random.Random(seed)
    body = "".join(_piece(chance) for _ in range(chance.choice((5, 50, 500, 5_000)))).encode("utf-8", "replace")
    if chance.random() < 0.2:
        body = b"%PDF-1.5\n" + body
    turned = bytearray(body)
    for _ in range(chance.choice((0, 0, 3, 300))):
        turned[chance.randrange(len(turned))] = chance.randrange(256)
    body, encoding = bytes(turned), ""
    if chance.random() < 0.3:
        encoding = chance.choice(("gzip", "deflate", "gzip, gzip", "br"))
        body = gzip.compress(body) if "gzip" in encoding else zlib.compress(body)
        body = body[: chance.choice((len(body), len(body) // 2))]
    return body, chance.choice(_TYPES), encoding


def _piece(chance: random.Random) -> str:
    tag = chance.choice(_TAGS)
    kind = chance.random()
    if kind < 0.4:
        count = chance.choice((0, 0, 1, 3, 40))
        attributes = "".join(f' {chance.choice("abcdehilst")}{place}="{place}"' for place in range(count))
        return f"<{tag}{attributes}>" * chance.choice((1, 1, 1, 20))
    if kind < 0.6:
        return f"</{tag}>"
    return chance.choice(_TEXTS) * chance.choice((1, 3, 30))
