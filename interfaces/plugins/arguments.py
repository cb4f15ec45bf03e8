"""A harness's arguments for a model, read as the command line's options are.

Owns their names, and which models a harness can call. Knows no harness.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...configuration import values
from ...configuration.configuration import check_prices
from ...configuration.declared_options import declared
from ...configuration.errors import UsageError, nearest
from ...configuration.options import CallOptions, SendingOptions
from ...providers.retrieval import is_page
from ...providers.search.access import is_search
from ...wiring import Settings, accesses_to

# Inspect has an argument `config` of its own.
FILE = "config_file"
KINDS: Mapping[str, values.ValueKind[object]] = {
    **{option.name: option.kind for option in declared(CallOptions) if option.name != "config"},
    FILE: values.Text("a file with lanes, providers and prices"),
}


def sending_of(arguments: Mapping[str, object]) -> SendingOptions:
    """Returns the arguments that were set. Raises UsageError for an unknown name or a wrong value."""
    fields = {}
    for name, value in arguments.items():
        kind = KINDS.get(name)
        if kind is None:
            raise UsageError(f"millstream takes no argument {name}{nearest(name, KINDS)}; it takes {', '.join(KINDS)}")
        if value is None:
            continue
        try:
            fields["config" if name == FILE else name] = values.read(kind, value)
        except ValueError as error:
            raise UsageError(f"argument {name}: {error}") from error
    return SendingOptions(**fields)  # type: ignore[arg-type]


def check_model(model: str, settings: Settings) -> None:
    """Raises UsageError or ConfigurationError if the model can't be called."""
    try:
        values.read(values.ModelName(), model)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if is_page(model) or is_search(model):
        raise UsageError(f"{model} is no language model: expected provider/model, such as openai/gpt-6-luna")
    accesses_to(model, settings)
    check_prices((model,), settings)
