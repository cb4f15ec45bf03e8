"""Addresses as text: when two mean the same page, which host they lead to, and how one is shown without its secrets.

Pure, and never fails: what is no address stays as it is. Which addresses may be asked is no business of this module.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit, urlunsplit

_PORTS = {"http": 80, "https": 443}
_CAMPAIGN = "utm_"
_STRUCK = "***"
NO_ADDRESS = "(no address: not shown)"
_PATH_PARAMETER = re.compile(r";([^;=/]*)=[^;/]*")
_ADDRESS_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^\s\"'<>`]+")


def normalised_url(url: str) -> str:
    """Returns one spelling for all addresses of a page: scheme and host in lower case, no default port, no fragment, no
    `utm_` parameters, no slash at the path's end. Anything but an http or https address is only stripped."""
    url = url.strip()
    parts = web_parts(url)
    if parts is None:
        return url
    query = "&".join(part for part in parts.query.split("&") if part[: len(_CAMPAIGN)].lower() != _CAMPAIGN)
    user, at, _ = parts.netloc.rpartition("@")
    return urlunsplit((parts.scheme, f"{user}{at}{_host(parts)}", parts.path.rstrip("/ "), query.strip(), ""))


def shown_address(url: str) -> str:
    """Returns an address as messages, tables and files may show it: user and password, the values of the query and of
    the path's own parameters (`;name=value`) and the fragment become ***. A password may hold any character, so
    everything before the last @ counts as user and password. Any other text becomes NO_ADDRESS."""
    scheme, separator, rest = url.strip().partition("://")
    if not separator or not rest or not scheme.isalnum():
        return NO_ADDRESS
    user, at, rest = rest.rpartition("@")
    rest, hash_mark, _ = rest.partition("#")
    rest, question_mark, query = rest.partition("?")
    path = _PATH_PARAMETER.sub(rf";\1={_STRUCK}", rest)
    address = f"{scheme}://{_STRUCK if user else ''}{at}{path}"
    if question_mark:
        address += "?" + "&".join(map(_without_value, query.split("&")))
    return f"{address}#{_STRUCK}" if hash_mark else address


def with_shown_addresses(text: str) -> str:
    """Returns the text with every address replaced by what `shown_address` makes of it."""
    return _ADDRESS_IN_TEXT.sub(lambda found: shown_address(found[0]), text) if "://" in text else text


def _without_value(parameter: str) -> str:
    name, equals, _ = parameter.partition("=")
    return f"{name}={_STRUCK}" if equals else _STRUCK if name else ""


def hostname_of(url: str) -> str:
    """Returns the host in lower case, without a port; empty if the text is no http or https address."""
    parts = web_parts(url.strip())
    return "" if parts is None else parts.hostname or ""


def host_of(url: str) -> str:
    """Returns the host in lower case, with its port unless that is the default; empty if it is no http(s) address."""
    parts = web_parts(url.strip())
    return "" if parts is None else _host(parts)


def is_address(url: str) -> bool:
    """Returns whether a text is the address of a server, without user, password, query and fragment."""
    parts = web_parts(url) if url.isprintable() and " " not in url else None
    return parts is not None and "@" not in parts.netloc and not parts.query and not parts.fragment


def web_parts(url: str) -> SplitResult | None:
    """Returns the parts of an http or https address; None for any other text."""
    try:
        parts = urlsplit(url)
        # Reading a port that is none fails.
        is_page = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_page else None


def _host(parts: SplitResult) -> str:
    host, port = parts.hostname or "", parts.port
    named = f"[{host}]" if ":" in host else host
    return named if port is None or port == _PORTS[parts.scheme] else f"{named}:{port}"
