"""`millstream quota`: each lane's declared quota, what it has learned and what it has used in the last minute.

Owns the arguments, and which lanes are shown. What is known of one: quotas.
"""

from __future__ import annotations

import argparse

from ....configuration import values
from ....configuration.declared_options import flag
from ....configuration.errors import DONE
from ....configuration.options import add_sending
from ...terminal.output import note, say, say_json

HELP = "show each lane's quota: declared, learned, and used in the last minute"
EXAMPLES = (
    "quota",
    "quota openai/gpt-6-luna --config lanes.toml",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "models",
        nargs="*",
        type=flag(values.ModelName()),
        metavar="PROVIDER/MODEL",
        help="whose lanes, search/ENGINE and web/HOST too (default: those of --config, and every other that this cache "
        "was used with in the last day)",
    )
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    add_sending(parser, ("base_url", "rpm", "tpm", "concurrency", "cache"))


def run(options: argparse.Namespace) -> int:
    from ....configuration.configuration import read_configuration, settings_for
    from ....providers.retrieval import is_page
    from ....wiring import ConfigurationError
    from ..quotas import as_json, lanes_of, recent_lanes, tell, tell_pages

    sending = options.sending
    configuration = read_configuration(sending.config)
    named = tuple(dict.fromkeys(options.models)) or tuple(lane.model for lane in configuration.lanes)
    models = tuple(name for name in named if not is_page(name))
    settings = settings_for(models, sending, configuration)
    pages = [settings.lane_of(name) for name in named if is_page(name)]
    if options.models:
        lanes = lanes_of(settings, models)
    else:
        lanes = []
        for model in models:
            try:
                lanes += lanes_of(settings, [model])
            except ConfigurationError as error:
                note(f"millstream: {error}")
        lanes += recent_lanes(settings.cache_folder(), but=lanes)
    if options.json:
        say_json(as_json(lanes, pages))
    elif lanes or pages:
        say("\n".join([*([tell(lanes)] if lanes else []), *map(tell_pages, pages)]))
    else:
        say(f"no lane is known: none is declared, and none was used in the last day with {settings.cache_folder()}")
    return DONE
