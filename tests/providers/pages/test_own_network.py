"""What our own machine or its network lacks is no end of a page."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest
from loops import run_on
from page_hops import attempt

from millstream.engine.call import Call
from millstream.engine.endpoint import Fault
from millstream.engine.fault import LocalFault
from millstream.providers.pages.connections import AddressInfo, PageConnections, require_authorities
from millstream.providers.pages.endpoint import PageEndpoint
from millstream.providers.pages.guard import Guard

UNREACHABLE = OSError(errno.ENETUNREACH, "Network is unreachable")
NO_ANSWER = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
NONE_FREE = OSError("Multiple exceptions: [Errno 24] Too many open files, [Errno 101] Network is unreachable")


@pytest.mark.parametrize(
    ("error", "has_route", "detail"),
    [
        (UNREACHABLE, False, "this machine has no route to the internet"),
        (UNREACHABLE, True, ""),
        (OSError(errno.EHOSTUNREACH, "No route to host"), False, ""),
        (NO_ANSWER, False, "this machine has no route to the internet"),
        (NO_ANSWER, True, "this machine resolves no names"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), False, ""),
        (socket.gaierror(socket.EAI_MEMORY, "Memory allocation failure"), True, "this machine is out of memory"),
        (OSError(errno.EMFILE, "Too many open files"), True, "this machine is out of file descriptors"),
        (OSError(errno.EADDRNOTAVAIL, "x"), True, "this machine is out of local ports or addresses"),
        (OSError(errno.ENOBUFS, "x"), True, "this machine is out of room for network buffers"),
        (RuntimeError("can't start new thread"), True, "this machine is out of threads"),
        (NONE_FREE, True, "this machine is out of file descriptors"),
    ],
)
def test_what_our_own_machine_lacks_is_waited_for_and_no_end_of_a_page(
    error: Exception, has_route: bool, detail: str
) -> None:
    async def resolve(host: str, port: int) -> Sequence[AddressInfo]:
        raise error

    connections = PageConnections(Guard(), resolve=resolve, has_route=lambda: has_route)
    found, _ = run_on("asyncio", attempt(PageEndpoint(connections), Call("web", "http://a.example/")))
    assert isinstance(found, Fault)
    assert found.detail.startswith(detail) and (found.action == "wait") == bool(detail), found


@pytest.mark.parametrize("files", [0, 1])
def test_a_machine_without_any_authority_of_certificates_has_a_fault_of_its_own(files: int, tmp_path: Path) -> None:
    for number in range(files):
        (tmp_path / f"{number}").touch()
    for folder in (None, str(tmp_path / "none"), str(tmp_path)):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if files and folder == str(tmp_path):
            require_authorities(context, folder)
        else:
            with pytest.raises(LocalFault, match="no certificates of authorities"):
                require_authorities(context, folder)
