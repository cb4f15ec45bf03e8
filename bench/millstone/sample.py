"""A few prompts that represent a whole grid: the same ones on every machine, spread over issues, templates,
configurations and trials.

Owns which items are chosen and in which order. Every item has the same probability, and each beginning of the order is
spread as evenly as the whole, so that a sample can be cut short or made larger later.
"""

from __future__ import annotations

from collections.abc import Iterator

from .draws import DrawStream
from .grid import Grid

SAMPLE_VERSION = 1


def sample_ids(grid: Grid, size: int) -> list[str]:
    """Returns the ids of `size` items, or of all if the grid has fewer; a smaller sample is the beginning of a larger
    one.

    Issues take turns. Within an issue the next item has the configuration and then the template that the sample has
    least of, and a trial that it does not have; ties are drawn by lot.
    """
    if size < 1:
        raise ValueError(f"size ({size}) must be >= 1")
    wanted = min(size, len(grid))
    places = [place for place, _ in zip(_places(grid), range(wanted), strict=False)]
    chosen = set(places)
    id_at = {place: item_id for place, item_id in enumerate(grid.ids()) if place in chosen}
    return [id_at[place] for place in places]


def _places(grid: Grid) -> Iterator[int]:
    """Yields places, from 0, in the grid's order (issue, template, configuration, trial) until all are taken."""
    stream = DrawStream(f"millstone-sample-{SAMPLE_VERSION}/{grid.dataset.draw_digest}")
    issues, templates, configs = len(grid.dataset.issues), grid.templates, len(grid.configs)
    of_config, of_template = [0] * configs, [0] * templates
    of_pair = [[0] * templates for _ in range(configs)]
    left: dict[tuple[int, int, int], list[int]] = {}
    for _ in range(len(grid) // max(1, issues)):
        for issue in _shuffled(issues, stream):
            open_configs = [
                config
                for config in range(configs)
                if any(left.get((issue, config, template), (0,)) for template in range(templates))
            ]
            config = _least(open_configs, [(of_config[config], 0) for config in open_configs], stream)
            open_templates = [template for template in range(templates) if left.get((issue, config, template), (0,))]
            counts = [(of_template[template], of_pair[config][template]) for template in open_templates]
            template = _least(open_templates, counts, stream)
            trials = left.setdefault((issue, config, template), list(range(grid.trials)))
            trial = trials.pop(stream.below(len(trials)))
            of_config[config] += 1
            of_template[template] += 1
            of_pair[config][template] += 1
            yield ((issue * templates + template) * configs + config) * grid.trials + trial


def _least(among: list[int], counts: list[tuple[int, int]], stream: DrawStream) -> int:
    """Returns one of those with the least counts, drawn by lot."""
    least = min(counts)
    equal = [one for one, count in zip(among, counts, strict=True) if count == least]
    return equal[stream.below(len(equal))]


def _shuffled(count: int, stream: DrawStream) -> list[int]:
    order = list(range(count))
    for last in range(count - 1, 0, -1):
        other = stream.below(last + 1)
        order[last], order[other] = order[other], order[last]
    return order
