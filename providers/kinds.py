"""The kinds of providers: which wire protocol each speaks, and how one proves there who one is.

A new kind is one row here and one module in llm/. Reads no environment: it is given what stood in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from . import aws, google
from .authorizer import Authorizer, bearer, key_in
from .llm import (
    anthropic,
    azure,
    bedrock,
    gemini,
    openai_chat,
    openai_completions,
    openai_responses,
    vertex,
    vertex_anthropic,
)
from .llm.protocol import Target, WireProtocol

_ENTRA_TOKEN = "AZURE_OPENAI_AD_TOKEN"
_ANTHROPIC_TOKEN = "ANTHROPIC_AUTH_TOKEN"


class Credentials(Struct, frozen=True):
    """What was found: the key, and the variables that the kind asks for by name. Values are secret."""

    key: str | None = None
    variables: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"<Credentials [{'a' if self.key else 'no'} key; {', '.join(self.variables) or 'no variables'}]>"


def as_it_is(variables: Mapping[str, str], target: Target) -> Target:
    return target


def nowhere(variables: Mapping[str, str]) -> str | None:
    return None


class Kind(Struct, frozen=True):
    """`protocol` is chosen by the model's name. `authorizer` raises CredentialsError where something is missing.
    `variables` are those of the environment that it wants to see besides the key; where one is set, none is needed.
    `located` is the target with what these variables and its own facts tell of where it is. `instead`: sets of
    variables, each of which does in a key's place; those in `ending` hold tokens that nobody renews. `place_of`: where
    else credentials stand, in words; `lost_of`: where they should stand and don't."""

    protocol: Callable[[str], WireProtocol]
    authorizer: Callable[[Credentials, Target], Authorizer]
    variables: tuple[str, ...] = ()
    located: Callable[[Mapping[str, str], Target], Target] = as_it_is
    instead: tuple[tuple[str, ...], ...] = ()
    ending: tuple[str, ...] = ()
    place_of: Callable[[Mapping[str, str]], str | None] = nowhere
    lost_of: Callable[[Mapping[str, str]], str | None] = nowhere


def kind_of(kind: str | Kind) -> Kind:
    """One of ours by its name, or a row's own as it is."""
    return KINDS[kind] if isinstance(kind, str) else kind


def always(protocol: WireProtocol) -> Callable[[str], WireProtocol]:
    return lambda model: protocol


def on_vertex(model: str) -> WireProtocol:
    """Claude has a protocol of its own there, whether its publisher's name stands before it or not."""
    return vertex_anthropic.PROTOCOL if vertex_anthropic.is_claude(model) else vertex.protocol_of(model)


def by_bearer(credentials: Credentials, target: Target) -> Authorizer:
    return bearer(credentials.key)


def by_goog_api_key(credentials: Credentials, target: Target) -> Authorizer:
    return key_in("x-goog-api-key", credentials.key)


def by_google(credentials: Credentials, target: Target) -> Authorizer:
    """Google credentials; a key is an access token that the user has fetched."""
    if credentials.key is not None:
        return bearer(credentials.key)
    return google.google_authorizer(credentials.variables, target)


def by_anthropic(credentials: Credentials, target: Target) -> Authorizer:
    """A key, in the header that the version of the API has for it, else a token that a gateway gave."""
    if credentials.key is None:
        return bearer(credentials.variables.get(_ANTHROPIC_TOKEN))
    is_newer = anthropic.is_newer(anthropic.version_of(target))
    return bearer(credentials.key) if is_newer else key_in("x-api-key", credentials.key)


def by_azure(credentials: Credentials, target: Target) -> Authorizer:
    """A key of the resource, else a token of Entra that the user has fetched."""
    if credentials.key is not None:
        return key_in("api-key", credentials.key)
    return bearer(credentials.variables.get(_ENTRA_TOKEN))


def by_aws(credentials: Credentials, target: Target) -> Authorizer:
    """Keys that sign; a key alone is a bearer's token."""
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
        on_vertex,
        by_google,
        google.VARIABLES,
        google.located,
        instead=((google.FILE,),),
        place_of=google.place_of,
        lost_of=google.lost_of,
    ),
    "bedrock": Kind(
        always(bedrock.PROTOCOL),
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
