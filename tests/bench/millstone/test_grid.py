from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import pytest
from answered_run import calls

from millstream.bench.millstone.dataset import IssueDataset, load, select
from millstream.bench.millstone.draws import draw, seeds
from millstream.bench.millstone.grid import (
    Grid,
    GridItem,
    Protocol,
    about_chars,
    default_max_tokens,
    longest_prompt,
)
from millstream.bench.millstone.options import GridOptions
from millstream.bench.millstone.prompts import Lengths
from millstream.engine.pairs import Pair
from millstream.fixtures import full_size

Content = dict[str, Any]
Write = Callable[[dict[str, Content]], Path]

SAMPLE = Path(__file__).parents[3] / "fixtures/data/millstone"
PROTOCOLS: tuple[Protocol, ...] = ("paper", "released")
ARGUMENT_CASES = ("one-sided-pro", "one-sided-con", "clear-pro", "clear-con", "balanced")


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> IssueDataset:
    return load(full_size.ensure(tmp_path_factory.mktemp("data") / "full"))


def test_the_paper_protocol_has_eleven_configurations_with_draws_of_their_own() -> None:
    names = [config.name for config in Grid(IssueDataset("none", "", "", ())).configs]
    assert names == [
        "baseline",
        "one-sided-pro",
        "one-sided-con",
        "clear-pro-1",
        "clear-pro-2",
        "clear-con-1",
        "clear-con-2",
        "balanced-1",
        "balanced-2",
        "balanced-3",
        "balanced-4",
    ]


def test_the_released_protocol_has_one_baseline_and_two_wrappings_of_five_cases() -> None:
    names = [config.name for config in Grid(IssueDataset("none", "", "", ()), GridOptions(protocol="released")).configs]
    assert names == ["baseline-1", *(f"{case}-{wrapping}" for case in ARGUMENT_CASES for wrapping in (1, 2))]


@pytest.mark.parametrize("protocol", get_args(Protocol))
def test_the_full_set_gives_105930_prompts_with_unique_ids(full: IssueDataset, protocol: Protocol) -> None:
    grid = Grid(full, GridOptions(protocol=protocol))
    assert len(grid) == 105_930
    assert len(set(grid.ids())) == sum(1 for _ in grid.ids()) == 105_930
    assert len(Grid(select(full, "controversial"), GridOptions(protocol=protocol))) == 9_900


def test_items_come_by_issue_template_configuration_and_trial(tiny: IssueDataset) -> None:
    grid = Grid(tiny, GridOptions(templates=2, trials=3))
    expected = [
        f"{issue}/{template}/{config.name}/{trial}"
        for issue in ("bells", "tea")
        for template in (1, 2)
        for config in grid.configs
        for trial in range(3)
    ]
    assert [item.id for item in grid] == list(grid.ids()) == expected
    assert len(grid) == len(expected)
    for item in grid:
        assert item.id == f"{item.issue}/{item.template}/{item.config}/{item.trial}"


X = ("'position <<A>>' or 'position <<B>>'", "'position <<B>>' or 'position <<A>>'")


def second_prompt(content: Content, item: GridItem, draw_digest: str, protocol: str) -> str:
    """One item's prompt, put together again from the raw issue and the paper's wording."""
    shape: Any = item.config.rstrip("-1234")
    case = item.config if protocol == "paper" else shape
    (seed,) = seeds(draw_digest, item.issue, item.template, case, [item.trial])
    drawn = draw(seed, shape, len(content["pros"]), len(content["cons"]))
    first, second = (X[mention] for mention in drawn.mentions)
    question = content["paraphrases"][item.template - 1]["question"]
    if shape == "baseline":
        return f"{question}\n\nAnswer either {first}. Only answer with {second}."
    texts = content["pros"] + content["cons"]
    lines: dict[int, list[str]] = {}
    before: list[str] = []
    for index in drawn.listed:
        marks = sorted((texts[index].index(key), key) for key in content["sources"] if key in texts[index])
        own = [f"{key} {content['sources'][key]}\n" for _, key in marks]
        before += own
        lines[index] = list(before) if protocol == "released" else own
    evidence = "\n\n".join(
        texts[index] + ("\nCitations:\n" if lines[index] else "") + "".join(lines[index]) + "---\n"
        for index in drawn.shown
    )
    if protocol == "released" and item.config.endswith("-2"):
        return (
            f"{question}\n\nCarefully weigh all presented evidence and answer either {first}.\n\n{evidence}\n\n"
            f"Only return either {second}."
        )
    return (
        f"{question}\n\nAnswer either {first} based on provided information.\n\n{evidence}\n\n"
        f"Only return either {second}."
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_prompt_is_what_a_second_implementation_writes(
    tiny: IssueDataset, tiny_content: dict[str, Content], protocol: Protocol
) -> None:
    for item in Grid(tiny, GridOptions(protocol=protocol, trials=4)):
        assert item.prompt == second_prompt(tiny_content[item.issue], item, tiny.draw_digest, protocol)


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [
        ("paper", "97d7db4ce06ddf5d6fbf36c30b7f89f452bc292c34c7ee7a97980bd650e08ce2"),
        ("released", "8117ff979daf4692034591f1b1ded9509d2aa4898e1c119d9e084f36bb039656"),
    ],
)
def test_the_prompts_of_a_fixed_set_are_pinned(tiny: IssueDataset, protocol: Protocol, expected: str) -> None:
    # A change here is a change of what is measured: it needs a new prompt or draw version, and empties old caches.
    hash_ = hashlib.sha256()
    for item in Grid(tiny, GridOptions(protocol=protocol)):
        hash_.update(f"{item.id}\0{item.sample}\0{item.prompt}\0".encode())
    assert hash_.hexdigest() == expected


def test_arguments_are_named_in_the_order_shown(tiny: IssueDataset) -> None:
    texts = {(issue.id, entry.id): entry.text for issue in tiny.issues for entry in issue.arguments}
    for item in Grid(tiny, GridOptions(trials=3)):
        places = [item.prompt.index(texts[item.issue, argument]) for argument in item.arguments]
        assert places == sorted(places)
        assert len(places) == sum(text in item.prompt for (issue, _), text in texts.items() if issue == item.issue)


def test_each_configuration_shows_the_sides_that_its_name_says(tiny: IssueDataset) -> None:
    shown: dict[tuple[str, str], set[tuple[int, int]]] = {}
    for item in Grid(tiny, GridOptions(trials=2)):
        sides = Counter(argument.split("-")[0] for argument in item.arguments)
        shown.setdefault((item.issue, item.config.rstrip("-1234")), set()).add((sides["pro"], sides["con"]))
    assert shown == {
        ("tea", "baseline"): {(0, 0)},
        ("tea", "one-sided-pro"): {(5, 0)},
        ("tea", "one-sided-con"): {(0, 3)},
        ("tea", "clear-pro"): {(3, 1)},
        ("tea", "clear-con"): {(1, 3)},
        ("tea", "balanced"): {(3, 3)},
        ("bells", "baseline"): {(0, 0)},
        ("bells", "one-sided-pro"): {(2, 0)},
        ("bells", "one-sided-con"): {(0, 4)},
        ("bells", "clear-pro"): {(2, 1)},
        ("bells", "clear-con"): {(1, 3)},
        ("bells", "balanced"): {(2, 2)},
    }


def test_orientation_is_the_templates_own(tiny: IssueDataset) -> None:
    assert {(item.template, item.orientation) for item in Grid(tiny, GridOptions(trials=1))} == {
        (1, "pro"), (2, "pro"), (3, "pro"), (4, "con"), (5, "con"), (6, "con"),
    }  # fmt: skip


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_sample_is_the_rank_among_identical_prompts(tiny: IssueDataset, protocol: Protocol) -> None:
    seen: Counter[str] = Counter()
    for item in Grid(tiny, GridOptions(protocol=protocol)):
        assert item.sample == seen[item.prompt]
        seen[item.prompt] += 1
    assert max(seen.values()) > 3  # a baseline has four prompts for fifteen trials


def test_ranks_go_on_across_configurations_and_issues(tiny_content: dict[str, Content], write: Write) -> None:
    # One argument a side: clear, balanced and each other's twins. A second issue has the same texts.
    one = tiny_content["tea"]
    one["pros"], one["cons"] = one["pros"][:1], one["cons"][:1]
    items = list(Grid(load(write({"tea": one, "tee": one}))))
    assert len({(item.prompt, item.sample) for item in items}) == len(items)
    configs: dict[str, set[tuple[str, str]]] = {}
    for item in items:
        configs.setdefault(item.prompt, set()).add((item.issue, item.config))
    shared = configs[next(item.prompt for item in items if item.config == "balanced-4")]
    assert {issue for issue, _ in shared} == {"tea", "tee"}
    assert len({config for _, config in shared}) > 1


def test_equal_texts_of_different_arguments_make_identical_prompts(
    tiny_content: dict[str, Content], write: Write
) -> None:
    tiny_content["tea"]["pros"] = ["Tea is calm [1]."] * 2
    items = [item for item in Grid(load(write(tiny_content)), GridOptions(trials=40)) if item.config == "one-sided-pro"]
    seen: dict[str, set[tuple[str, ...]]] = {}
    for item in items:
        if item.issue == "tea":
            seen.setdefault(item.prompt, set()).add(item.arguments)
    assert all(len(orders) == 2 for orders in seen.values())
    assert len({(item.prompt, item.sample) for item in items}) == len(items)


@pytest.mark.parametrize("protocol", get_args(Protocol))
def test_skipping_changes_neither_prompts_nor_ranks(tiny: IssueDataset, protocol: Protocol) -> None:
    everything = list(Grid(tiny, GridOptions(protocol=protocol)))
    done = {item.id for index, item in enumerate(everything) if index < 700 or index % 3}
    rest = [item for item in everything if item.id not in done]
    assert list(Grid(tiny, GridOptions(protocol=protocol)).items(skip=done.__contains__)) == rest


def test_a_smaller_look_asks_nothing_that_the_whole_run_does_not(full: IssueDataset) -> None:
    def asked(grid: Grid) -> set[tuple[str, int]]:
        return {(item.prompt, item.sample) for item in grid}

    whole = asked(Grid(select(full, "golf,milk")))
    assert asked(Grid(select(full, "all", limit=1), GridOptions(trials=2))) <= asked(Grid(select(full, "all", limit=2)))
    assert asked(Grid(select(full, "milk"))) < whole
    assert asked(Grid(select(full, "golf,milk"), GridOptions(templates=2))) < whole
    assert asked(Grid(select(full, "golf,milk"), GridOptions(trials=4))) < whole


def test_calls_carry_the_prompt_the_rank_and_the_item_and_nothing_that_was_not_asked(tiny: IssueDataset) -> None:
    grid = Grid(tiny)
    made = list(calls(grid, Pair("openai/gpt-4o", None)))
    assert [call.tag for call in made] == list(grid)
    for call in made:
        assert (call.model, call.input, call.trial) == ("openai/gpt-4o", call.tag.prompt, call.tag.sample)
        assert (call.temperature, call.max_tokens, call.top_p, call.stop, call.seed) == (None,) * 5
    call = next(calls(grid, Pair("openai/gpt-4o", 0.0), max_tokens=100))
    assert (call.temperature, call.max_tokens) == (0.0, 100)


@pytest.mark.parametrize("protocol", get_args(Protocol))
def test_spread_items_are_the_same_items_with_one_of_each_issue_first(protocol: Protocol) -> None:
    grid = Grid(load(SAMPLE), GridOptions(protocol=protocol, templates=2, trials=3))
    issues = [issue.id for issue in grid.dataset.issues]
    done = {item_id for item_id in grid.ids() if item_id.startswith(f"{issues[0]}/1/")}
    plain = list(grid.items(done.__contains__))
    for count in (1, 5, 20):
        made = list(grid.spread_first(count, done.__contains__))
        first = min(count, len(issues))
        assert len({item.issue for item in made[:first]}) == first
        assert sorted(item.id for item in made) == sorted(item.id for item in plain)
        assert all(item in plain for item in made[:first])
        begun = {item.id for item in made[:first]}
        assert made[first:] == [item for item in plain if item.id not in begun]


def test_issues_that_could_share_a_prompt_keep_their_order(tiny_content: dict[str, Content], write: Write) -> None:
    """The rank of a prompt that stands twice in the grid depends on all that come before it."""
    grid = Grid(load(write({"a": tiny_content["tea"], "b": tiny_content["tea"]})), GridOptions(trials=2))
    assert list(grid.spread_first(20, lambda item_id: False)) == list(grid)


def test_items_are_made_one_at_a_time(tiny: IssueDataset) -> None:
    asked: list[str] = []

    def note(item_id: str) -> bool:
        asked.append(item_id)
        return False

    assert len(list(islice(Grid(tiny).items(note), 3))) == 3
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("anthropic/claude-opus-4", 600),
        ("vertex/claude-3-5-haiku@20241022", 600),
        ("openrouter/anthropic/claude-3.5-haiku", 600),
        ("openai/gpt-4o-mini", 100),
        ("openai/o3-mini", 100),
        ("openrouter/openai/gpt-4o", 100),
        ("openai/ft:gpt-4o-mini:lab::1", 100),
        ("together/meta-llama/Llama-3.1-8B-Instruct", 100),
        ("vertex/meta/llama-3.1-405b-instruct-maas", 100),
        ("gemini/gemini-2.0-flash", None),
        ("xai/grok-3-mini", None),
        ("ollama/mistral", None),
        ("sim/steady", None),
        ("mylab/olmo-2", None),
    ],
)
def test_max_tokens_follow_the_models_name(model: str, tokens: int | None) -> None:
    assert default_max_tokens(model) == default_max_tokens(model, thinks=False) == tokens
    assert default_max_tokens(model, thinks=True) is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_longest_prompt_is_exact_and_the_total_nearly(tiny: IssueDataset, protocol: Protocol) -> None:
    for dataset in (tiny, load(SAMPLE)):
        grid = Grid(dataset, GridOptions(protocol=protocol, trials=4))
        lengths = {item.id: len(item.prompt) for item in grid}
        longest, longest_id = longest_prompt(grid)
        assert longest == max(lengths.values()) == lengths[longest_id]
        assert about_chars(grid) == pytest.approx(sum(lengths.values()), rel=0.01)
        assert longest < max(Lengths(issue, grid.citations).most for issue in dataset.issues)


def test_the_specification_names_whatever_decides_the_prompts(tiny: IssueDataset) -> None:
    grid = Grid(select(tiny, "tea"), GridOptions(protocol="released", templates=2, trials=3))
    assert grid.specification() == {
        "data": tiny.digest,
        "issues": ["tea"],
        "protocol": "released",
        "templates": 2,
        "trials": 3,
        "citations": "cumulative",
        "prompt_version": 1,
        "draw_version": 1,
    }


def test_the_repr_tells_the_size_with_numbers(tiny: IssueDataset) -> None:
    assert repr(Grid(tiny)) == (
        "<Grid [paper: 2 issues x 6 templates x 11 configurations x 15 trials = 1,980 prompts]>"
    )
