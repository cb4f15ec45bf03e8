"""What tests ask of the simulated web as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from millstream.fixtures.web import TROUBLES
from millstream.fixtures.web.plan import WebPage, WebWorld
from millstream.fixtures.web.troubles import OK, Ending


def every_page(world: WebWorld) -> Iterator[WebPage]:
    return (world.page(index) for index in range(world.pages))


def page_at(world: WebWorld, url: str) -> WebPage:
    """Returns the page of a URL, whose query is ignored; raises KeyError for a URL without a page."""
    parts = urlsplit(url)
    page_and_hop = world.find(parts.hostname or "", parts.path)
    if page_and_hop is None:
        raise KeyError(url)
    return page_and_hop[0]


def endings(world: WebWorld, url: str) -> tuple[Ending, ...]:
    """Returns the statuses, one of which a reader that obeys robots.txt reports for a URL; `ok` means that it gets
    the text. Raises KeyError for a URL without a page."""
    page = page_at(world, url)
    sites = [page.site]
    if page.final[0] != page.site.host:
        sites.append(next(each for each in world.sites() if each.host == page.final[0]))
    if any(each.robots in ("closed", "broken") for each in sites):
        # A robots.txt that the server fails to deliver forbids everything too.
        return ("disallowed",)
    if any(each.manner == "resetting" for each in sites):
        # Such a host resets the request for its robots.txt too, which a reader may take as a prohibition.
        return ("unreachable", "disallowed")
    is_closed = page.trouble == "private" and page.site.robots != "missing"
    if not is_closed and any(each.manner == "throttling" for each in sites):
        return ("blocked",)
    if page.trouble == "private" and page.site.robots == "missing":
        # Without a robots.txt nothing is forbidden.
        return OK
    return TROUBLES[page.trouble].endings if page.trouble else OK


def gives_text(world: WebWorld, url: str) -> bool:
    """Returns whether each reader that obeys robots.txt and waits when told to gets the text of a URL."""
    return endings(world, url) == OK
