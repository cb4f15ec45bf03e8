"""The addresses of a server: who looks them up, how long they are kept, and which of them comes first."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from millstream.providers.transport.opening import Addresses, literal_info

FOUND = ["192.0.2.1", "192.0.2.2", "192.0.2.3"]


class Resolving(asyncio.SelectorEventLoop):
    """A loop that resolves every name to three addresses, once it has failed as often as it was told."""

    def __init__(self, failing: int = 0) -> None:
        super().__init__()
        self.failing = failing
        self.lookups = 0
        self.later_s = 0.0

    def time(self) -> float:
        return super().time() + self.later_s

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
        self.lookups += 1
        await asyncio.sleep(0)
        if self.lookups <= self.failing:
            raise socket.gaierror(socket.EAI_AGAIN, "not now")
        return [literal_info(address, port) for address in FOUND]


def firsts(count: int, loop: Resolving) -> list[str]:
    """The first address for each of so many who ask at the same time; or why there is none."""

    async def take(addresses: Addresses) -> str:
        try:
            return str((await addresses.take())[0][4][0])
        except OSError as error:
            return str(error.strerror)

    async def scenario() -> list[str]:
        addresses = Addresses("model.example", 443)
        return [*await asyncio.gather(*(take(addresses) for _ in range(count))), await take(addresses)]

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(scenario())


def test_a_name_is_looked_up_once_for_all_and_its_addresses_take_turns() -> None:
    loop = Resolving()
    assert firsts(6, loop) == [*FOUND, *FOUND, FOUND[0]]
    assert loop.lookups == 1


def test_a_name_is_looked_up_again_after_a_minute() -> None:
    loop = Resolving()

    async def scenario() -> list[int]:
        addresses, counts = Addresses("model.example", 443), []
        for loop.later_s in (0.0, 59.0, 61.0):
            await addresses.take()
            counts.append(loop.lookups)
        return counts

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(scenario()) == [1, 1, 2]


def test_a_name_that_was_not_found_is_looked_up_again() -> None:
    loop = Resolving(failing=1)
    assert firsts(2, loop) == ["not now", "not now", FOUND[0]]
    assert loop.lookups == 2


def test_who_leaves_does_not_end_the_lookup_of_the_others() -> None:
    async def scenario() -> list[int]:
        addresses = Addresses("model.example", 443)
        leaving, staying = (asyncio.create_task(addresses.take()) for _ in range(2))
        await asyncio.sleep(0)
        leaving.cancel()
        return [len(await staying), len(asyncio.all_tasks())]

    with asyncio.Runner(loop_factory=Resolving) as runner:
        assert runner.run(scenario()) == [3, 1]


def test_a_lookup_ends_with_its_pool() -> None:
    async def scenario() -> int:
        addresses = Addresses("model.example", 443)
        asking = asyncio.create_task(addresses.take())
        await asyncio.sleep(0)
        await addresses.close()
        with pytest.raises(asyncio.CancelledError):
            await asking
        return len(asyncio.all_tasks())

    with asyncio.Runner(loop_factory=Resolving) as runner:
        assert runner.run(scenario()) == 1


@pytest.mark.parametrize(
    ("host", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6), ("localhost", None), ("127.1", None)]
)
def test_only_a_whole_address_is_taken_as_it_is_written(host: str, family: socket.AddressFamily | None) -> None:
    info = literal_info(host, 80)
    assert (None if info is None else info[0]) == family
