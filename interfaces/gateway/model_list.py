"""The models that a caller may name, as far as they are known beforehand: any other of a known provider works too.

Declared models come first, then models with a price. Sends nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from ...configuration.gateway_settings import GatewaySettings
from ...providers.llm.serve_dialect import ServedModel
from ...providers.retrieval import is_page
from ...providers.search.access import is_search
from ...wiring import ConfigurationError, Settings, access_to
from .callers import Caller


def models_for(
    caller: Caller, gateway: GatewaySettings, settings: Settings, unreached: Container[str]
) -> list[ServedModel]:
    """Returns the models once each, in order: the gateway's own names, declared lanes, then models with a price whose
    provider can be reached and is not `unreached`."""
    listed = {name: ServedModel(name, model.partition("/")[0]) for name, model in gateway.models.items()}
    listed = {name: one for name, one in listed.items() if caller.may_ask(gateway.models[name])}
    for model in _models(settings):
        if model.partition("/")[0] in unreached:
            continue
        if model not in listed and caller.may_ask(model):
            listed[model] = ServedModel(model, model.partition("/")[0])
    return list(listed.values())


def _models(settings: Settings) -> Iterable[str]:
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
