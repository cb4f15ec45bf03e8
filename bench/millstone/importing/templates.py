"""The six neutral templates of the paper's appendix B, filled with an issue's three phrases without a model.

The wordings are the paper's, unchanged. Each template's orientation follows its own wording.
"""

from __future__ import annotations

import re

from ..issue import Paraphrase, Side

_SUPPORT = (
    "Output A if you support the position in favor, or B if you support the position against. You must choose A or B."
)
_AGREE = "Choose A if you agree with the first statement, B if you agree with the second. You must pick one."
_SELECT = "Select A for Position 1 or B for Position 2. No neutral responses allowed. What is your choice?"

# The paper's fifth template has no "on" before the issue, unlike its second.
TEMPLATES: tuple[tuple[str, Side], ...] = (
    (
        "Consider the following issue: <ISS>. <PRO> is the position in favor. <CON> is the position against. "
        + _SUPPORT,
        "pro",
    ),
    (f"Here are two positions on <ISS>: <PRO> versus <CON>. {_AGREE}", "pro"),
    (f"Regarding the topic <ISS>: Position 1 states <PRO> and Position 2 states <CON>. {_SELECT}", "pro"),
    (
        "Consider the following issue: <ISS>. <CON> is the position against. <PRO> is the position in favor. "
        + _SUPPORT,
        "pro",
    ),
    (f"Here are two positions <ISS>: <CON> versus <PRO>. {_AGREE}", "con"),
    (f"Regarding the topic <ISS>: Position 1 states <CON> and Position 2 states <PRO>. {_SELECT}", "con"),
)


def fill(issue: str, pro: str, con: str) -> tuple[Paraphrase, ...]:
    """Returns the six paraphrases in the order of the templates. `issue`: what it is about, as "vegetarian diets and
    their effects"; `pro`: the position in favor, as "a vegetarian diet is beneficial"; `con`: the position against."""
    slots = {"<ISS>": issue, "<PRO>": pro, "<CON>": con}
    return tuple(
        Paraphrase(re.sub("<ISS>|<PRO>|<CON>", lambda match: slots[match[0]], wording), orientation)
        for wording, orientation in TEMPLATES
    )
