"""Decides who may ask, by a request's method, target, Host, Origin, Sec-Fetch-Site, address and token.

Pure. Rejects web pages in a browser, host names that were pointed here (DNS rebinding) and callers without the token.
Headers of proxies (X-Forwarded-…) count for nothing. Knows no path and no body.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import parse_qsl

from msgspec import Struct

from ...configuration.gateway_settings import ANYONE
from ...providers.llm.serve_dialect import Problem
from .http_request import RequestHead

METHODS = ("GET", "HEAD", "POST")
_HTTP_PORT = 80
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([1-9][0-9]{0,4}))?")
_PLAIN_JSON = "application/json"
_JSON = re.compile(r"application/json\s*(?:;.*)?", re.IGNORECASE)
_KEY_HEADERS = ("x-api-key", "api-key", "x-goog-api-key")
# What a browser sends for a page of our own, of which there is none, and for an address that a person typed.
_OWN_SITES = ("none", "same-origin")


class CallerToken(Struct, frozen=True):
    """A caller's name with the SHA-256 of its token."""

    caller: str
    digest: bytes


class GuardRules(Struct, frozen=True):
    """The rules of who may ask. `hosts`: accepted names (or NAME:PORT) in the Host header, beside loopback's own;
    `origins`: accepted Origin headers of web pages; empty `tokens`: everybody on this machine may ask."""

    port: int
    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    tokens: tuple[CallerToken, ...] = ()


def digest_of(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def judge(seen: RequestHead, rules: GuardRules) -> str | Problem:
    """Returns the caller's name, or the problem for which the request is rejected."""
    if seen.method not in METHODS:
        return Problem(405, "invalid", f"method {seen.method}: expected GET, HEAD or POST")
    if not seen.target.startswith("/"):
        return Problem(400, "invalid", "expected a path such as /v1/chat/completions as the request's target")
    headers = seen.headers
    refused = _of_host(headers.get("host", []), seen.local, rules)
    if refused is None and ("origin" in headers or "sec-fetch-site" in headers):
        refused = _of_page(headers, rules)
    if refused is not None:
        return refused
    caller = _caller_of(headers, seen, rules)
    if not isinstance(caller, str):
        return caller
    if seen.method == "POST" and not _is_json(headers.get("content-type", [])):
        return Problem(415, "invalid", "expected the header Content-Type: application/json")
    return caller


def _of_host(values: list[str], local: str, rules: GuardRules) -> Problem | None:
    if len(values) != 1:
        return Problem(400, "invalid", f"expected one Host header, got {len(values)}")
    return _of_name(values[0], local, rules.hosts, rules.port)


# A client names its host with every request.
@lru_cache(256)
def _of_name(text: str, local: str, hosts: frozenset[str], own_port: int) -> Problem | None:
    match = _HOST.fullmatch(text.strip(" \t"))
    if match is None:
        return Problem(400, "invalid", "expected a name or an address, and a port, in the Host header")
    name, port = match[1].lower(), int(match[2] or _HTTP_PORT)
    if name in hosts or f"{name}:{port}" in hosts:
        return None
    if port == own_port and (name == "localhost" or _is_loopback(name) or name == _written(local)):
        return None
    return Problem(
        403, "forbidden", f"Host {name}:{port} is none of this gateway's: ask 127.0.0.1, or name it in [gateway] hosts"
    )


def _written(address: str) -> str:
    """Returns an address as a Host header has it, IPv6 in brackets."""
    return f"[{address}]" if ":" in address else address


@lru_cache(256)
def _is_loopback(name: str) -> bool:
    try:
        address = ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    is_bracketed = name.startswith("[")
    if address.version == 4:
        return address.is_loopback and not is_bracketed
    return is_bracketed and address == ipaddress.IPv6Address("::1")


def _of_page(headers: Mapping[str, list[str]], rules: GuardRules) -> Problem | None:
    """Returns the problem with a request of a web page; None: it may ask. Browsers name the page, programs don't."""
    origins, sites = headers.get("origin", []), headers.get("sec-fetch-site", [])
    if origins and not (len(origins) == 1 and origins[0] in rules.origins):
        return Problem(403, "forbidden", "a web page may not ask this gateway: name its Origin in [gateway] origins")
    if any(site.strip().lower() not in _OWN_SITES for site in sites) and not origins:
        return Problem(403, "forbidden", "a web page of another site may not ask this gateway")
    return None


def _caller_of(headers: Mapping[str, list[str]], seen: RequestHead, rules: GuardRules) -> str | Problem:
    if not rules.tokens:
        if _is_of_this_machine(seen.remote):
            return ANYONE
        return Problem(401, "unauthorized", "without a token only this machine is answered: set [gateway] token")
    digests = [digest_of(secret) for secret in _credentials(headers, seen.target)]
    # All are compared with all, so that the time taken reveals nothing.
    callers = [
        token.caller for token in rules.tokens if sum(hmac.compare_digest(digest, token.digest) for digest in digests)
    ]
    if len(callers) == 1:
        return callers[0]
    if callers:
        return Problem(401, "unauthorized", "the request holds the tokens of several callers: send one")
    what = "an unknown token" if digests else "no token"
    return Problem(
        401, "unauthorized", f"got {what}: send the gateway's as Authorization: Bearer, x-api-key or x-goog-api-key"
    )


def _credentials(headers: Mapping[str, list[str]], target: str) -> Iterable[str]:
    """Yields the tokens in a request, from every header and parameter in which clients send an API key."""
    for value in headers.get("authorization", ()):
        scheme, _, secret = value.strip().partition(" ")
        if scheme.lower() == "bearer" and secret.strip():
            yield secret.strip()
    for name in _KEY_HEADERS:
        yield from (value.strip() for value in headers.get(name, ()) if value.strip())
    _, _, query = target.partition("?")
    if "key=" in query:
        yield from (value for name, value in parse_qsl(query) if name == "key")


def _is_of_this_machine(remote: str) -> bool:
    return remote == "::1" or _is_loopback(remote)


def _is_json(values: list[str]) -> bool:
    return len(values) == 1 and (values[0] == _PLAIN_JSON or _JSON.fullmatch(values[0].strip()) is not None)
