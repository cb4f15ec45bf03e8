"""Resolves how a model is reached: its address, its protocol there, its API keys.

Takes variables and rows as values; reads no environment and opens nothing. No message and no repr holds an API key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct, structs

from ..engine.exit_codes import WRONG_USAGE
from ..engine.near_names import nearest
from ..engine.page_urls import is_address
from .credentials.authorizer import NO_CREDENTIALS, Authorizer, CredentialsError
from .kinds import Credentials, Kind, kind_of
from .llm.protocol import Target, WireProtocol
from .table import OPENAI_NAMES, OPENAI_TIERS, PROVIDERS, Provider
from .transport.endpoint import ModelEndpoint

if TYPE_CHECKING:
    from .transport.transport import Transport


# The paths that wire protocols append to an address.
_TAILS = ("/chat/completions", "/completions", "/responses", "/messages", "/embeddings")
# The hosts that are known to take the name of a tier. Others with OpenAI's protocol may refuse it.
_SELLERS = (".openai.com", ".azure.com")
# What OpenAI's host ends with, and those for one region.
_OPENAI = ".api.openai.com"
# What other programs and people call these providers.
_OTHER_NAMES = {
    "google": "gemini",
    "google_genai": "gemini",
    "vertex_ai": "vertex",
    "claude": "anthropic",
    "gpt": "openai",
    "chatgpt": "openai",
    "aws": "bedrock",
    "amazon": "bedrock",
    "x-ai": "xai",
    "grok": "xai",
    "together_ai": "together",
    "fireworks_ai": "fireworks",
}


class ConfigurationError(ValueError):
    """Raised for settings that can't be used. The message is one line: what is wrong, what is allowed, what to do."""

    exit_code = WRONG_USAGE


class UnknownProvider(ConfigurationError):
    """Raised for a provider's name that is not known."""


def nobody(name: str) -> Provider | None:
    return None


class ReachSettings(Struct, frozen=True, kw_only=True):
    """The settings by which models are reached. `variables` are the environment's, some of them secret; `key_variables`
    names, by model, variables that hold its API keys in place of its provider's; `extras` has, by model, fields of the
    body of its requests; `others` finds a provider whose name is neither built in nor in `providers`, or returns None.
    `tier`: the tier of service that is asked of all; `is_capped`: what the calls cost has a limit."""

    variables: Mapping[str, str]
    providers: Mapping[str, Provider] = {}
    key_variables: Mapping[str, tuple[str, ...]] = {}
    needs_keys: bool = True
    base_url: str | None = None
    extras: Mapping[str, Mapping[str, Any]] = {}
    others: Callable[[str], Provider | None] = nobody
    tier: str | None = None
    is_capped: bool = False

    def __repr__(self) -> str:
        return f"<ReachSettings [{len(self.variables)} variables, {len(self.providers)} providers of one's own]>"


class Access(Struct, frozen=True):
    """One way to reach a model: where it is and one set of credentials. `variable` names the variable that holds the
    API key; it is empty without a key."""

    target: Target
    kind: str | Kind
    credentials: Credentials
    variable: str = ""

    def __repr__(self) -> str:
        target = self.target
        return f"<Access to {target.model} at {target.base_url} with {'a' if self.credentials.key else 'no'} key>"

    @property
    def account(self) -> str:
        """The API key and the values of the secret variables in one text, by which accounts are told apart. Secret: it
        names a ledger only in hashed form."""
        secrets = self.credentials
        return "\0".join([secrets.key or "", *(secrets.variables[name] for name in sorted(secrets.variables))])

    @property
    def proof(self) -> str:
        """The words for the credentials in a message about their refusal, such as `the key in OPENAI_API_KEY`."""
        if self.credentials.key is not None:
            return f"the key in {self.variable}" if self.variable else "the key"
        ending = [name for name in kind_of(self.kind).ending if name in self.credentials.variables]
        return f"the token in {ending[0]}, which may have expired" if ending else "the key"

    @property
    def protocol(self) -> WireProtocol:
        """The wire protocol that is spoken there."""
        return kind_of(self.kind).protocol(self.target.model)

    def authorizer(self) -> Authorizer:
        """Returns a new authorizer with these credentials. Raises ConfigurationError if something is missing."""
        try:
            return kind_of(self.kind).authorizer(self.credentials, self.target)
        except CredentialsError as error:
            raise ConfigurationError(f"model {self.target.full_name!r}: {error}") from error


def accesses(model: str, means: ReachSettings) -> tuple[Access, ...]:
    """Returns the ways to reach one model, one for each different API key. Raises ConfigurationError, which says what
    is missing."""
    name, _, model_name = model.partition("/")
    row = row_of(model, means)
    kind, variables = kind_of(row.kind), means.variables
    version, region, project = (_fact(row, fact, variables) for fact in ("version", "region", "project"))
    address = means.base_url or (variables.get(row.url_variable, "").strip() if row.url_variable else None)
    base_url = (address or _filled(row, name, {"region": region, "project": project})).rstrip("/")
    if not is_address(base_url):
        # Not shown: it may hold a password.
        place = "--base-url" if means.base_url else row.url_variable if address else f"[providers.{name}]"
        raise ConfigurationError(
            f"model {model!r}: {place} must be an address such as http://127.0.0.1:8000/v1, without a user, password "
            f"or query in it"
        )
    if tail := next((tail for tail in _TAILS if base_url.endswith(tail)), ""):
        raise ConfigurationError(
            f"model {model!r}: the address {base_url} ends with {tail}, which is added to it: give "
            f"{base_url.removesuffix(tail)}"
        )
    stripped = {variable: variables.get(variable, "").strip() for variable in kind.variables}
    wanted = {variable: value for variable, value in stripped.items() if value}
    is_required = means.base_url is None and (not address or not row.base_url) and not wanted
    keys = _keys_of(model, row, means, is_required=is_required and row.key_variable is not None)
    host = urlsplit(base_url).hostname or ""
    sells_tiers = row.tiers == OPENAI_TIERS and host.endswith(_SELLERS)
    target = Target(
        base_url,
        row.identity or base_url,
        model_name,
        name,
        {} if row.names is OPENAI_NAMES and not f".{host}".endswith(_OPENAI) else row.names,
        row.refuses,
        version,
        project,
        region,
        extra=means.extras.get(model, {}),
        store=row.store,
        # A project at OpenAI may have a dearer tier as its default, which nothing says before the first bill.
        tiers=_tiers_of(model, row, means.tier or ("standard" if sells_tiers and means.is_capped else None)),
    )
    try:
        target = kind.located(wanted, target)
    except CredentialsError as error:
        raise ConfigurationError(f"model {model!r}: {error}") from error
    ways = tuple(Access(target, row.kind, Credentials(key, wanted), variable) for key, variable in keys.items())
    if means.needs_keys:
        for access in ways:
            access.authorizer()
    return ways


def has_default_tier(model: str, means: ReachSettings) -> bool:
    """Returns whether the default of an account decides in which tier a model answers, which may be a dearer one."""
    is_keyless = structs.replace(means, needs_keys=False)
    return row_of(model, means).tiers == OPENAI_TIERS and not accesses(model, is_keyless)[0].target.tiers


def is_regional(model: str, means: ReachSettings) -> bool:
    """Returns whether a model is asked at an address for one region, which some models cost more at."""
    address = accesses(model, structs.replace(means, needs_keys=False))[0].target.base_url
    return (urlsplit(address).hostname or "").endswith(_OPENAI)


def row_of(model: str, means: ReachSettings) -> Provider:
    """Returns the provider that a model string such as `openai/gpt-6.2-sol` names; raises UnknownProvider."""
    name, _, model_name = model.partition("/")
    row = means.providers.get(name) or PROVIDERS.get(name)
    if row is None and model_name:
        row = means.others(name)
    if row is None or not model_name:
        providers = sorted({*PROVIDERS, *means.providers})
        hint = _meant(name, model_name, providers) or f" (on a server of your own: vllm/{model} or ollama/{model})"
        raise UnknownProvider(
            f"model {model!r}: no provider {name!r}{hint}; known are {', '.join(providers)}, and any that "
            f"[providers.NAME] in a --config file or an installed package names"
        )
    return row


def _meant(name: str, model_name: str, providers: list[str]) -> str:
    """Returns the provider that a person most likely meant by an unknown one, in brackets; empty: none is near."""
    meant = _OTHER_NAMES.get(name.lower(), name.lower())
    if meant in providers and model_name:
        return f" (nearest: {meant}/{model_name})"
    return nearest(meant, providers, cutoff=0.8)


def protocol_of(model: str, means: ReachSettings) -> WireProtocol:
    """Returns a model's wire protocol, even if the model can't be reached."""
    return kind_of(row_of(model, means).kind).protocol(model.partition("/")[2])


def endpoint_to(
    access: Access, transport: Transport, timeout_s: float, authorizers: dict[object, Authorizer] | None = None
) -> ModelEndpoint:
    """Returns the endpoint of a model or a search engine. `authorizers` holds those of the same engine and gets a new
    one where needed: models with the same credentials share one authorizer and its token."""
    target, kept = access.target, {} if authorizers is None else authorizers
    same = (access.kind, access.account, target.base_url, target.version, target.region, target.project)
    if same not in kept:
        kept[same] = access.authorizer()
    return ModelEndpoint(access.protocol, target, kept[same], transport, timeout_s)


def keyless_endpoint_to(access: Access) -> ModelEndpoint:
    """Returns an endpoint for encoding and decoding only: a call's cache key does not depend on credentials."""
    return ModelEndpoint(access.protocol, access.target, NO_CREDENTIALS)


def _tiers_of(model: str, row: Provider, tier: str | None) -> tuple[Mapping[str, str], ...]:
    """Returns the fields that ask for a tier, those of the next attempt too if it names two. Raises ConfigurationError
    if they are not known."""
    words = [] if tier is None else tier.split("-then-")
    if missing := [word for word in words if word not in row.tiers]:
        tiers = ", ".join(row.tiers) or "none"
        raise ConfigurationError(
            f"model {model!r}: its provider can't be asked for the tier {missing[0]}; known are {tiers}: leave --tier "
            f"out"
        )
    return tuple(row.tiers[word] for word in words)


def _fact(row: Provider, fact: str, variables: Mapping[str, str]) -> str | None:
    values = (variables.get(variable, "").strip() for variable in row.fact_variables.get(fact, ()))
    default: str | None = getattr(row, fact)
    return next(filter(None, values), default)


def _filled(row: Provider, name: str, facts: Mapping[str, str | None]) -> str:
    """Returns the address with region and project filled in; raises ConfigurationError if one is missing."""
    if not row.base_url:
        raise ConfigurationError(f"provider {name} has no address: set {row.url_variable}, or give it with --base-url")
    for fact, value in facts.items():
        if value is None and f"{{{fact}}}" in row.base_url:
            variables = " or ".join(row.fact_variables.get(fact, ()))
            raise ConfigurationError(
                f"provider {name} needs a {fact}: set {variables}, or give it under [providers.{name}] "
                f"in a --config file"
            )
        # It becomes a part of the host's name: nothing in it may lead to another host.
        if value is not None and f"{{{fact}}}" in row.base_url and not re.fullmatch(r"[A-Za-z0-9_-]+", value):
            raise ConfigurationError(f"{fact} {value!r} of provider {name} must be letters, digits and dashes")
    return row.base_url.format(**facts)


def _keys_of(model: str, row: Provider, means: ReachSettings, *, is_required: bool) -> dict[str | None, str]:
    """Returns each API key of a model with the name of the variable that holds it; `{None: ""}` if no key is needed."""
    if not means.needs_keys:
        return {None: ""}
    variables = means.key_variables.get(model)
    if variables is not None:
        keys: dict[str | None, str] = {}
        for name in variables:
            keys.setdefault(_key_in((name,), model, means)[0], name)
        return keys
    names = tuple(name for name in (row.key_variable, *row.key_variables_too) if name)
    if not names or not (is_required or any(means.variables.get(name, "").strip() for name in names)):
        return {None: ""}
    key, name = _key_in(names, model, means, kind_of(row.kind).instead)
    return {key: name}


def _key_in(
    names: tuple[str, ...], model: str, means: ReachSettings, instead: tuple[tuple[str, ...], ...] = ()
) -> tuple[str, str]:
    """Returns the first API key in these variables, and its variable's name. Raises ConfigurationError if there is
    none; `instead` lists, for the message, sets of variables that would replace a key."""
    for name in names:
        key = means.variables.get(name, "").strip()
        if key and not (key.isascii() and key.isprintable()):
            raise ConfigurationError(f"the key in {name} has characters that no header can carry")
        if key:
            return key, name
    wanted = " or ".join([*names, *(" and ".join(together) for together in instead)])
    raise ConfigurationError(f"model {model!r} needs a key: set {wanted}, or give its server with --base-url")
