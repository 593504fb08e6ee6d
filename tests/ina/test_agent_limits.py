"""The numbers that agents of aggregation can be made with: each limit, and one beyond it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ringleaf.core.arena import Store
from ringleaf.errors import ConfigError
from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.ina import congestion
from ringleaf.ina.atp import ledger
from ringleaf.ina.atp import state as atp
from ringleaf.ina.atp.roster import WorkerPlace, flat_roster
from ringleaf.ina.congestion import Window
from ringleaf.ina.omnireduce import ledger as aggregator
from ringleaf.ina.omnireduce import state as omnireduce
from ringleaf.ina.switchml import state as switchml

HOST = omnireduce.OmniReduceAddress(1, 2)
PEER = atp.AtpAddress(1, 2)


def switchml_worker(**told: Any) -> int:
    usual = {"slots": 4, "lanes": 64, "workers": 2, "min_timeout_ps": 1, "job": 1, **told}
    return switchml.make_worker(Store(), host=3, ring=0, mac=1, address=2, **usual)


def omnireduce_worker(**told: Any) -> int:
    usual = {"slots": 4, "lanes": 64, "min_timeout_ps": 1, "job": 1, **told}
    return omnireduce.make_worker(
        Store(), host=3, ring=0, rank=0, own=HOST, aggregators=[HOST], **usual
    )


def omnireduce_aggregator(workers: int = 2, **told: Any) -> int:
    usual = {"slots": 1, "lanes": 32, "job": 1, **told}
    return aggregator.make_aggregator(
        Store(), host=3, ring=0, number=0, aggregators=1, own=HOST, workers=[HOST] * workers,
        **usual,
    )  # fmt: skip


def atp_worker(window: int = 4, **told: Any) -> int:
    usual = {"number": 0, "lanes": 64, "min_timeout_ps": 1, "job": 1, **told}
    return atp.make_worker(
        Store(), host=3, ring=0, own=PEER, servers=[PEER], places=[WorkerPlace(0, 0)],
        aggregators=range(window), window=Window("still"), base_ps=1, **usual,
    )  # fmt: skip


def atp_server(workers: int = 2, **told: Any) -> int:
    usual = {"number": 0, "lanes": 64, "job": 1, **told}
    return ledger.make_server(
        Store(), host=3, ring=0, own=PEER, workers=[PEER] * workers, positions=1, aggregators=1,
        roster=flat_roster({}, "s0", min(workers, 64)), rtt_ps=1, ecmp=False, **usual,
    )  # fmt: skip


ALL = switchml_worker, omnireduce_worker, omnireduce_aggregator, atp_worker, atp_server
LIMITS: list[tuple[Callable[..., int], str, tuple[int, ...], tuple[int, ...], str]] = [
    *((make, "job", (1, 255), (0, 256), "job must be 1 to 255") for make in ALL),
    (switchml_worker, "slots", (1, 2**15), (0, 2**15 + 1), "slots must be 1 to 32768"),
    (switchml_worker, "trees", (1, 2, 4), (0, 3, 5), "trees must be 1 to 255 and divide slots"),
    (switchml_worker, "min_timeout_ps", (1,), (0,), "min_timeout_ps must be above 0"),
    (omnireduce_worker, "slots", (1, 2**16), (0, 2**16 + 1), "slots must be 1 to 65536"),
    (omnireduce_worker, "lanes", (32, 256), (0, 33, 288), "lanes must be a multiple of 32 up to"),
    (omnireduce_aggregator, "lanes", (32, 256), (0, 33, 288), "lanes must be a multiple of 32"),
    (omnireduce_aggregator, "workers", (1, 2**16), (0, 2**16 + 1), "workers must be 1 to 65536"),
    (atp_worker, "lanes", (64, 256), (24, 65), r"lanes must be one of \[64, 256\]"),
    (atp_worker, "number", (0, 4095), (-1, 4096), "number must be 0 to 4095"),
    (atp_worker, "window", (1, 2, 8), (0, 3, 6), "the window must be a power of two"),
    (atp_worker, "min_timeout_ps", (1,), (0,), "min_timeout_ps must be above 0"),
    (atp_server, "workers", (1, 64), (0, 4097), "workers must be 1 to 4096"),
]


@pytest.mark.parametrize(
    ("make", "name", "right", "wrong", "message"),
    LIMITS,
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_limits_by_hand(
    make: Callable[..., int],
    name: str,
    right: tuple[int, ...],
    wrong: tuple[int, ...],
    message: str,
) -> None:
    for value in right:
        make(**{name: value})
    for value in wrong:
        with pytest.raises(ConfigError, match=f"on h3: {message}.*got {value}"):
            make(**{name: value})


def test_rounds_and_blocks_begin_with_0() -> None:
    for make, open_agent, first in (
        (switchml.make_worker, switchml.open_worker, "slots"),
        (omnireduce.make_worker, omnireduce.open_worker, "rows"),
        (aggregator.make_aggregator, aggregator.open_aggregator, "rows"),
    ):
        store = Store()
        told: dict[str, Any] = {"host": 3, "ring": 0, "job": 1, "slots": 1, "lanes": 64}
        if make is switchml.make_worker:
            told |= {"workers": 2, "mac": 1, "address": 2, "min_timeout_ps": 1}
        elif make is omnireduce.make_worker:
            told |= {"rank": 0, "own": HOST, "aggregators": [HOST], "min_timeout_ps": 1}
        else:
            told |= {"number": 0, "aggregators": 1, "own": HOST, "workers": [HOST]}
        at = make(store, **told)
        assert getattr(open_agent(store.arena, at), first)[0] == 0
    store = Store()
    at = atp.make_worker(
        store, host=3, ring=0, own=PEER, servers=[PEER], places=[WorkerPlace(0, 0)],
        aggregators=[0], window=Window("still"), base_ps=1, number=0, lanes=64, min_timeout_ps=1,
        job=1,
    )  # fmt: skip
    assert store.arena.words[at + AGENT_WORDS + atp.NEXT] == 0


@pytest.mark.parametrize(("lanes", "growth"), [(64, 4), (256, 1)])
def test_an_atp_window_grows_by_a_segment_of_tcp(lanes: int, growth: int) -> None:
    """Four packets of 64 + 256 bytes are less than 1,500 bytes; of 64 + 1,024 bytes one is."""
    store = Store()
    at = atp.make_worker(
        store, host=3, ring=0, own=PEER, servers=[PEER], places=[WorkerPlace(0, 0)],
        aggregators=range(4), window=Window("still"), base_ps=7, number=0, lanes=lanes,
        min_timeout_ps=1, job=1, first_sequence=9,
    )  # fmt: skip
    state = store.arena.words[at + AGENT_WORDS :]
    assert state[atp.CONTROL + congestion.GROWTH] == growth
    assert state[atp.CONTROL + congestion.MOST_WINDOW] == 4
    assert state[[atp.ALLOWED, atp.BASE_PS, atp.IS_SHARED]].tolist() == [2, 7, 0]
    assert state[[atp.END, atp.BASE, atp.NEXT, atp.ROUND_END]].tolist() == [9] * 4


def test_a_window_with_a_share_decides_on_blocks_from_the_first() -> None:
    """Of eight positions the window allows four, and its share is as it begins."""

    def begin(block: np.ndarray) -> None:
        block[congestion.SHARE] = 3

    store = Store()
    at = atp.make_worker(
        store, host=3, ring=0, own=PEER, servers=[PEER], places=[WorkerPlace(0, 0)],
        aggregators=range(8), window=Window("shared", begin, has_share=True), base_ps=7, number=0,
        lanes=64, min_timeout_ps=1, job=1, first_sequence=9,
    )  # fmt: skip
    state = store.arena.words[at + AGENT_WORDS :]
    assert state[[atp.IS_SHARED, atp.LIMIT, atp.SHARE_END]].tolist() == [1, 9, 9 + 4 + 3]
    assert state[[atp.BASE, atp.NEXT, atp.ROUND_END]].tolist() == [9, 9, 13]
