"""What tests ask of the simulated web as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.fixtures.web.plan import WebPage, WebWorld


def every_page(world: WebWorld) -> Iterator[WebPage]:
    return (world.page(index) for index in range(world.pages))


def gives_text(world: WebWorld, url: str) -> bool:
    """Returns whether each reader that obeys robots.txt and waits when told to gets the text of a URL."""
    return world.endings(url) == ("ok",)
