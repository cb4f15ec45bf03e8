"""What a harness was told about how to send: its arguments for a model, read as the command line's options are.

Owns the names of these arguments, and the settings that follow from them. Knows no harness.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from ...engine.lane import Lane
from ...providers.retrieval import is_page
from ...providers.search.access import is_search
from ...wiring import ConfigurationError, Settings, accesses_to
from .. import values
from ..configuration import read_configuration, settings_for
from ..options import SENDING, Sending
from ..refusal import UsageError, nearest

# Inspect has an argument `config` of its own.
FILE = "config_file"
KINDS: Mapping[str, values.Kind[object]] = {
    **{name.replace("-", "_"): kind for name, kind in SENDING.items()},
    FILE: values.Text("a file with lanes, providers and prices"),
}


def sending_of(given: Mapping[str, object]) -> Sending:
    """The arguments that were set, each by the name that it has as a flag."""
    found = {}
    for name, value in given.items():
        kind = KINDS.get(name)
        if kind is None:
            raise UsageError(f"millstream takes no argument {name}{nearest(name, KINDS)}; it takes {', '.join(KINDS)}")
        if value is None:
            continue
        try:
            found["config" if name == FILE else name] = values.read(kind, value)
        except ValueError as error:
            raise UsageError(f"argument {name}: {error}") from error
    return Sending(**found)  # type: ignore[arg-type]


def settings_of(sending: Sending) -> Settings:
    """What an engine for any number of models is built from. A lane of the file whose key is missing is left out: it is
    only missed once its model is asked for."""
    configuration = read_configuration(sending.config)
    models = tuple(lane.model for lane in configuration.lanes if not _is_retrieval(lane.model))
    settings = settings_for(models, sending, configuration)
    flags = settings_for(("any/model",), sending, configuration).lanes[0]
    lanes = tuple(lane for lane in settings.lanes if _is_reachable(lane.model, settings))
    return structs.replace(settings, lanes=lanes, default_lane=flags)


def check_model(model: str, settings: Settings) -> Lane:
    """The whole lane that a model will have; a model that can't be asked is refused in one line."""
    try:
        values.read(values.ModelName(), model)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if _is_retrieval(model):
        raise UsageError(f"{model} is no language model: expected provider/model, such as openai/gpt-4o-mini")
    accesses_to(model, settings)
    if settings.max_cost is not None and settings.price_table().get(model) is None:
        raise UsageError(
            f"{model} has no price, so max_cost can't be kept: give it one under [prices] in a config file"
        )
    return settings.whole_lane_of(model)


def _is_retrieval(model: str) -> bool:
    return is_page(model) or is_search(model)


def _is_reachable(model: str, settings: Settings) -> bool:
    if is_page(model):
        return True
    try:
        accesses_to(model, settings)
    except ConfigurationError:
        return False
    return True
