"""The kinds of providers: which wire protocol each uses, and how its requests are authenticated.

A new kind is one row here and one module in llm/. Reads no environment: its variables are passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from .credentials import aws, google
from .credentials.authorizer import Authorizer, bearer, key_in
from .llm import bedrock_claude, vertex
from .llm.anthropic import messages as anthropic
from .llm.google import generate as gemini
from .llm.openai import azure
from .llm.openai import chat as openai_chat
from .llm.openai import completions as openai_completions
from .llm.openai import responses as openai_responses
from .llm.protocol import Target, WireProtocol

_ENTRA_TOKEN = "AZURE_OPENAI_AD_TOKEN"
_ANTHROPIC_TOKEN = "ANTHROPIC_AUTH_TOKEN"


class Credentials(Struct, frozen=True):
    """The API key and the variables that were found. Secret."""

    key: str | None = None
    """The API key; None: there is none."""
    variables: Mapping[str, str] = {}
    """The variables that the kind asked for, by name."""

    def __repr__(self) -> str:
        return f"<Credentials [{'a' if self.key else 'no'} key; {', '.join(self.variables) or 'no variables'}]>"


def as_it_is(variables: Mapping[str, str], target: Target) -> Target:
    return target


def nowhere(variables: Mapping[str, str]) -> str | None:
    return None


class Kind(Struct, frozen=True):
    """One kind of provider: its wire protocol, and how its requests are authenticated."""

    protocol: Callable[[str], WireProtocol]
    """The wire protocol of a model, by the model's name."""
    authorizer: Callable[[Credentials, Target], Authorizer]
    """Returns the authorizer of requests to a target; raises CredentialsError where something is missing."""
    variables: tuple[str, ...] = ()
    """Variables of the environment that it reads besides the API key's."""
    located: Callable[[Mapping[str, str], Target], Target] = as_it_is
    """Returns the target completed from these variables: region, project, address."""
    instead: tuple[tuple[str, ...], ...] = ()
    """Sets of variables, each of which replaces an API key."""
    ending: tuple[str, ...] = ()
    """The variables that hold tokens which expire and which nothing here renews."""
    place_of: Callable[[Mapping[str, str]], str | None] = nowhere
    """Returns in words where else credentials were found; None: nowhere."""
    lost_of: Callable[[Mapping[str, str]], str | None] = nowhere
    """Returns in words where credentials should be and are not; None: none are missing."""


def kind_of(kind: str | Kind) -> Kind:
    """Returns the built-in kind of this name; a Kind is returned unchanged."""
    return KINDS[kind] if isinstance(kind, str) else kind


def always(protocol: WireProtocol) -> Callable[[str], WireProtocol]:
    return lambda model: protocol


def by_bearer(credentials: Credentials, target: Target) -> Authorizer:
    return bearer(credentials.key)


def by_goog_api_key(credentials: Credentials, target: Target) -> Authorizer:
    return key_in("x-goog-api-key", credentials.key)


def by_google(credentials: Credentials, target: Target) -> Authorizer:
    """Returns an authorizer with Google credentials; an API key is taken for an access token that the user fetched."""
    if credentials.key is not None:
        return bearer(credentials.key)
    return google.google_authorizer(credentials.variables, target)


def by_anthropic(credentials: Credentials, target: Target) -> Authorizer:
    """Returns headers with the API key, as the version of the API expects it, else with a gateway's bearer token."""
    if credentials.key is None:
        return bearer(credentials.variables.get(_ANTHROPIC_TOKEN))
    is_newer = anthropic.is_newer(anthropic.version_of(target))
    return bearer(credentials.key) if is_newer else key_in("x-api-key", credentials.key)


def by_azure(credentials: Credentials, target: Target) -> Authorizer:
    """Returns headers with the API key of the resource, else with a token of Entra that the user has fetched."""
    if credentials.key is not None:
        return key_in("api-key", credentials.key)
    return bearer(credentials.variables.get(_ENTRA_TOKEN))


def by_aws(credentials: Credentials, target: Target) -> Authorizer:
    """Returns an authorizer that signs with AWS keys; an API key is sent as a bearer token."""
    return aws.aws_authorizer(credentials.key, credentials.variables, target)


KINDS: dict[str, Kind] = {
    "openai": Kind(always(openai_chat.PROTOCOL), by_bearer),
    "openai-responses": Kind(always(openai_responses.PROTOCOL), by_bearer),
    "openai-completions": Kind(always(openai_completions.PROTOCOL), by_bearer),
    "anthropic": Kind(
        always(anthropic.PROTOCOL),
        by_anthropic,
        (_ANTHROPIC_TOKEN,),
        instead=((_ANTHROPIC_TOKEN,),),
        ending=(_ANTHROPIC_TOKEN,),
    ),
    "gemini": Kind(always(gemini.PROTOCOL), by_goog_api_key),
    "vertex": Kind(
        vertex.protocol_of,
        by_google,
        google.VARIABLES,
        google.located,
        instead=((google.FILE,),),
        place_of=google.place_of,
        lost_of=google.lost_of,
    ),
    "bedrock": Kind(
        bedrock_claude.protocol_of,
        by_aws,
        aws.VARIABLES,
        aws.located,
        instead=((aws.ACCESS, aws.SECRET),),
        ending=(aws.TOKEN,),
        place_of=aws.place_of,
    ),
    "azure": Kind(
        always(azure.PROTOCOL), by_azure, (_ENTRA_TOKEN,), instead=((_ENTRA_TOKEN,),), ending=(_ENTRA_TOKEN,)
    ),
}
