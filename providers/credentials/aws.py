"""AWS credentials as an Authorizer: keys of the environment or of a profile, which sign each attempt, or a bearer token
of Bedrock's.

Only existing keys: none are fetched for roles, from containers or from instances. Reads no environment: its variables
are passed in. Holds keys; prints, stores and hashes none.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import structs

from ...engine.endpoint import Request
from ..llm.protocol import Target
from .authorizer import NO_CREDENTIALS, Authorizer, CredentialsError, bearer, expanded
from .aws_signature import Keys, Signer

ACCESS, SECRET, TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
PROFILES = ("AWS_DEFAULT_PROFILE", "AWS_PROFILE")  # the order of AWS's own tools
CREDENTIALS_FILE, CONFIG_FILE = "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"
IDENTITY_FILE = "AWS_WEB_IDENTITY_TOKEN_FILE"
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
BEARER = "AWS_BEARER_TOKEN_BEDROCK"
VARIABLES = (ACCESS, SECRET, TOKEN, *PROFILES, CREDENTIALS_FILE, CONFIG_FILE, IDENTITY_FILE)

# The services in whose name requests are signed; the second has Claude alone, at an address of its own.
SERVICE, MANTLE = "bedrock", "bedrock-mantle"
# The host without a region, which is inserted.
HOST = "bedrock-runtime.amazonaws.com"
_SUFFIXES = {"cn": "amazonaws.com.cn", "eusc": "amazonaws.eu"}
_AWS = (".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".api.aws")
# The header as the endpoint sends it.
_SIGNED_TOO = {"Content-Type": "application/json"}
# Fields that AWS's own tools prefer to keys in the same profile, and fields that they use where there are no keys.
_BEFORE_KEYS = ("role_arn", "web_identity_token_file", "sso_session", "sso_start_url")
_AFTER_KEYS = ("credential_process", "login_session")
_EXPORT = "`aws configure export-credentials{} --format env` tells keys to set"


class AwsAuthorizer:
    """An authorizer that signs each attempt with AWS keys. `now` returns the seconds since 1970; `renewed` returns new
    keys, or None while the present ones are current."""

    fixed = None

    def __init__(
        self,
        keys: Keys,
        region: str,
        now: Callable[[], float] = time.time,
        renewed: Callable[[], Keys | None] = lambda: None,
        service: str = SERVICE,
    ) -> None:
        self._keys = keys
        self._region, self._service = region, service
        self._signer = Signer(keys, region, service)
        self._now = now
        self._renewed = renewed
        self.secrets: tuple[str, ...] = _secrets_of(keys)

    def __repr__(self) -> str:
        return f"<AwsAuthorizer [{self._signer!r}]>"

    async def headers(self, request: Request) -> Mapping[str, str]:
        keys = self._renewed()
        if keys is not None and keys != self._keys:
            # Calls that were signed with the last keys may still be in flight, and their answers may echo these.
            self.secrets = (*_secrets_of(self._keys), *_secrets_of(keys))
            self._keys, self._signer = keys, Signer(keys, self._region, self._service)
        return self._signer.signed(request, _SIGNED_TOO, datetime.fromtimestamp(self._now(), UTC))

    def refused(self) -> None:
        return None


class RenewedInFiles:
    """A callable that returns the profile's keys if their files have changed since it last read them, else None. The
    files change when another tool renews keys that expire."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._stamps: tuple[tuple[int, int, int], ...] | None = None

    def __call__(self) -> Keys | None:
        # Taken before the files are read, so that a change in between is seen the next time.
        stamps = _stamps(self._variables)
        if stamps == self._stamps:
            return None
        try:
            keys = keys_of(self._variables)
        except CredentialsError:
            return None  # half written, or deleted: the present keys may still be valid
        self._stamps = stamps
        return keys


def _stamps(variables: Mapping[str, str]) -> tuple[tuple[int, int, int], ...]:
    stamps = []
    for path in _files(variables):
        try:
            status = path.stat()
        except OSError:
            continue
        stamps.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(stamps)


def _secrets_of(keys: Keys) -> tuple[str, ...]:
    return tuple(filter(None, (keys.secret, keys.token, keys.access)))


def aws_authorizer(token: str | None, variables: Mapping[str, str], target: Target) -> Authorizer:
    """Returns an authorizer with the bearer token, else with keys; one without credentials if there are neither and the
    host is not AWS's. Raises CredentialsError if keys or region are missing."""
    host = urlsplit(target.base_url).hostname or ""
    keys = None
    if token is None:
        keys = keys_of(variables)
        if keys is None and not host.endswith(_AWS):
            return NO_CREDENTIALS
        if keys is None:
            raise CredentialsError(
                f"no AWS credentials: set {BEARER}, or {ACCESS} and {SECRET}, or {PROFILES[-1]} for keys in a file; "
                f"roles of containers and instances aren't offered ({_EXPORT.format('')})"
            )
    if target.region is None and (keys is not None or host == HOST):
        raise CredentialsError(
            f"a region is needed: set {REGIONS[0]}, or give it to the profile, or under "
            f"[providers.{target.provider}] in a --config file"
        )
    if keys is None:
        return bearer(token)
    service = MANTLE if host.startswith(f"{MANTLE}.") else SERVICE
    if keys.token is None or _stripped(variables, ACCESS):
        return AwsAuthorizer(keys, target.region or "", service=service)
    return AwsAuthorizer(keys, target.region or "", renewed=RenewedInFiles(variables), service=service)


def located(variables: Mapping[str, str], target: Target) -> Target:
    """Returns the target with its region, by default the profile's, and with that region's host. Raises
    CredentialsError for a region that can't be part of a host's name."""
    region = target.region or _region_of(variables)
    # It becomes a part of the host's name: nothing in it may lead to another host.
    if region is not None and not re.fullmatch(r"[A-Za-z0-9-]+", region):
        raise CredentialsError(f"region {region!r} must be letters, digits and dashes, as us-east-1")
    base_url = target.base_url
    if region is not None and urlsplit(base_url).netloc == HOST:
        suffix = _SUFFIXES.get(region.partition("-")[0], "amazonaws.com")
        base_url = base_url.replace(HOST, f"bedrock-runtime.{region}.{suffix}", 1)
    identity = base_url if target.identity == target.base_url else target.identity
    return structs.replace(target, base_url=base_url, identity=identity, region=region)


def keys_of(variables: Mapping[str, str]) -> Keys | None:
    """Returns the environment's keys, else the profile's; None if there are none. Raises CredentialsError for half a
    key, for a named profile that does not exist, and for roles, which are not offered."""
    access, secret = _stripped(variables, ACCESS), _stripped(variables, SECRET)
    if access and secret:
        return _require_plain(Keys(access, secret, _stripped(variables, TOKEN) or None), "the environment")
    if access or secret:
        missing, present = (SECRET, ACCESS) if access else (ACCESS, SECRET)
        raise CredentialsError(f"{present} is set and {missing} isn't: set both, or neither")
    if variables.get(IDENTITY_FILE):
        raise CredentialsError(
            f"{IDENTITY_FILE} asks for a role, and only keys are taken here: {_EXPORT.format('')}, or unset it"
        )
    return _keys_in_profile(variables)


def place_of(variables: Mapping[str, str]) -> str | None:
    """Returns the words for the profile whose keys are used; None if no keys or the environment's are used."""
    try:
        keys = keys_of(variables)
    except CredentialsError:
        return None
    return None if keys is None or _stripped(variables, ACCESS) else f"the AWS profile {_profile(variables)[0]!r}"


def _keys_in_profile(variables: Mapping[str, str]) -> Keys | None:
    name, profile = _profile(variables)
    if profile is None:
        if any(variables.get(variable) for variable in PROFILES):
            files = " nor in ".join(str(path) for path in _files(variables))
            raise CredentialsError(f"the AWS profile {name!r} is neither in {files}: correct {' or '.join(PROFILES)}")
        return None
    access, secret = profile.get("aws_access_key_id", ""), profile.get("aws_secret_access_key", "")
    unoffered = next((one for one in _BEFORE_KEYS if profile.get(one)), None)
    if unoffered is None and not (access or secret):
        unoffered = next((one for one in _AFTER_KEYS if profile.get(one)), None)
    if unoffered is not None:
        raise CredentialsError(
            f"the AWS profile {name!r} has {unoffered}, and only keys are taken here: "
            f"{_EXPORT.format(f' --profile {shlex.quote(name)}')}"
        )
    if not access and not secret:
        return None
    if not access or not secret:
        missing = "aws_secret_access_key" if access else "aws_access_key_id"
        raise CredentialsError(f"the AWS profile {name!r} has no {missing}: it needs both halves of its key")
    return _require_plain(Keys(access, secret, profile.get("aws_session_token") or None), f"the AWS profile {name!r}")


def _require_plain(keys: Keys, where: str) -> Keys:
    for text in (keys.access, keys.token or ""):
        if not (text.isascii() and text.isprintable()) or " " in text:
            raise CredentialsError(f"the AWS key in {where} has characters that no header can carry")
    return keys


def _region_of(variables: Mapping[str, str]) -> str | None:
    try:
        _, profile = _profile(variables)
    except CredentialsError:
        return None  # reported where the credentials are needed
    return (profile or {}).get("region") or None


def _profile(variables: Mapping[str, str]) -> tuple[str, dict[str, str] | None]:
    """Returns the name of the chosen profile and its fields from both files, where the credentials file wins; None
    instead of the fields if neither file has the profile."""
    name = next((chosen for variable in PROFILES if (chosen := _stripped(variables, variable))), "default")
    credentials, config = _files(variables)
    settings = _sections(config, is_config=True).get(name)
    keys = _sections(credentials, is_config=False).get(name)
    return name, None if settings is None and keys is None else {**(settings or {}), **(keys or {})}


def _files(variables: Mapping[str, str]) -> tuple[Path, Path]:
    folder = Path.home() / ".aws"
    named = (variables.get(CREDENTIALS_FILE), variables.get(CONFIG_FILE))
    return (
        expanded(CREDENTIALS_FILE, named[0]) if named[0] else folder / "credentials",
        expanded(CONFIG_FILE, named[1]) if named[1] else folder / "config",
    )


def _sections(path: Path, *, is_config: bool) -> dict[str, dict[str, str]]:
    """Returns each profile's fields, by name; none without a file. Raises CredentialsError if it can't be read."""
    from configparser import Error, RawConfigParser  # here, since only a file of profiles needs it

    # No section stands for all others, whatever its name.
    parser = RawConfigParser(default_section="", strict=False)
    try:
        parser.read_string(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CredentialsError(f"{path} can't be read ({error.strerror})") from None
    except (Error, ValueError):
        # Their messages would contain lines of the file.
        raise CredentialsError(f"{path} can't be read: it is no file of AWS profiles") from None
    profiles = ((_name(section, is_config=is_config), parser.items(section)) for section in parser.sections())
    return {name: {key: value.strip() for key, value in items} for name, items in profiles if name}


def _name(section: str, *, is_config: bool) -> str:
    """Returns the name of the profile in a section's title: in the config file without `profile` before it and without
    quotes. Empty if the section is no profile."""
    if not is_config or section == "default":
        return section
    try:
        words = shlex.split(section)
    except ValueError:
        return ""
    return words[1] if len(words) == 2 and words[0] == "profile" else ""


def _stripped(variables: Mapping[str, str], name: str) -> str:
    return variables.get(name, "").strip()
