"""Everything that can go wrong between a client and a model's server, in any dialect, over a real socket.

A variant is one way in which a row of the table of faults comes about; its sender has the connection.
"""

from __future__ import annotations

import asyncio
import struct
from base64 import b64encode
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from email.utils import formatdate
from urllib.parse import quote

import bedrock_shapes
from dialects import Dialect, Told
from msgspec import Struct
from protocols import CONVERSE
from raw_server import RawServer, Visit, http

SOUND = "position <<A>> and why"
TOO_LARGE = 17 << 20
_MARK = "¶"  # one sign, which no half of a text cuts
_CREDENTIALS = ("authorization", "api-key", "x-api-key", "x-goog-api-key", "x-amz-security-token")


class Asked(Struct, frozen=True):
    """One request as a sender sees it. `keys`: the credentials that came with it; `told`: the same in many forms."""

    visit: Visit
    dialect: Dialect
    stream: bool
    keys: str
    told: str

    async def send(self, answer: bytes | Told, *headers: str) -> bool:
        """A whole response that gives the credentials back; whether the connection goes on."""
        if isinstance(answer, Told):
            data = http(answer.body, *answer.headers, *headers, status=f"{answer.status} Told")
        else:
            data = http(answer, f"X-Request-Id: {self.keys}", *headers)
        await self.visit.send(data)
        return True

    def sound(self, text: str = SOUND) -> bytes:
        # In a stream they would stand in pieces, which makes it no answer at all.
        return self.dialect.answer(text if self.stream else f"{text} {self.told}", stream=self.stream)


Sender = Callable[[Asked], Awaitable[bool]]


class Variant(Struct, frozen=True):
    """`streams`: for which kinds of answers it can be. `is_alone`: it ends its lane, so it needs one of its own."""

    name: str
    send: Sender
    streams: tuple[bool, ...] = (False, True)
    is_alone: bool = False


def forms_of(secret: str, *, is_whole: bool = False) -> Iterator[str]:
    """As it is, in URLs, in JSON, in digits, and in base64 at each of its alignments: unless `is_whole`, without the
    signs at both ends, which hold bits of what stands beside it."""
    yield from (secret, quote(secret, safe=""), quote(secret), secret.encode().hex(), secret.encode().hex().upper())
    yield from (secret.replace("/", "\\/"), "".join(f"\\u{ord(sign):04x}" for sign in secret))
    for lead in range(3):
        found = b64encode(b"?" * lead + secret.encode()).decode()
        found = found if is_whole else found[4:-4]
        yield from (found, found.translate(str.maketrans("+/", "-_")))


def credentials_in(request: bytes) -> list[str]:
    """What a request proves itself with."""
    lines = (line.partition(":") for line in request.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:])
    values = [value.strip() for name, _, value in lines if name.lower() in _CREDENTIALS]
    assert values, "nobody has told who asks"
    return [value.removeprefix("Bearer ") for value in values]


class Faulty(RawServer):
    """Answers calls that are named `stays: VARIANT` with it, and those named `passes: VARIANT` with it the first time
    alone."""

    def __init__(self, dialect: Dialect, variants: tuple[Variant, ...]) -> None:
        super().__init__(self._serve_dialect)
        self.received: Counter[str] = Counter()
        self.arrivals: list[float] = []
        self._dialect = dialect
        self._variants = {variant.name: variant for variant in variants}

    async def _serve_dialect(self, visit: Visit) -> None:
        while (request := await visit.request()) is not None:
            prompt = next(part for part in request.decode().split("<<") if part.startswith(("stays", "passes")))
            prompt = prompt.partition(">>")[0]
            lasting, name, kind = prompt.split(": ")
            self.received[prompt] += 1
            self.arrivals.append(asyncio.get_running_loop().time())
            keys = credentials_in(request)
            told = " ".join(form for key in keys for form in forms_of(key, is_whole=True))
            asked = Asked(visit, self._dialect, kind == "stream", " ".join(keys), told)
            if lasting == "passes" and self.received[prompt] > 1:
                await asked.send(asked.sound())
            elif not await self._variants[name].send(asked):
                return


# --- senders ---


async def closes(asked: Asked) -> bool:
    return False


async def resets(asked: Asked) -> bool:
    asked.visit.writer.transport.abort()
    return False


async def resets_within(asked: Asked) -> bool:
    answer = asked.sound()
    await asked.visit.send(http(answer[: len(answer) // 3], length=len(answer)))
    asked.visit.writer.transport.abort()
    return False


async def is_short(asked: Asked) -> bool:
    answer = _unfinished(asked)
    await asked.visit.send(http(answer, length=len(answer) + 9))
    return False


async def cuts_a_chunk(asked: Asked) -> bool:
    await asked.visit.send(_chunked(_unfinished(asked), is_ended=False))
    return False


async def is_longer(asked: Asked) -> bool:
    await asked.visit.send(http(asked.sound()) + b"more")
    return False


async def says_nothing(asked: Asked) -> bool:
    await asked.visit.hung_up()
    return False


async def begins_a_head(asked: Asked) -> bool:
    await asked.visit.send(b"HTTP/1.1 200 OK\r\nContent-")
    await asked.visit.hung_up()
    return False


async def begins_a_body(asked: Asked) -> bool:
    answer = asked.sound()
    await asked.visit.send(http(answer[:20], length=len(answer)))
    await asked.visit.hung_up()
    return False


async def truncates(asked: Asked) -> bool:
    return await asked.send(_unfinished(asked)[:-9] if asked.stream else asked.sound()[:-9])


async def fails_within(asked: Asked) -> bool:
    # A binary message that a key is struck out of is no whole one any more.
    is_binary = asked.stream and asked.dialect.answers is CONVERSE
    return await asked.send(asked.dialect.errors.within("No." if is_binary else asked.told, asked.stream))


def status(number: int) -> Sender:
    async def send(asked: Asked) -> bool:
        return await asked.send(asked.dialect.errors.told(number, asked.told))

    return send


def throttled(*headers: str) -> Sender:
    async def send(asked: Asked) -> bool:
        return await asked.send(asked.dialect.errors.told(429, asked.told), *headers)

    return send


def redirects(number: int) -> Sender:
    async def send(asked: Asked) -> bool:
        return await asked.send(Told(number, b""), f"Location: http://127.0.0.1:1/?key={quote(asked.keys)}")

    return send


async def says_poor(asked: Asked) -> bool:
    return await asked.send(asked.dialect.errors.poor(asked.told))


async def filters(asked: Asked) -> bool:
    return await asked.send(asked.dialect.answer("No.", stream=asked.stream, ending="filtered"))


async def filters_by_error(asked: Asked) -> bool:
    assert asked.dialect.errors.filtered is not None
    return await asked.send(asked.dialect.errors.filtered(asked.told))


async def runs_out(asked: Asked) -> bool:
    return await asked.send(asked.dialect.answer("hal", stream=asked.stream, ending="length"))


async def is_empty(asked: Asked) -> bool:
    return await asked.send(asked.dialect.answer(None, stream=asked.stream))


async def is_too_large(asked: Asked) -> bool:
    await asked.visit.send(http(b"", length=TOO_LARGE))
    for _ in range(TOO_LARGE >> 20):
        await asked.visit.send(b" " * (1 << 20))
    return False


def writes(wrong: bytes) -> Sender:
    """Bytes in the middle of a text that no text has."""

    async def send(asked: Asked) -> bool:
        answer = asked.sound(f"A {_MARK} B")
        whole = _MARK.encode()
        is_binary = asked.stream and b":message-type" in answer
        changed = _framed_anew(answer, whole, wrong) if is_binary else answer.replace(whole, wrong)
        assert changed != answer
        return await asked.send(changed)

    return send


async def ends_without_its_mark(asked: Asked) -> bool:
    await asked.visit.send(_chunked(asked.dialect.answer(SOUND, stream=True, part="finish"), is_ended=False))
    return False


async def ends_too_soon(asked: Asked) -> bool:
    await asked.visit.send(_chunked(_unfinished(asked)))
    return True


def _unfinished(asked: Asked) -> bytes:
    """An answer without its end; of one that is not streamed the end is where its length says."""
    return asked.dialect.answer(SOUND, stream=True, part="middle") if asked.stream else asked.sound()


def _chunked(data: bytes, *, is_ended: bool = True) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%b\r\n" % (len(data), data) + (b"0\r\n\r\n" if is_ended else b"")


def _framed_anew(stream: bytes, old: bytes, new: bytes) -> bytes:
    """Binary messages with other bytes in them, and checksums that hold."""
    frames = b""
    while stream:
        size, head = struct.unpack(">II", stream[:8])
        frames += bedrock_shapes.frame(stream[12 : 12 + head], stream[12 + head : size - 4].replace(old, new))
        stream = stream[size:]
    return frames


IN_AN_HOUR = (f"Date: {formatdate(1e9, usegmt=True)}", f"Retry-After: {formatdate(1e9 + 3600, usegmt=True)}")


def _of_statuses(statuses: tuple[int, ...], send: Callable[[int], Sender], *, is_alone: bool) -> tuple[Variant, ...]:
    """Whole and streamed by turns: an error that is no answer is the same for both."""
    return tuple(
        Variant(str(number), send(number), (bool(place % 2),), is_alone) for place, number in enumerate(statuses)
    )


def variants_of(row: str, statuses: tuple[int, ...]) -> tuple[Variant, ...]:
    """The ways in which a row of the table comes about."""
    found = VARIANTS.get(row, ())
    if row == "redirect":
        return _of_statuses(statuses, redirects, is_alone=True)
    if row in ("empty account", "dead key"):
        return (*found, *_of_statuses(statuses, status, is_alone=True))
    if row in ("server error", "overloaded", "gateway", "rejected"):
        return _of_statuses(statuses, status, is_alone=False)
    return found


VARIANTS: dict[str, tuple[Variant, ...]] = {
    "hung up": (Variant("closes", closes), Variant("resets", resets)),
    "broken body": (
        Variant("resets within", resets_within),
        Variant("is short", is_short),
        Variant("cuts a chunk", cuts_a_chunk),
    ),
    "longer body": (Variant("is longer", is_longer),),
    "late": (
        Variant("says nothing", says_nothing, (False,)),
        Variant("begins a head", begins_a_head, (True,)),
        Variant("begins a body", begins_a_body),
    ),
    "truncated JSON": (Variant("truncates", truncates),),
    "error within": (Variant("fails within", fails_within),),
    "told to wait": (
        Variant("in seconds", throttled("Retry-After: 3600"), (False,), is_alone=True),
        Variant("by a date", throttled(*IN_AN_HOUR), (True,), is_alone=True),
        Variant("in milliseconds", throttled("Retry-After: 1", "retry-after-ms: 3600000"), (False,), is_alone=True),
    ),
    "throttled": (Variant("throttles", throttled()),),
    "empty account": (Variant("says poor", says_poor, (False,), is_alone=True),),
    "filtered": (Variant("filters", filters), Variant("filters by error", filters_by_error)),
    "cut by length": (Variant("runs out", runs_out),),
    "empty": (Variant("is empty", is_empty),),
    "too large": (Variant("is too large", is_too_large),),
    "no text": (Variant("no UTF-8", writes(b"\xff")), Variant("half a pair", writes(b"\\ud83d"))),
    "ended stream": (Variant("ends without its mark", ends_without_its_mark, (True,)),),
    "cut stream": (Variant("ends too soon", ends_too_soon, (True,)), Variant("cuts", cuts_a_chunk, (True,))),
}
