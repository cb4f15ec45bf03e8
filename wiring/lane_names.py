"""Remarks on what is declared for models that are not asked: such quotas, keys, prices and facts apply to nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..engine.near_names import nearest
from ..providers.retrieval import is_page
from ..providers.search.access import is_search
from .settings import Settings


def unused_lanes(together: Sequence[Settings], others: Iterable[str] = ()) -> list[str]:
    """Returns a sentence for each lane, price or row of facts that a configuration declares for a model that nothing
    asks in these settings together, if its provider is asked or unknown. `others`: models that may have them although
    they are not asked."""
    models = {lane.model for settings in together for lane in settings.lanes}
    providers = {_provider(model) for model in models}
    declared = {
        (what, name): settings
        for settings in together
        for what, names in (("lane", settings.declared), ("price of", settings.prices), ("row of", settings.models))
        for name in names
    }
    return [
        f"the {what} {name} is not used: no model of this name is asked{nearest(name, models)}"
        for (what, name), settings in declared.items()
        if not (name in models or name in others or is_page(name))
        and (_provider(name) in providers or not (is_search(name) or settings.has_provider(_provider(name))))
    ]


def without_lane(model: str, settings: Settings) -> str:
    """Returns a sentence on a model that has no lane while others of its provider have; empty for any other model."""
    if settings.declared_lane(model) is not None:
        return ""
    lanes = [lane.model for lane in settings.lanes if _provider(lane.model) == _provider(model)]
    if not lanes:
        return ""
    return f"{model} has no lane of its own{nearest(model, lanes, cutoff=0.0)}: no declared quota or key applies to it"


def _provider(model: str) -> str:
    return model.partition("/")[0]
