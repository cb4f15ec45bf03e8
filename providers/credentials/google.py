"""Google credentials as an Authorizer: found where Google's own tools put them, a token renewed before it expires.

Calls that wait for a token share one exchange, in a thread beside the loop. Reads no environment: its variables are
passed in. Holds keys and tokens; prints, stores and hashes none.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import structs

from ...engine.endpoint import Fault, Request, SendError
from ..llm.protocol import Target
from .authorizer import NO_CREDENTIALS, Authorizer, CredentialsError, expanded
from .google_tokens import ADVICE, METADATA_HOST, AccessToken, CredentialsFile, MetadataServer, NoToken, TokenSource

FILE = "GOOGLE_APPLICATION_CREDENTIALS"
FOLDER = "CLOUDSDK_CONFIG"
SERVER = "GCE_METADATA_HOST"
PROJECTS = ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID")
VARIABLES = (FILE, FOLDER, SERVER, *PROJECTS)

# A token lasts an hour: calls in its last five minutes still use it while the next one is fetched.
RENEWED_BEFORE_S = 300.0
# A call that is sent now must arrive before the token ends.
SPARED_S = 10.0
# A token younger than this is not the reason for a 401; and a failed renewal is not repeated sooner than this.
PAUSE_S = 10.0
_FILE_NAME = "application_default_credentials.json"
_GOOGLE = ".googleapis.com"
_MULTI_REGIONS = ("us", "eu")


class GoogleAuthorizer:
    """An authorizer that sends an access token with each attempt and renews it before it expires."""

    fixed = None

    def __init__(self, source: TokenSource) -> None:
        self._source = source
        self._token: AccessToken | None = None
        self._renewal: asyncio.Task[Fault | None] | None = None
        self._asked_at = self._got_at = self._ends_at = float("-inf")
        self.secrets: tuple[str, ...] = source.secrets

    def __repr__(self) -> str:
        return f"<GoogleAuthorizer [{self._source.name}; {'a' if self._token is not None else 'no'} token]>"

    async def headers(self, request: Request) -> Mapping[str, str]:
        now = asyncio.get_running_loop().time()
        token = self._token
        if token is not None and now < self._ends_at:
            is_old = now >= self._ends_at - min(RENEWED_BEFORE_S, token.lasts_s / 2)
            if is_old and now >= self._asked_at + PAUSE_S:
                self._renewing(now)
            return token.headers
        # A waiting call may be cancelled; the others wait for the same exchange.
        fault = await asyncio.shield(self._renewing(now))
        if fault is not None:
            raise SendError(fault)
        assert self._token is not None
        return self._token.headers

    def refused(self) -> None:
        if asyncio.get_running_loop().time() >= self._got_at + PAUSE_S:
            self._ends_at = float("-inf")

    def _renewing(self, now: float) -> asyncio.Task[Fault | None]:
        if self._renewal is None or self._renewal.done():
            self._asked_at = now
            self._renewal = asyncio.get_running_loop().create_task(self._renew())
        return self._renewal

    async def _renew(self) -> Fault | None:
        """Fetches and keeps a token. Returns None, or the fault that each waiting attempt raises without a token."""
        try:
            token = await asyncio.to_thread(self._source.fetch)
        except NoToken as error:
            if error.is_final:
                return Fault("rejected", str(error), "confirm", quota="refund")
            return Fault("connect", str(error), "retry", quota="refund")
        # Answers to calls that were sent with the last token are still on their way.
        last = () if self._token is None else (self._token.secret,)
        self.secrets = (*self._source.secrets, *last, token.secret)
        self._token = token
        self._got_at = asyncio.get_running_loop().time()
        self._ends_at = self._got_at + max(token.lasts_s - SPARED_S, token.lasts_s / 2)
        return None


def google_authorizer(variables: Mapping[str, str], target: Target) -> Authorizer:
    """Returns an authorizer with the credentials file, else with the machine's metadata server if the host is Google's,
    else one without credentials. Raises CredentialsError if the project is missing or the credentials can't be used."""
    if target.project is None:
        raise CredentialsError(
            f"a project is needed: set {PROJECTS[0]}, or give it under [providers.{target.provider}] in a --config file"
        )
    path = _file_of(variables)
    if path is not None:
        try:
            return GoogleAuthorizer(CredentialsFile(str(path), _read(path)))
        except ValueError as error:
            raise CredentialsError(f"the credentials in {path} can't be used: {error}: {ADVICE}") from None
    host = urlsplit(target.base_url).hostname or ""
    if SERVER in variables or host.endswith(_GOOGLE):
        server = MetadataServer(variables.get(SERVER, METADATA_HOST))
        if not server.is_there():
            raise CredentialsError(f"no Google credentials found, and {server.name} is not there: {ADVICE}")
        return GoogleAuthorizer(server)
    return NO_CREDENTIALS


def place_of(variables: Mapping[str, str]) -> str | None:
    """Returns the path of the credentials file that `gcloud` wrote; None without it or if a variable names another."""
    path = None if FILE in variables else _file_of(variables)
    return None if path is None else str(path)


def lost_of(variables: Mapping[str, str]) -> str | None:
    """Returns the path in GOOGLE_APPLICATION_CREDENTIALS if no file is there, else None."""
    path = _file_of(variables) if FILE in variables else None
    return None if path is None or path.is_file() else str(path)


def located(variables: Mapping[str, str], target: Target) -> Target:
    """Returns the target with the host of its region, and with the project of the credentials if no other is set."""
    base_url = _host_of_region(target.base_url, target.region)
    identity = base_url if target.identity == target.base_url else target.identity
    project = target.project or _project_of(variables)
    return structs.replace(target, base_url=base_url, identity=identity, project=project)


def _host_of_region(base_url: str, region: str | None) -> str:
    scheme, _, rest = base_url.partition("://")
    host, slash, path = rest.partition("/")
    if host == f"global-aiplatform{_GOOGLE}":
        host = f"aiplatform{_GOOGLE}"
    elif region in _MULTI_REGIONS and host == f"{region}-aiplatform{_GOOGLE}":
        host = f"aiplatform.{region}.rep{_GOOGLE}"
    return f"{scheme}://{host}{slash}{path}"


def _file_of(variables: Mapping[str, str]) -> Path | None:
    """Returns the path in GOOGLE_APPLICATION_CREDENTIALS, else the existing file that `gcloud` wrote, else None."""
    if FILE in variables:
        return expanded(FILE, variables[FILE])
    folder = Path(variables[FOLDER]) if FOLDER in variables else Path.home() / ".config" / "gcloud"
    path = folder / _FILE_NAME
    return path if path.is_file() else None


def _read(path: Path) -> dict[str, Any]:
    try:
        info = json.loads(path.read_bytes())
    except OSError as error:
        raise ValueError(f"it can't be read ({error.strerror})") from None
    except ValueError:
        raise ValueError("it is no JSON") from None
    if not isinstance(info, dict):
        raise ValueError("it is no JSON object")
    return info


def _project_of(variables: Mapping[str, str]) -> str | None:
    path = _file_of(variables)
    if path is None:
        return None
    try:
        info = _read(path)
    except ValueError:
        return None  # reported where the credentials are needed
    projects = (info.get(field) for field in ("project_id", "quota_project_id"))
    return next((one for one in projects if isinstance(one, str) and one), None)
