"""The models that a caller may name, as far as they are known beforehand: any other of a known provider works too.

What somebody declared comes first, then what has a price. Sends nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from ...providers.retrieval import is_page
from ...providers.search.access import is_search
from ...wiring import ConfigurationError, Engine, access_to
from ..dialects.dialect import Listed
from .callers import Caller
from .settings import GatewaySettings


def models_for(caller: Caller, settings: GatewaySettings, engine: Engine, unreached: Container[str]) -> list[Listed]:
    """Each once, in order: names of the gateway's own, declared lanes, models with a price whose provider can be
    reached and is not `unreached`."""
    listed = {name: Listed(name, model.partition("/")[0]) for name, model in settings.models.items()}
    listed = {name: one for name, one in listed.items() if caller.may_ask(settings.models[name])}
    for model in _known(engine):
        if model.partition("/")[0] in unreached:
            continue
        if model not in listed and caller.may_ask(model):
            listed[model] = Listed(model, model.partition("/")[0])
    return list(listed.values())


def _known(engine: Engine) -> Iterable[str]:
    settings = engine.settings
    for lane in settings.lanes:
        if not is_page(lane.model) and not is_search(lane.model):
            yield lane.model
    reached: dict[str, bool] = {}
    for model in sorted(settings.price_table().models):
        provider = model.partition("/")[0]
        if is_search(model):
            continue
        if provider not in reached:
            try:
                access_to(model, settings)
                reached[provider] = True
            except ConfigurationError:
                reached[provider] = False
        if reached[provider]:
            yield model
