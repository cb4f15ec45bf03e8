"""AWS Signature Version 4: headers which prove that the sender of one request, at one moment, holds a secret key.

Pure: knows no clock, no file and no service. Holds keys; prints none.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from urllib.parse import quote

from msgspec import Struct

from ...engine.endpoint import Request

_ALGORITHM = "AWS4-HMAC-SHA256"


class Keys(Struct, frozen=True):
    """An AWS access key and its secret; `token` is the session token of temporary keys, None for permanent ones."""

    access: str
    secret: str
    token: str | None = None

    def __repr__(self) -> str:
        return f"<Keys [{'for a while' if self.token else 'fixed'}]>"


class Signer:
    """The signer of requests to one service in one region, which derives its signing key anew once a day."""

    def __init__(self, keys: Keys, region: str, service: str) -> None:
        self._keys = keys
        self._region = region
        self._service = service
        self._day = ""
        self._key = b""

    def __repr__(self) -> str:
        return f"<Signer [{self._service} in {self._region}]>"

    def signed(self, request: Request, headers: Mapping[str, str], at: datetime) -> dict[str, str]:
        """Returns the headers to add to a request. `headers` are those that are signed beside Host, and must be sent
        unchanged; `at` is in UTC."""
        from yarl import URL  # here, since every plan loads this module and none signs a request

        moment = at.strftime("%Y%m%dT%H%M%SZ")
        added = {"X-Amz-Date": moment}
        if self._keys.token is not None:
            added["X-Amz-Security-Token"] = self._keys.token
        # As the transport writes them.
        url = URL(request.url, encoded=request.url.isascii())
        named = {name.lower(): value for name, value in {**headers, **added}.items()}
        named["host"] = url.host_port_subcomponent or ""
        names = sorted(named)
        listed = ";".join(names)
        canonical = [
            request.method,
            quote(url.raw_path, safe="/~"),
            _query(url.raw_query_string),
            *(f"{name}:{named[name]}" for name in names),
            "",
            listed,
            sha256(request.wire).hexdigest(),
        ]
        scope = f"{moment[:8]}/{self._region}/{self._service}/aws4_request"
        digest = sha256("\n".join(canonical).encode()).hexdigest()
        string_to_sign = f"{_ALGORITHM}\n{moment}\n{scope}\n{digest}"
        signature = _hmac(self._key_of(moment[:8]), string_to_sign).hex()
        credential = f"Credential={self._keys.access}/{scope}"
        return {**added, "Authorization": f"{_ALGORITHM} {credential}, SignedHeaders={listed}, Signature={signature}"}

    def _key_of(self, day: str) -> bytes:
        if day != self._day:
            key = f"AWS4{self._keys.secret}".encode()
            for part in (day, self._region, self._service, "aws4_request"):
                key = _hmac(key, part)
            self._day, self._key = day, key
        return self._key


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


def _query(written: str) -> str:
    parts = [part if "=" in part else f"{part}=" for part in written.split("&") if part]
    return "&".join(sorted(parts))
