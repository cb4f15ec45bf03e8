"""Registers the model provider `millstream` with Inspect, for `--model millstream/openai/gpt-6.2-sol`.

Inspect loads it through its entry point whenever it looks for a provider, so it imports next to nothing.
"""

from __future__ import annotations

from inspect_ai.model import ModelAPI, modelapi


@modelapi(name="millstream")
def millstream() -> type[ModelAPI]:
    from .inspect_model import MillstreamAPI

    return MillstreamAPI
