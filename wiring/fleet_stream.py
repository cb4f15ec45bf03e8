"""Frames between a driver and one of its workers, over a connection of their own beside the cluster's.

By a call of the cluster's library a batch costs both ends some milliseconds, by this connection what copying it costs.
Before a frame is read, which is unpickled, each end proves to the other that it has the secret which the driver gave
the worker through the cluster. Where the cluster encrypts (`RAY_USE_TLS`), this does too, with the same certificates.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import ssl
import struct
from collections.abc import Awaitable, Callable

_HEAD = struct.Struct("!?Q")
_NONCE_BYTES = _PROOF_BYTES = 32
_PROOF_S = 10.0
# A batch is read without stopping.
_READ_AHEAD = 1 << 24
_DRIVER, _WORKER = b"driver", b"worker"


class FrameStream:
    """One end of a connection that was proved at both."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def __repr__(self) -> str:
        return f"<FrameStream to {self._writer.get_extra_info('peername')}>"

    @classmethod
    async def open(cls, host: str, port: int, secret: bytes) -> FrameStream:
        """Connects to a driver's worker. Raises OSError."""
        tls = _tls(ssl.PROTOCOL_TLS_CLIENT)
        async with asyncio.timeout(_PROOF_S):
            reader, writer = await asyncio.open_connection(host, port, limit=_READ_AHEAD, ssl=tls)
        try:
            await _prove(reader, writer, secret, _DRIVER, _WORKER)
        except BaseException as error:
            writer.close()
            if isinstance(error, EOFError):
                raise ConnectionError("it was closed at once") from error
            raise
        return cls(reader, writer)

    def send(self, data: bytes, *, is_fault: bool = False) -> None:
        """Sends a frame. That the connection has ended, `receive` tells."""
        # Not by writelines: from Python 3.12 on it fails on a closed transport, and never gets rid of an empty part.
        self._writer.write(_HEAD.pack(is_fault, len(data)) + data)

    async def receive(self) -> bytes:
        """Returns the next frame. Raises what `lose` was given, and ConnectionError for the end of the connection and
        for a fault at the other end."""
        try:
            is_fault, length = _HEAD.unpack(await self._reader.readexactly(_HEAD.size))
            data = await self._reader.readexactly(length)
        except (OSError, EOFError) as error:
            raise ConnectionError("its connection has ended") from error
        if is_fault:
            raise ConnectionError(data.decode())
        return data

    def lose(self, fault: Exception) -> None:
        """Ends the connection: who receives raises this."""
        self._reader.set_exception(fault)
        self._writer.close()


async def serve(host: str, secret: bytes, work: Callable[[FrameStream], Awaitable[None]]) -> asyncio.Server:
    """Listens for a driver that has the secret. `work` is awaited with its connection, and a fault of it is raised at
    the driver."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream = FrameStream(reader, writer)
        try:
            await _prove(reader, writer, secret, _WORKER, _DRIVER)
            await work(stream)
        except (OSError, EOFError):
            pass
        except Exception as error:  # noqa: BLE001 (raised at the other end)
            stream.send(f"{type(error).__name__}: {error}".encode(), is_fault=True)
        finally:
            writer.close()

    return await asyncio.start_server(accept, host, 0, limit=_READ_AHEAD, ssl=_tls(ssl.PROTOCOL_TLS_SERVER))


async def _prove(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, secret: bytes, we: bytes, they: bytes
) -> None:
    """Raises ConnectionError unless the other end has the secret too, and TimeoutError if it is silent."""
    async with asyncio.timeout(_PROOF_S):
        writer.write(ours := secrets.token_bytes(_NONCE_BYTES))
        theirs = await reader.readexactly(_NONCE_BYTES)
        writer.write(hmac.digest(secret, we + theirs, "sha256"))
        proof = await reader.readexactly(_PROOF_BYTES)
    if not hmac.compare_digest(proof, hmac.digest(secret, they + ours, "sha256")):
        raise ConnectionError("the other end doesn't know the secret")


def _tls(protocol: int) -> ssl.SSLContext | None:
    """Returns how Ray itself encrypts; None: not at all."""
    if os.environ.get("RAY_USE_TLS", "0") in ("", "0"):
        return None
    context = ssl.SSLContext(protocol)
    context.check_hostname = False  # the certificates of a cluster are for its machines, not for their names
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(os.environ["RAY_TLS_SERVER_CERT"], os.environ["RAY_TLS_SERVER_KEY"])
    context.load_verify_locations(os.environ["RAY_TLS_CA_CERT"])
    return context
