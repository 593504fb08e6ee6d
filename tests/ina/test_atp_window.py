"""ATP's congestion window: AIMD, and what any other is told and may do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.arena import Arena, Store
from ringleaf.core.compiled import address_of, handler
from ringleaf.errors import ConfigError
from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.ina.atp.state import CONTROL
from ringleaf.ina.congestion import (
    CONTROL_WORDS,
    GROWTH,
    MARKED,
    MOST_WINDOW,
    ON_ROUND,
    OWN,
    WINDOW,
    Window,
    begin_window,
)
from ringleaf.ina.registry import find_system
from ringleaf.ina.window_registry import WINDOWS, find_window
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.topologies.registry import build

REQUESTED, OVERDUE, ROUNDS, RESULTS = range(OWN, OWN + 4)


@handler
def count_losses(arena: Arena, at: int, timeout: int, _now_ps: int) -> int:
    arena.words[at + (OVERDUE if timeout else REQUESTED)] += 1
    arena.words[at + WINDOW] = -5
    return 0


@handler
def count_rounds(arena: Arena, at: int, results: int, _now_ps: int) -> int:
    arena.words[at + ROUNDS] += 1
    arena.words[at + RESULTS] += results
    arena.words[at + WINDOW] = 1 << 40
    return 0


@pytest.fixture
def greedy() -> Iterator[str]:
    """A window that wants all after a round trip and nothing after a loss, by name."""
    WINDOWS.added["greedy"] = Window("greedy", on_round=count_rounds, on_loss=count_losses)
    yield "greedy"
    del WINDOWS.added["greedy"]


@pytest.mark.parametrize(
    ("window", "marked", "then"),
    [(16, 3, 8), (17, 1, 8), (1, 1, 1), (16, 0, 21), (30, 0, 32), (32, 0, 32)],
)
def test_aimd_halves_the_window_or_adds_a_segment(window: int, marked: int, then: int) -> None:
    aimd = find_window("aimd")
    store = Store()
    at = store.allocate("words", CONTROL_WORDS)
    words = store.arena.words
    begin_window(words[at : at + CONTROL_WORDS], aimd, most=32, growth=5)
    assert words[at + WINDOW] == 16
    words[at + WINDOW], words[at + MARKED] = window, marked

    aimd.on_round(store.arena, at, 10, 0)

    assert words[at + WINDOW] == then
    assert (words[at + MOST_WINDOW], words[at + GROWTH]) == (32, 5)


def test_a_window_is_told_of_rounds_and_losses_and_kept_within_bounds(greedy: str) -> None:
    """With nothing lost but packets, the sum is right whatever a window says."""
    graph = build("leafspine,leaves=1,spines=1,hosts=3")
    options = NetworkOptions(system=find_system("atp"), lanes=64, loss=0.05, ina_cc=greedy)
    network = VirtualNetwork(graph, options, seed=2)
    tensors = [torch.full((64 * 400,), rank + 1, dtype=torch.int32) for rank in range(3)]
    network.run(ALGORITHMS["atp"].build(3), tensors)

    assert all((tensor == 6).all() for tensor in tensors)
    words = network.store.arena.words
    workers = network.endpoints.aggregators[0].agents[:3]
    blocks = [words[agent.block + AGENT_WORDS + CONTROL :] for agent in workers]
    for block in blocks:
        assert 1 <= block[WINDOW] <= block[MOST_WINDOW]
        assert block[ROUNDS] > 1
        assert 300 < block[RESULTS] <= 400  # those of the last round, which is not over, are not in
    assert sum(block[REQUESTED] for block in blocks) > 0
    assert sum(block[OVERDUE] for block in blocks) > 0
    network.close()


def test_unknown_windows_are_refused() -> None:
    graph = build("leafspine,leaves=1,spines=1,hosts=3")
    options = NetworkOptions(system=find_system("atp"), lanes=64, ina_cc="x")
    valid = "a2tp, a2tp-ns3, aimd, dctcp"
    with pytest.raises(ConfigError, match=f"ina_cc: unknown window, got 'x'; valid: {valid}"):
        VirtualNetwork(graph, options)


def test_the_published_window_is_taken_if_none_is_named() -> None:
    graph = build("leafspine,leaves=1,spines=1,hosts=3")
    network = VirtualNetwork(graph, NetworkOptions(system=find_system("atp"), lanes=64))
    agent, *_ = network.endpoints.aggregators[0].agents
    block = network.store.arena.words[agent.block + AGENT_WORDS + CONTROL :]

    assert block[ON_ROUND] == address_of(find_window("aimd").on_round)
    network.close()
