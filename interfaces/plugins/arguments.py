"""What a harness was told about how to send: its arguments for a model, read as the command line's options are.

Owns the names of these arguments, and which models a harness can ask. Knows no harness.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...engine.lane import Lane
from ...providers.retrieval import is_page
from ...providers.search.access import is_search
from ...wiring import Settings, accesses_to
from .. import values
from ..options import SENDING, Sending
from ..preparation import refuse_what_has_no_price
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


def check_model(model: str, settings: Settings) -> Lane:
    """The whole lane that a model will have; a model that can't be asked is refused in one line."""
    try:
        values.read(values.ModelName(), model)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if is_page(model) or is_search(model):
        raise UsageError(f"{model} is no language model: expected provider/model, such as openai/gpt-4o-mini")
    accesses_to(model, settings)
    refuse_what_has_no_price((model,), settings)
    return settings.whole_lane_of(model)
