"""Google's token endpoint and metadata server on loopback, and the credentials files that lead there."""

from __future__ import annotations

import asyncio
import json
import time
from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from raw_server import RawServer, Visit, http

# A short one: to load it, which checks its primes, is most of what an engine with such a key does.
KEY = rsa.generate_private_key(public_exponent=65537, key_size=1024)
PEM = KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()
ACCOUNT = "runner@some-project.iam.gserviceaccount.com"
REFRESH_TOKEN = "1//0canary-refresh-token-7f3a9d2e1b8c4e5f60718293a4b5c6"
# Shorter than what is taken for a secret wherever it stands.
CLIENT_SECRET = "GOCSPX-canary-7f3a9d2e"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"


def service_account(token_uri: str, **changes: Any) -> dict[str, Any]:
    info = {
        "type": "service_account",
        "project_id": "some-project",
        "private_key_id": "0123456789abcdef",
        "private_key": PEM,
        "client_email": ACCOUNT,
        "client_id": "1",
        "token_uri": token_uri,
    }
    return {**info, **changes}


def authorized_user(token_uri: str, **changes: Any) -> dict[str, Any]:
    """As `gcloud auth application-default login` writes it."""
    info = {
        "type": "authorized_user",
        "client_id": "764086051850-canary.apps.googleusercontent.com",
        "client_secret": CLIENT_SECRET,
        "refresh_token": REFRESH_TOKEN,
        "quota_project_id": "persons-project",
        "token_uri": token_uri,
    }
    return {**info, **changes}


def written(folder: Path, info: Any, name: str = "application_default_credentials.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(info))
    return path


class TokenServer:
    """Gives a new token for each exchange that proves itself. `answer`: what it says instead."""

    def __init__(self, *, lasts_s: int = 3600, answer: bytes | None = None, delay_s: float = 0.0) -> None:
        self.lasts_s = lasts_s
        self.answer = answer
        self.delay_s = delay_s
        self.tokens: list[str] = []
        self.exchanges = 0
        self.asked = asyncio.Event()
        self.bodies: list[dict[str, str]] = []
        self._server = RawServer(self._visit)

    async def __aenter__(self) -> TokenServer:
        await self._server.__aenter__()
        self.host = f"127.0.0.1:{self._server.port}"
        self.url = f"http://{self.host}/token"
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._server.__aexit__(*error)

    async def _visit(self, visit: Visit) -> None:
        while (request := await visit.request()) is not None:
            self.exchanges += 1
            answer = self.answer
            self.asked.set()
            await asyncio.sleep(self.delay_s)
            head, _, body = request.partition(b"\r\n\r\n")
            await visit.send(answer or self._token(head.decode(), body.decode()))

    def _token(self, head: str, body: str) -> bytes:
        if head.startswith("GET "):
            assert "/computeMetadata/v1/instance/service-accounts/default/token?" in head
            assert "metadata-flavor: google" in head.lower()
        else:
            sent = {name: values[0] for name, values in parse_qs(body).items()}
            self.bodies.append(sent)
            if sent["grant_type"] == "refresh_token":
                assert (sent["refresh_token"], sent["client_secret"]) == (REFRESH_TOKEN, CLIENT_SECRET)
            else:
                assert sent["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
                self.check(sent["assertion"])
        token = f"ya29.canary-token-{len(self.tokens)}-7f3a9d2e1b8c4e5f"
        self.tokens.append(token)
        return http(json.dumps({"access_token": token, "expires_in": self.lasts_s, "token_type": "Bearer"}).encode())

    def check(self, assertion: str) -> None:
        """The signature, and what is claimed: whoever would take a wrong one would take any."""
        signed, _, signature = assertion.rpartition(".")
        KEY.public_key().verify(decoded(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        header, claims = (json.loads(decoded(part)) for part in signed.split("."))
        assert (header["alg"], header["kid"]) == ("RS256", "0123456789abcdef")
        assert (claims["iss"], claims["scope"]) == (ACCOUNT, SCOPE)
        assert abs(claims["iat"] - time.time()) < 600 and 0 < claims["exp"] - claims["iat"] <= 3600


def decoded(part: str) -> bytes:
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))


def refusal(description: str = "Invalid JWT Signature.", status: str = "400 Bad Request") -> bytes:
    return http(json.dumps({"error": "invalid_grant", "error_description": description}).encode(), status=status)
