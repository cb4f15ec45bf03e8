"""The strategies of each setting: the variants of prompts. `prompts` has their texts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from ...metrics.sycon.judgement import Setting

Strategy = Literal[
    "base", "individual_thinker", "non_sycophantic", "spt", "spt_non_sycophantic", "critical", "presupposition"
]

STRATEGIES: Mapping[Setting, tuple[Strategy, ...]] = MappingProxyType(
    {
        "debate": ("base", "individual_thinker", "non_sycophantic", "spt", "spt_non_sycophantic"),
        "ethical": ("base",),
        "presuppositions": ("base", "critical", "presupposition"),
    }
)
