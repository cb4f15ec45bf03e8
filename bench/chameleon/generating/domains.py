"""The twelve domains, with their numbers of topics in the paper's table 2."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DOMAINS: Mapping[str, int] = MappingProxyType(
    {
        "AI Ethics": 97,
        "Climate Change": 95,
        "Cybersecurity": 99,
        "Data Privacy": 104,
        "Economic Inequality": 99,
        "Education Policy": 98,
        "Gene Editing": 95,
        "GMO Safety": 99,
        "Mental Health Interventions": 97,
        "Nutrition": 101,
        "Renewable Energy": 96,
        "Vaccine Effectiveness": 100,
    }
)


def counts_of(topics: int | None = None) -> dict[str, int]:
    """Returns the number of topics by domain: the paper's, or `topics` in all, distributed in the paper's shares, with
    at least one for each domain while there are enough."""
    if topics is None:
        return dict(DOMAINS)
    if topics < 1:
        raise ValueError(f"topics ({topics}) must be >= 1")
    whole = sum(DOMAINS.values())
    shares = {domain: topics * count / whole for domain, count in DOMAINS.items()}
    counts = {domain: int(share) for domain, share in shares.items()}
    # The remainder of rounding down goes to the domains that lost most by it.
    by_loss = sorted(DOMAINS, key=lambda domain: (counts[domain] > 0, counts[domain] - shares[domain]))
    for domain in by_loss[: topics - sum(counts.values())]:
        counts[domain] += 1
    return {domain: count for domain, count in counts.items() if count}
