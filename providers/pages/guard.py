"""Decides which pages may be requested, before any name is resolved, and which hosts are allowed beyond public ones.

Pure. `connections` also checks every address by `is_public` before it connects.
"""

from __future__ import annotations

from msgspec import Struct

from .addresses import is_public
from .urls import PORTS, UrlError, WebUrl, parse_url

# Ports of other services, to which the lines of a request could be commands: those that the Fetch standard forbids to
# browsers, and two stores that obey line by line.
# fmt: off
_OTHER_SERVICES = frozenset((
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
    111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
    540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
    6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10_080, 11_211,
))
# fmt: on
_LOCAL_NAMES = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "onion")


class PageRefusal(UrlError):
    """Raised for a page that may not be requested; the message is one line that says why."""


class HostAllowance(Struct, frozen=True):
    """A host whose address need not be public. `port` None: any port. With an `address`, pages are fetched there."""

    name: str
    port: int | None = None
    address: str | None = None
    address_port: int | None = None

    def covers(self, url: WebUrl) -> bool:
        if self.port is not None and self.port != url.port:
            return False
        if self.name.startswith("*."):
            return url.host.endswith(self.name[1:]) and not url.is_literal
        return url.host == self.name


class ConnectionTarget(Struct, frozen=True):
    """The host and port to connect to for a page: the first public address of `host`, or any address if `is_free`.
    `is_literal`: the host is an IP address."""

    host: str
    port: int
    is_literal: bool
    is_free: bool = False


def parse_allowed(text: str) -> HostAllowance:
    """Returns the allowance that `NAME[:PORT][=ADDRESS:PORT]` describes, where NAME may begin with `*.`. Raises
    ValueError with one line."""
    name, equals, target = text.strip().partition("=")
    is_any = name.startswith("*.")
    try:
        # Whether a port is given shows when the default differs.
        host = parse_url(f"http://{name[2:] if is_any else name}/")
        has_port = host.port != PORTS["http"] or parse_url(f"https://{name[2:] if is_any else name}/").port == 80
        if not equals:
            to = None
        else:
            to = parse_url(f"http://{target}/")
            if not to.is_literal or not target.rpartition("]")[2].rpartition(":")[2].isdigit():
                raise UrlError("no address with a port")
    except UrlError as error:
        raise ValueError(
            f"{text!r} must be NAME, NAME:PORT or NAME=ADDRESS:PORT, as in localhost:8000 or "
            f"*.example.org=127.0.0.1:8000"
        ) from error
    if any(mark in name + target for mark in "/?#") or (is_any and host.is_literal):
        raise ValueError(f"{text!r} must be a host's name, with no path and no scheme")
    return HostAllowance(
        f"*.{host.host}" if is_any else host.host,
        host.port if has_port else None,
        None if to is None else to.host,
        None if to is None else to.port,
    )


class Guard:
    """The rule which URLs may be requested: without allowances, those of public hosts alone."""

    def __init__(self, allowed: tuple[HostAllowance, ...] = ()) -> None:
        self._allowed = allowed

    def __repr__(self) -> str:
        return f"<Guard [{len(self._allowed)} hosts allowed beyond public ones]>"

    def way_to(self, url: WebUrl) -> ConnectionTarget:
        """Returns where to connect for a URL; raises PageRefusal if it may not be requested."""
        for one in self._allowed:
            if one.covers(url):
                if one.address is None or one.address_port is None:
                    return ConnectionTarget(url.host, url.port, url.is_literal, is_free=True)
                return ConnectionTarget(one.address, one.address_port, is_literal=True, is_free=True)
        if url.port in _OTHER_SERVICES:
            raise PageRefusal(f"{url.authority}: port {url.port} belongs to another service than the web")
        if url.is_literal:
            if not is_public(url.host):
                raise PageRefusal(f"{url.host} is not a public address")
        elif "." not in url.host or url.host.rpartition(".")[2] in _LOCAL_NAMES:
            raise PageRefusal(f"{url.host} is not the name of a public host")
        return ConnectionTarget(url.host, url.port, url.is_literal)
