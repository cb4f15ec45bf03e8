"""The number of files that this process may open, and the bounds on calls and clients that follow from it.

Raises the soft limit to what an engine can use and never lowers it. Knows no call and no provider.
"""

from __future__ import annotations

import resource

from msgspec import structs

from ..engine.lane import Lane

FILES_WANTED = 65_536
FILES_SPARED = 128
LEDGERS_WANTED = 256
# Below the ports that a machine has for one server's address.
SOCKETS_WANTED = 1 << 14


def raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError):
            return  # then lanes stay below the limit there is


def connections_max() -> int:
    """Returns how many clients may be connected at once: each may need a connection to a provider, too."""
    return max(1, (_files() - FILES_SPARED) // 2)


def sockets_max() -> int:
    """Returns how many connections to providers may be open at once."""
    return min(SOCKETS_WANTED, max(1, _files() - FILES_SPARED - 2 * ledgers_max()))


def ledgers_max() -> int:
    """Returns how many lanes' files of the last minute may be open at once."""
    return min(LEDGERS_WANTED, max(1, _files() // 8))


def _files() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return FILES_WANTED if soft == resource.RLIM_INFINITY else soft


def capped_by_files(lane: Lane, keys: int = 1) -> Lane:
    """Returns the lane with a lower `concurrency` for each of its `keys`, if all together would exceed the files that
    this process may open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return lane
    most = max(1, (soft - FILES_SPARED) // keys)
    return structs.replace(lane, concurrency=most) if most < lane.in_flight_most else lane
