"""No page can make us connect to an address that is not public: thousands of URLs, and no socket is connected."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterator, Sequence

import pytest
from page_hosts import Connected, Kept, http, infos, leading_to, over, redirect_to
from raw_server import RawServer, Visit
from special_ranges import SPECIAL_V4, SPECIAL_V6
from torture import record

from millstream.engine.call import Call, Outcome
from millstream.engine.endpoint import Request, SendError, send
from millstream.providers.pages.connections import AddressInfo, PageConnections
from millstream.providers.pages.endpoint import PageEndpoint
from millstream.providers.pages.extraction import Extraction
from millstream.providers.pages.guard import Guard, parse_allowed
from millstream.providers.pages.reader import PageReader

# The program's own workers.
pytestmark = pytest.mark.process

WIDE = str.maketrans("0123456789.", "０１２３４５６７８９．")


def addresses(ranges: str) -> Iterator[str]:
    for text in ranges.split():
        network = ipaddress.ip_network(text)
        size = network.num_addresses
        yield from {str(network[place]) for place in {0, min(1, size - 1), size // 3, size // 2, size - 1}}


def spellings_v4(address: str) -> Iterator[str]:
    a, b, c, d = (int(part) for part in address.split("."))
    number = int(ipaddress.IPv4Address(address))
    yield from (address, f"{address}.", str(number), f"0x{number:x}", f"0X{number:08X}", f"0{number:o}")
    yield from (f"{a}.{number & 0xFFFFFF}", f"{a}.{b}.{number & 0xFFFF}", f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}")
    yield from (f"0{a:o}.0{b:o}.0{c:o}.0{d:o}", f"{a}.0x{b:x}.0{c:o}.{d}", address.translate(WIDE))
    yield from (address.replace(".", "。"), "".join(f"%{ord(character):02x}" for character in address))
    yield from (f"[::ffff:{address}]", f"[::FFFF:{number >> 16:x}:{number & 0xFFFF:x}]", f"[::{address}]")
    yield from (
        f"[64:ff9b::{address}]",
        f"[2002:{number >> 16:x}:{number & 0xFFFF:x}::1]",
        f"[0:0:0:0:0:ffff:{address}]",
    )
    yield from (f"[2001:0:{number >> 16:x}:{number & 0xFFFF:x}::1]", f"[64:ff9b:1::{address}]", f"user@{address}")
    yield from (f"example.com@{address}", f"example.com\\@{address}", f"{address}%00.example.com", f"{address}\t")


def spellings_v6(address: str) -> Iterator[str]:
    whole = ipaddress.IPv6Address(address).exploded
    yield from (
        f"[{address}]",
        f"[{whole}]",
        f"[{whole.upper()}]",
        f"[{address}%25lo]",
        f"[{address}%1]",
        f"x@[{address}]",
    )


def hostile_urls(port: int) -> Iterator[str]:
    hosts = [host for address in addresses(SPECIAL_V4) for host in spellings_v4(address)]
    hosts += [host for address in addresses(SPECIAL_V6) for host in spellings_v6(address)]
    hosts += ["localhost", "LOCALHOST.", "x.localhost", "ip6-localhost", "ⓛocalhost", "localhost%2e", "loc\u00adalhost"]
    for place, host in enumerate(hosts):
        yield (
            f"http://{host}:{port}/",
            f"https://{host}:{port}/x",
            f"HTTP://{host}:{port}",
            f"http:\\\\{host}:{port}/",
        )[place % 4]
        yield f"http://{host}/"
    for scheme in ("ftp", "file", "gopher", "dict", "ws", "data", "jar", "unix", "ldap", "tftp", "javascript", ""):
        yield f"{scheme}://127.0.0.1:{port}/"
        yield f"{scheme}:127.0.0.1:{port}"


def test_no_url_in_any_spelling_is_connected_to() -> None:
    async def attempt() -> int:
        count = 0
        async with RawServer(_never) as server:
            connected = Connected()
            connections = PageConnections(Guard(), new_socket=connected)
            endpoint = PageEndpoint(connections)
            ask = over(endpoint)
            for url in hostile_urls(server.port):
                outcome = await ask(Call("web", url))
                assert outcome.failure is not None, url
                # Past the words of the URL as well: what is sent is held against the guard once more.
                with pytest.raises(SendError):
                    await send(endpoint, Request(url, "web", b"", b"{}", b"", b""))
                count += 1
            connections.close()
            assert (connected.made, connected.addresses, server.connections) == (0, [], 0)
        return count

    tried = asyncio.run(attempt())
    assert tried > 5_000
    record("12", tried, tried, "no socket was made")


def test_no_redirect_leads_there_either() -> None:
    async def attempt() -> int:
        count = 0
        async with RawServer(_never) as server:
            connected = Connected()
            connections = PageConnections(Guard(), resolve=leading_to("127.0.0.1", "::1"), new_socket=connected)
            extraction = Extraction(1)
            through = over(PageEndpoint(connections))
            target = ""

            async def ask(call: Call) -> Outcome:
                if str(call.input).startswith("https://start.example/"):
                    return redirect_to(call, target)
                return await through(call)

            reader = PageReader(ask, Kept(), extraction)
            for target in hostile_urls(server.port):
                page = await reader.read(f"https://start.example/{count}")
                assert page.status in ("unreachable", "blocked") and not page.text, (target, page)
                count += 1
            connections.close()
            assert (connected.addresses, server.connections) == ([], 0)
        return count

    tried = asyncio.run(attempt())
    assert tried > 5_000
    record("12", tried, tried, "no socket was made")


def test_no_name_leads_there_whatever_its_servers_answer() -> None:
    async def attempt() -> int:
        connected = Connected()
        hidden = [*addresses(SPECIAL_V4), *addresses(SPECIAL_V6), "fe80::1%lo", "::1%1"]
        for address in hidden:
            connections = PageConnections(
                Guard(), resolve=leading_to(address, "127.0.0.1", address), new_socket=connected
            )
            outcome = await over(PageEndpoint(connections))(Call("web", "http://example.com/"))
            assert outcome.failure is not None and "not a public address" in outcome.failure.detail
            assert outcome.failure.kind == "rejected"
        assert (connected.made, connected.addresses) == (0, [])
        return len(hidden)

    tried = asyncio.run(attempt())
    assert tried > 200
    record("12", tried, tried, "no socket was made for a name that leads there")


def test_of_several_answers_only_public_ones_are_tried() -> None:
    async def attempt() -> list[object]:
        connected = Connected(is_cut_off=True)
        resolve = leading_to("127.0.0.1", "8.8.8.8", "10.0.0.1", "::1", "2a00::1", "169.254.169.254")
        connections = PageConnections(Guard(), resolve=resolve, new_socket=connected)
        outcome = await over(PageEndpoint(connections))(Call("web", "http://example.com/"))
        assert outcome.failure is not None
        return connected.addresses

    assert sorted(str(address) for address in asyncio.run(attempt())) == ["('2a00::1', 80, 0, 0)", "('8.8.8.8', 80)"]


def test_a_name_that_leads_elsewhere_the_second_time_is_checked_the_second_time() -> None:
    async def attempt() -> list[object]:
        answers = iter(["8.8.8.8", "127.0.0.1", "8.8.4.4", "10.0.0.1"])

        async def rebinding(host: str, port: int) -> Sequence[AddressInfo]:
            return infos(port, next(answers))

        connected = Connected(is_cut_off=True)
        ask = over(PageEndpoint(PageConnections(Guard(), resolve=rebinding, new_socket=connected)))
        details = [
            outcome.failure.detail for _ in range(4) if (outcome := await ask(Call("web", "http://a.com/"))).failure
        ]
        assert ["not a public" in detail for detail in details] == [False, True, False, True]
        return connected.addresses

    assert asyncio.run(attempt()) == [("8.8.8.8", 80), ("8.8.4.4", 80)]


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def attempt() -> tuple[int, int]:
        async def page(visit: Visit) -> None:
            await visit.request()
            await visit.send(http(b"hello"))

        async with RawServer(_never) as proxy, RawServer(page) as server:
            for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
                for spelling in (name, name.lower()):
                    monkeypatch.setenv(spelling, f"http://127.0.0.1:{proxy.port}")
            guard = Guard((parse_allowed(f"a.example=127.0.0.1:{server.port}"),))
            outcome = await over(PageEndpoint(PageConnections(guard)))(Call("web", "http://a.example/"))
            assert outcome.reply is not None
            return proxy.connections, server.connections

    assert asyncio.run(attempt()) == (0, 1)


async def _never(visit: Visit) -> None:
    raise AssertionError("connected to")
