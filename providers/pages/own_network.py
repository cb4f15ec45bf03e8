"""Checks whether this machine's own network works if a host can't be reached; if not, the host is not to blame.

Owns which errors need this check. Sends nothing to any host; asks the machine's resolver for a name that always
exists.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable
from typing import Any

Resolve = Callable[[str, int], Awaitable[Any]]

_UNREACHABLE = (errno.ENETUNREACH, errno.ENETDOWN)
# Resolver errors that may mean that it answers for no name at all.
_NO_ANSWER = (socket.EAI_AGAIN, socket.EAI_FAIL, socket.EAI_SYSTEM)
# Reserved for documentation, and always resolvable.
_ALWAYS_THERE = "example.com"
_ANSWER_S = 5.0
# Addresses of two large networks. Nothing is sent to them: connecting a datagram socket asks for the route alone.
_FAR = ((socket.AF_INET, "8.8.8.8"), (socket.AF_INET6, "2001:4860:4860::8888"))


def has_route() -> bool:
    for family, address in _FAR:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((address, 53))
        except OSError:
            continue
        return True
    return False


async def lack_of(error: BaseException, resolve: Resolve, has_route: Callable[[], bool]) -> str:
    """Returns in words what this machine's network lacks if that explains an error; empty if the host may be the
    cause."""
    if isinstance(error, socket.gaierror):
        if error.errno not in _NO_ANSWER:
            return ""
    elif not (isinstance(error, OSError) and error.errno in _UNREACHABLE):
        return ""
    if not has_route():
        return "this machine has no route to the internet"
    if isinstance(error, socket.gaierror) and not await _resolves(resolve):
        return "this machine resolves no names"
    return ""


async def _resolves(resolve: Resolve) -> bool:
    try:
        async with asyncio.timeout(_ANSWER_S):
            await resolve(_ALWAYS_THERE, 80)
    except socket.gaierror as error:
        return error.errno not in _NO_ANSWER
    except TimeoutError:
        return False
    return True
