"""Fetches Google access tokens: from a credentials file by google-auth, or from the metadata server of its machines.

Everything here blocks and belongs in a thread. Owns the one HTTP client that may see a private credential: it follows
no redirect, never retries, and names no secret in an error. Knows no model and no lane.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from msgspec import Struct

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
METADATA_HOST = "metadata.google.internal"
ADVICE = (
    "log in with `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to the file of a "
    "service account's key"
)
_SECRET_FIELDS = ("private_key", "refresh_token", "client_secret")
_TOKEN_URI = "https://oauth2.googleapis.com/token"
_AWS_TOKEN = "urn:ietf:params:aws:token-type:aws4_request"
_TIMEOUT_S = 20.0
# If the server exists, it is as near as the machine itself.
_METADATA_TIMEOUT_S = 3.0
_ANSWER_MAX = 1 << 20
_LASTS_S = 3_600.0
_LONG_WORD = re.compile(r"[\w\-./+=~%]{24,}")
# The addresses of documentation in a library's errors: too plain to hold a secret.
_PLAIN_ADDRESS = re.compile(r"https://[a-z.]+(?:/[a-z.#-]*)*")
_ERROR_MAX = 200
# The names by which token endpoints report a failure of their own, whatever the status.
_FOR_NOW = (b"internal_failure", b"server_error", b"temporarily_unavailable")


class AccessToken(Struct, frozen=True):
    """An access token, the headers that carry it, and the seconds that it is valid for after it was fetched."""

    secret: str
    headers: Mapping[str, str]
    lasts_s: float

    def __repr__(self) -> str:
        return f"<AccessToken [good for {self.lasts_s:.0f} s]>"


class NoToken(Exception):
    """Raised if no token can be fetched. `is_final`: a retry would have the same result."""

    def __init__(self, why: str, *, is_final: bool) -> None:
        super().__init__(why)
        self.is_final = is_final


class Unreachable(NoToken):
    """Raised if a server can't be reached."""


class TokenSource(Protocol):
    """A place that access tokens are fetched from. `fetch` blocks, and raises no exception but NoToken."""

    @property
    def name(self) -> str: ...

    @property
    def secrets(self) -> tuple[str, ...]: ...

    def fetch(self) -> AccessToken: ...


class CredentialsFile:
    """A credentials file of any type that google-auth reads, as a source of tokens. Raises ValueError for a bad
    file."""

    def __init__(self, name: str, info: Mapping[str, Any]) -> None:
        self.name = name
        self.secrets = tuple(info[field] for field in _SECRET_FIELDS if isinstance(info.get(field), str))
        from google.auth.exceptions import GoogleAuthError  # here, since loading it takes longer than all of this

        self._is_a_persons = info.get("type") == "authorized_user"
        try:
            self._credentials = _credentials_of(dict(info))
        except KeyError as error:
            raise ValueError(f"it has no {error}") from None
        except (TypeError, AttributeError):
            raise ValueError("one of its fields has the wrong type") from None
        except (ValueError, GoogleAuthError) as error:
            raise ValueError(without_secrets(str(error))) from None

    def fetch(self) -> AccessToken:
        from google.auth.exceptions import GoogleAuthError

        credentials = self._credentials
        try:
            credentials.refresh(_http)
        except GoogleAuthError as error:
            raise self._refused(error) from None
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            why = f"the answer to {self.name} is no token ({type(error).__name__})"
            raise NoToken(why, is_final=False) from None
        headers: dict[str, str] = {}
        credentials.apply(headers)
        lasts_s = _LASTS_S
        if credentials.expiry is not None:
            lasts_s = (credentials.expiry.replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds()
        # google-auth writes header names in lower case, which is equivalent.
        return AccessToken(str(credentials.token), headers, lasts_s)

    def _refused(self, error: Exception) -> NoToken:
        reason = str(error.args[0]) if error.args else type(error).__name__
        for secret in self.secrets:
            reason = reason.replace(secret, "[key]")
        reason = without_secrets(reason)
        advice = ADVICE if self._is_a_persons else "check that the account and its key still exist, or give another key"
        return NoToken(f"Google refuses the credentials in {self.name} ({reason}): {advice}", is_final=True)


class MetadataServer:
    """The metadata server of Google's machines, as a source of tokens for the machine's own account."""

    secrets: tuple[str, ...] = ()

    def __init__(self, host: str = METADATA_HOST) -> None:
        self._host = host
        self.name = f"the metadata server {host}"

    def is_there(self) -> bool:
        """Returns whether the server can be reached; off Google's machines its name fails quickly."""
        host, _, port = self._host.partition(":")
        try:
            with socket.create_connection((host, int(port or 80)), timeout=_METADATA_TIMEOUT_S):
                return True
        except (OSError, ValueError, UnicodeError):
            return False

    def fetch(self) -> AccessToken:
        path = f"/computeMetadata/v1/instance/service-accounts/default/token?scopes={quote(SCOPE, safe='')}"
        none = f"no Google credentials found, and {self.name} gives none"
        try:
            answer = _http(
                f"http://{self._host}{path}", headers={"Metadata-Flavor": "Google"}, timeout=_METADATA_TIMEOUT_S
            )
        except Unreachable as error:
            raise NoToken(f"{none} ({error}): {ADVICE}", is_final=True) from None
        if answer.status != 200:
            raise NoToken(f"{none} (it answered {answer.status}): {ADVICE}", is_final=True)
        try:
            fields = json.loads(answer.data)
            secret, lasts_s = str(fields["access_token"]), float(fields.get("expires_in", _LASTS_S))
        except (ValueError, TypeError, LookupError, AttributeError):
            raise NoToken(f"{self.name} answered with no token: {ADVICE}", is_final=True) from None
        return AccessToken(secret, {"authorization": f"Bearer {secret}"}, lasts_s)


def _credentials_of(info: dict[str, Any]) -> Any:
    """Returns google-auth's credentials for the `type` of the file, since its loader for all types is deprecated.
    Raises ValueError for an unknown type."""
    made: Any  # google-auth has types, but not for the functions that make its credentials
    if info.get("type") == "service_account":
        from google.oauth2 import service_account as made

        return made.Credentials.from_service_account_info(info, scopes=[SCOPE])
    if info.get("type") == "authorized_user":
        from google.oauth2 import credentials as made

        # Its scopes were given when the person logged in.
        return made.Credentials(
            None,
            refresh_token=info["refresh_token"],
            token_uri=info.get("token_uri", _TOKEN_URI),
            client_id=info["client_id"],
            client_secret=info["client_secret"],
            quota_project_id=info.get("quota_project_id"),
        )
    if info.get("type") == "impersonated_service_account":
        from google.auth import impersonated_credentials as made

        return made.Credentials.from_impersonated_service_account_info(info, scopes=[SCOPE])
    if info.get("type") == "external_account_authorized_user":
        from google.auth import external_account_authorized_user as made

        return made.Credentials.from_info(info)
    if info.get("type") == "external_account":
        if info.get("subject_token_type") == _AWS_TOKEN:
            from google.auth import aws as made
        elif "executable" in info.get("credential_source", {}):
            from google.auth import pluggable as made
        else:
            from google.auth import identity_pool as made
        return made.Credentials.from_info(info, scopes=[SCOPE])
    raise ValueError(f"its type is {str(info.get('type'))[:40]!r}, which is none of Google's")


class _Answer(Struct, frozen=True):
    """A response as google-auth expects it."""

    status: int
    headers: Mapping[str, str]
    data: bytes


def _http(
    url: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = None,
    **unused: Any,
) -> _Answer:
    """Sends one HTTP request and returns the response, as google-auth expects of a transport; its own transports need
    one more library.

    Raises NoToken for failures that may pass: google-auth would retry them itself, and retries have one owner here.
    """
    import http.client  # here, since every plan loads this module and none sends a request
    import urllib.request

    host, scheme = urlsplit(url).netloc, urlsplit(url).scheme
    if scheme not in ("http", "https") or not host:
        raise Unreachable(f"the address {without_secrets(url)!r} can't be reached", is_final=False)
    opener = urllib.request.OpenerDirector()  # bare: without redirects and without proxies
    opener.add_handler(urllib.request.HTTPHandler())
    opener.add_handler(urllib.request.HTTPSHandler())
    try:
        request = urllib.request.Request(url, body, dict(headers or {}), method=method)
        with opener.open(request, timeout=timeout or _TIMEOUT_S) as answer:
            status, data = answer.status, answer.read(_ANSWER_MAX)
            response_headers = {name.lower(): value for name, value in answer.headers.items()}
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        why = f"{host} can't be reached ({without_secrets(str(reason)) or type(reason).__name__})"
        raise Unreachable(why, is_final=False) from None
    if status in (408, 429) or status >= 500 or (status >= 400 and any(word in data for word in _FOR_NOW)):
        raise NoToken(f"{host} answered {status}", is_final=False)
    return _Answer(status, response_headers, data)


def without_secrets(text: str) -> str:
    """Returns a text as one line of at most 200 characters, in which words of 24 characters or more, which may be
    secrets, are replaced by `[key]`."""
    return " ".join(word if _PLAIN_ADDRESS.fullmatch(word) else _LONG_WORD.sub("[key]", word) for word in text.split())[
        :_ERROR_MAX
    ]
