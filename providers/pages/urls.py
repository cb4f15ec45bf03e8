"""Parses the URLs of pages strictly: each has one spelling, and one that parsers might read differently is refused.

Pure. `guard` decides which hosts may be requested.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import quote, urljoin

import idna
from msgspec import Struct

URL_MAX = 8_192
PORTS = {"http": 80, "https": 443}

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_AUTHORITY = re.compile(r"//([^/?#]*)")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
# The characters that stay as they are in a path or a query. A per cent sign stays, whatever follows it.
_KEPT = "%/:=&?~#+!$,;'@()*[]|"
_DOT = re.compile(r"\.|%2e", re.IGNORECASE)


class UrlError(ValueError):
    """Raised for a URL from which no page can be fetched; the message is one line that says what is wrong with it."""


class WebUrl(Struct, frozen=True):
    """The URL of a page in its one spelling. `host` is a name in lower case or a literal address without brackets;
    `target` is path and query as they are sent."""

    scheme: str
    host: str
    port: int
    target: str
    is_literal: bool = False

    @property
    def authority(self) -> str:
        """The host and port as in the Host header."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == PORTS[self.scheme] else f"{name}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def text(self) -> str:
        return f"{self.origin}{self.target}"

    @property
    def robots(self) -> str:
        """The URL of its host's robots.txt."""
        return f"{self.origin}/robots.txt"


def parse_url(text: str) -> WebUrl:
    """Returns the URL in a text; raises UrlError if no page can be fetched from it."""
    text = text.strip(" \t\r\n")
    if not text or len(text) > URL_MAX:
        raise UrlError("an empty URL" if not text else f"a URL of {len(text):,} characters, more than {URL_MAX:,}")
    if any(character < " " or character == "\x7f" for character in text):
        raise UrlError("a URL with control characters in it")
    scheme = _SCHEME.match(text)
    if scheme is None:
        raise UrlError("a URL without a scheme")
    name = scheme[1].lower()
    if name not in PORTS:
        raise UrlError(f"a URL of the scheme {name[:20]!r}, not http or https")
    authority = _AUTHORITY.match(text, scheme.end())
    if authority is None:
        raise UrlError("a URL without a host")
    if "@" in authority[1] or "\\" in authority[1]:
        raise UrlError("a URL with a user or a backslash before its path")
    host, port, is_literal = _host_and_port(authority[1], PORTS[name])
    return WebUrl(name, host, port, _target(text[authority.end() :]), is_literal)


def join_url(base: WebUrl, location: str) -> WebUrl:
    """Returns the URL to which a redirect leads. Raises UrlError."""
    # Header bytes that are no UTF-8 arrive as lone surrogates.
    text = location.strip(" \t\r\n").encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        return parse_url(urljoin(base.text, text))
    except UrlError:
        raise
    except ValueError as error:  # the standard library's own refusals
        raise UrlError(f"no URL ({error})") from error


def _host_and_port(text: str, default: int) -> tuple[str, int, bool]:
    if text.startswith("["):
        inner, closed, rest = text[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise UrlError("a URL whose address in brackets doesn't end")
        return _ipv6(inner), _port(rest[1:], default), True
    name, colon, port = text.partition(":")
    host = _name(name)
    is_literal = _NUMBER.fullmatch(host.rpartition(".")[2]) is not None
    return (_ipv4(host) if is_literal else host), _port(port if colon else "", default), is_literal


def _port(text: str, default: int) -> int:
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65_535):
        raise UrlError(f"a URL with the port {text[:10]!r}")
    return int(text)


def _ipv6(text: str) -> str:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError as error:
        raise UrlError("a URL with brackets around what is no IPv6 address") from error
    if address.scope_id is not None:
        raise UrlError("a URL with a zone in its address")
    if address.ipv4_mapped is not None:
        # Python writes these with dots from 3.13 on; a URL's spelling is part of a cache key.
        high, low = divmod(int(address.ipv4_mapped), 1 << 16)
        return f"::ffff:{high:x}:{low:x}"
    return str(address)


def _name(text: str) -> str:
    """Returns a host's name in ASCII, where full-width digits and dots become plain ones; raises UrlError."""
    if not text.isascii():
        try:
            text = idna.encode(text, uts46=True).decode()
        except (idna.IDNAError, UnicodeError) as error:
            raise UrlError("a URL whose host is no domain name") from error
    name = text.lower().removesuffix(".")
    if not name or len(name) > 253 or any(_LABEL.fullmatch(label) is None for label in name.split(".")):
        raise UrlError("a URL whose host is no domain name")
    return name


def _ipv4(text: str) -> str:
    """Returns the address for a host that ends in a number, which may have one to four parts, decimal, octal or
    hexadecimal; raises UrlError."""
    numbers = [_number(part) for part in text.split(".")]
    if len(numbers) > 4 or any(number > 255 for number in numbers[:-1]) or numbers[-1] >= 256 ** (5 - len(numbers)):
        raise UrlError("a URL whose host is neither a domain name nor an IPv4 address")
    value = numbers[-1] + sum(number << 8 * (3 - place) for place, number in enumerate(numbers[:-1]))
    return str(ipaddress.IPv4Address(value))


def _number(text: str) -> int:
    try:
        if text.startswith("0x"):
            return int(text[2:] or "0", 16)
        return int(text, 8) if text.startswith("0") and len(text) > 1 else int(text)
    except ValueError as error:
        raise UrlError("a URL whose host is neither a domain name nor an IPv4 address") from error


def _target(text: str) -> str:
    text = text.partition("#")[0]
    path, mark, query = text.partition("?")
    return quote(f"{_without_dots(path)}{mark}{query}", safe=_KEPT, errors="replace")


def _without_dots(path: str) -> str:
    """Returns a path without the steps `.` and `..`, so that robots.txt is applied to the actual path."""
    if not path:
        return "/"
    if _DOT.search(path) is None:
        return path
    steps: list[str] = []
    last = ""
    for step in path.split("/")[1:]:
        last = _DOT.sub(".", step) if len(step) <= 6 else step
        if last == "..":
            del steps[-1:]
        elif last != ".":
            steps.append(step)
    ends_in_slash = last in (".", "..")
    return "/" + "/".join(steps) + ("/" if ends_in_slash and steps else "")
