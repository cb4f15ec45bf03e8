"""Addresses of pages as text: when two mean the same page, and which host they lead to.

Pure, and never fails: what is no address stays as it is. Which addresses may be asked is no business of this module.
"""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit, urlunsplit

_PORTS = {"http": 80, "https": 443}
_CAMPAIGN = "utm_"


def normalised_url(url: str) -> str:
    """One spelling for one page: scheme and host in lower case, no default port, no fragment, no `utm_` parameters, no
    slash at the path's end. What is no http or https address, a document's name say, is only stripped."""
    url = url.strip()
    parts = _split(url)
    if parts is None:
        return url
    query = "&".join(part for part in parts.query.split("&") if part[: len(_CAMPAIGN)].lower() != _CAMPAIGN)
    user, at, _ = parts.netloc.rpartition("@")
    return urlunsplit((parts.scheme, f"{user}{at}{_host(parts)}", parts.path.rstrip("/ "), query.strip(), ""))


def hostname_of(url: str) -> str:
    """The host in lower case, without a port; empty where there is none."""
    parts = _split(url.strip())
    return "" if parts is None else parts.hostname or ""


def host_of(url: str) -> str:
    """The host in lower case, with its port unless that is the scheme's own; empty where there is none."""
    parts = _split(url.strip())
    return "" if parts is None else _host(parts)


def _split(url: str) -> SplitResult | None:
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
