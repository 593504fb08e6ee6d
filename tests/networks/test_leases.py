"""Ranks whose memory is given back and had again end up with the same bits, in the same time.

Pages that are given back are written over here, so that it shows if anybody reads them.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_regions import assert_same

import ringleaf.networks.endpoints.pages as pages
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.oracle import execute
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.rows import Op, Transfer
from ringleaf.collectives.schedule import Schedule
from ringleaf.core import compiled
from ringleaf.core.arena import Arena
from ringleaf.core.compiled import handler
from ringleaf.core.packets import pin_all
from ringleaf.core.tensors import FLOAT32, INT32, Array, ElementType
from ringleaf.experiments.checking.data import Noise, whole
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.endpoints import segments
from ringleaf.networks.endpoints.leases import Leases, is_of_ranks
from ringleaf.networks.endpoints.segments import is_one_sum
from ringleaf.networks.faults import LinkDamage
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork, damage
from ringleaf.networks.virtual.state import PACKET_BITS
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.registry import build

PAGE = 1024
SEGMENT = 1 << 16  # elements
GARBAGE = 0xAB

FAST = settings(
    max_examples=4 if compiled.UNCOMPILED else 40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def given_back(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the addresses of pages that were given back, which have garbage in them."""
    found: list[int] = []

    class Spoiled(dict[int, None]):
        """Pages that nobody needs."""

        def __setitem__(self, page: int, value: None) -> None:
            ctypes.memset(page * PAGE, GARBAGE, PAGE)
            found.append(page * PAGE)
            super().__setitem__(page, value)

    def move(source: int, target: int, size: int) -> bool:
        ctypes.memmove(target, source, size)
        ctypes.memset(source, 0, size)
        return True

    monkeypatch.setattr(pages, "PAGE_BYTES", PAGE)
    monkeypatch.setattr(pages, "move", move)
    monkeypatch.setattr(pages, "discard", lambda address, size: None)
    monkeypatch.setattr(pages, "Spare", Spoiled)
    return found


def test_memory_moves_with_what_is_in_it_and_may_be_written_to_where_it_was() -> None:
    size = pages.PAGE_BYTES
    memory = np.zeros(4 * size, np.uint8)
    first = -(-memory.ctypes.data // size) * size - memory.ctypes.data
    one, other = memory[first : first + size], memory[first + size : first + 2 * size]
    one[:], other[:] = 1, 2

    if pages.move(one.ctypes.data, other.ctypes.data, size):
        assert (other == 1).all()
        one[:] = 3
        assert (other == 1).all()
    else:
        assert sys.platform != "linux"
    assert not pages.move(one.ctypes.data, other.ctypes.data + 1, size)


def make(topology: str, **options: Any) -> VirtualNetwork:
    return VirtualNetwork(build(topology), NetworkOptions(**options), seed=5)


def schedule_of(network: VirtualNetwork, algorithm: str, elements: int) -> Schedule:
    ranks, hierarchy = len(hosts(network.graph)), network.graph.graph["hierarchy"]
    return ALGORITHMS[algorithm].build(ranks, size_bytes=4 * elements, hierarchy=hierarchy)


def spoiled(network: VirtualNetwork, elements: int, schedule: Schedule) -> list[Array]:
    arrays = network.arrays(elements, FLOAT32, schedule)
    for array in arrays:
        array.view(np.uint8)[:] = GARBAGE
    return arrays


@FAST
@given(
    topology=st.sampled_from(("leafspine,leaves=1,spines=1,hosts=5", "fattree,k=4", "bcube")),
    algorithm=st.sampled_from(
        (
            *("ring", "biring", "tree", "doubletree", "halvingdoubling", "bucket"),
            *("chain", "binomial", "swing", "allpairs", "alltoall", "allgather", "reducescatter"),
            *("broadcast", "reduce", "hierring", "blueconnect", "broadcast-scatter"),
        )
    ),
    elements=st.integers(1, 40_000),
    threads=st.sampled_from((1, 2)),
    loss=st.sampled_from((0.0, 0.02)),
)
def test_results_and_times_are_those_of_whole_tensors(
    given_back: list[int], topology: str, algorithm: str, elements: int, threads: int, loss: float
) -> None:
    options = {"loss": loss, "threads": threads, "watch_messages": 10_000}
    inputs = Noise(7, len(hosts(build(topology))), elements, FLOAT32)

    network = make(topology, **options)
    schedule = schedule_of(network, algorithm, elements)
    whole = network.arrays(elements, FLOAT32, schedule)
    for rank, array in enumerate(whole):
        inputs.fill(rank, 0, array)
    expected = network.run(schedule, whole)

    leased = make(topology, **options)
    arrays = spoiled(leased, elements, schedule)
    found = leased.run(schedule, arrays, fill=inputs.fill)

    assert_same(found, expected)
    assert leased.leases is not None
    leased.leases.restore()
    for mine, right in zip(arrays, whole, strict=True):
        assert (mine.view(np.int32) == right.view(np.int32)).all()


def test_a_ring_gives_back_what_it_has_passed_on_and_what_all_have(given_back: list[int]) -> None:
    ranks, elements = 8, 8 * 4096  # chunks of 16 pages
    network = make(f"leafspine,leaves=1,spines=1,hosts={ranks}")
    schedule = schedule_of(network, "ring", elements)
    arrays = spoiled(network, elements, schedule)
    network.run(schedule, arrays, fill=Noise(7, ranks, elements, FLOAT32).fill)

    # Each rank passes on its sums of all chunks but one, and 7 of 8 results of a chunk are the
    # first's, without memory of their own. A chunk does not begin with a page: at least 15 whole
    # pages are given back.
    chunks = ranks * (ranks - 1)
    assert chunks * 15 <= len(given_back) <= chunks * 17
    assert network.leases is not None
    assert len(np.unique(network.leases.addresses)) == schedule.chunks


SMALL = {
    "two equal sums, of which the one that is compared last is given back": (
        *((0, 0, 1, 0, Op.REDUCE), (0, 1, 0, 0, Op.REDUCE)),
        *((1, 0, 2, 0, Op.COPY), (1, 1, 3, 0, Op.COPY)),
    ),
    "what is passed on": ((0, 0, 1, 0, Op.COPY), (1, 1, 2, 0, Op.COPY), (2, 2, 3, 0, Op.COPY)),
    "a swap": ((0, 0, 1, 0, Op.COPY), (0, 1, 0, 0, Op.COPY)),
    "a copy of what is overwritten": ((0, 0, 2, 0, Op.COPY), (1, 1, 0, 0, Op.COPY)),
    "a copy that is added to": ((0, 0, 1, 0, Op.COPY), (1, 2, 1, 0, Op.REDUCE)),
    "chunks of two senders that go on together": (
        *((0, 0, 1, 0, Op.COPY), (0, 3, 1, 1, Op.COPY)),
        *((1, 1, 2, 0, Op.COPY), (1, 1, 2, 1, Op.COPY)),
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_results_are_those_of_the_rows(given_back: list[int], name: str) -> None:
    rows = [Transfer(*row) for row in SMALL[name]]
    schedule = Schedule(Collective.ALLREDUCE, "small", 4, 2, rows)
    network = make("leafspine,leaves=1,spines=1,hosts=4")
    inputs = Noise(7, 4, 8192, FLOAT32)
    arrays = spoiled(network, 8192, schedule)

    network.run(schedule, arrays, fill=inputs.fill)
    assert network.leases is not None
    for rank, right in enumerate(execute(schedule, whole(inputs))):
        assert where_it_is(network.leases, rank) == right.tobytes()


def where_it_is(leases: Leases, rank: int) -> bytes:
    """Return a rank's result, which `restore` would bring together."""
    sizes = 4 * np.diff(leases.edges)
    pieces = zip(leases.addresses[rank].tolist(), sizes.tolist(), strict=True)
    return b"".join(ctypes.string_at(address, size) for address, size in pieces)


@handler
def take_along(arena: Arena, _at: int, packed: int, _now_ps: int) -> int:
    """Have a packet's data in its head from now on, as a switch might that looks at all of it."""
    pin_all(arena, packed & (1 << PACKET_BITS) - 1)
    return 1


def test_results_land_if_any_packet_has_not_its_data_where_the_sender_has_it(
    given_back: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One packet in 20, so that it is the first of a message, one in the middle, or none."""
    monkeypatch.setattr(damage, "damage", take_along)
    ranks, elements = 4, 4 * 4096
    inputs = Noise(7, ranks, elements, FLOAT32)
    results = []
    for share in (0.0, 0.05):
        given_back.clear()
        network = make(f"leafspine,leaves=1,spines=1,hosts={ranks}")
        schedule = schedule_of(network, "ring", elements)
        arrays = spoiled(network, elements, schedule)
        changes = [LinkDamage(0, (f"h{rank}", "s0"), share) for rank in range(ranks)]
        outcome = network.run(schedule, arrays, fill=inputs.fill, disturbances=changes)
        assert network.leases is not None
        places = len(np.unique(network.leases.addresses))
        network.leases.restore()
        results.append((outcome.time_ps, np.stack(arrays), len(given_back) + 16 * places))
    (usual_ps, usual, fewer), (landed_ps, landed, more) = results
    assert landed_ps == usual_ps
    assert (landed == usual).all()
    assert more > fewer  # what has landed is given back, or others have their results there


def test_inputs_are_made_once_and_only_those_that_are_read(given_back: list[int]) -> None:
    ranks, elements = 4, 4 * 1024
    network = make(f"leafspine,leaves=1,spines=1,hosts={ranks}")
    schedule = schedule_of(network, "broadcast", elements)
    made: list[tuple[int, int, int]] = []

    def fill(rank: int, start: int, out: Array) -> None:
        made.append((rank, start, start + out.size))
        out[:] = rank

    arrays = spoiled(network, elements, schedule)
    network.run(schedule, arrays, fill=fill)
    assert {rank for rank, _, _ in made} == {0}
    assert sum(stop - start for _, start, stop in made) == elements


def test_an_error_while_inputs_are_made_ends_the_run(given_back: list[int]) -> None:
    network = make("leafspine,leaves=1,spines=1,hosts=4")
    schedule = schedule_of(network, "ring", 4096)

    def fill(rank: int, start: int, out: Array) -> None:
        raise OSError("nothing to read")

    with pytest.raises(OSError, match="nothing to read"):
        network.run(schedule, spoiled(network, 4096, schedule), fill=fill)


@pytest.mark.parametrize(
    ("algorithm", "leased"),
    [
        ("ring", True),
        ("ps", False),  # servers hold sums of their own
        ("dsar-split", False),  # codecs look at whole parts of tensors
        ("switchml", True),
        ("atp", True),
        ("panama", True),
        ("netreduce", False),  # it looks at all values before it sends any
        ("sharp", False),
        ("vote", False),
        ("omnireduce", False),
    ],
)
def test_tensors_of_ranks_alone_and_of_some_sums_can_be_leased(
    algorithm: str, leased: bool
) -> None:
    schedule = ALGORITHMS[algorithm].build(4, size_bytes=1 << 20, servers=2)
    if algorithm in SYSTEMS:
        assert (is_one_sum(schedule) and SYSTEMS[algorithm].leases) is leased
    else:
        assert is_of_ranks(schedule) is leased


@pytest.fixture
def tiny_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ranks have so few buffers that losses use them up."""
    monkeypatch.setattr(segments, "BUFFERS", 1)


@settings(FAST, max_examples=10)
@given(
    system=st.sampled_from(("switchml", "atp", "panama", "a2tp", "esa")),
    segments_of=st.floats(0.01, 3.2),
    dtype=st.sampled_from((FLOAT32, INT32)),
    threads=st.sampled_from((1, 2)),
    loss=st.sampled_from((0.0, 0.02)),
)
def test_sums_and_times_are_those_of_whole_tensors(
    tiny_segments: None,
    system: str,
    segments_of: float,
    dtype: ElementType,
    threads: int,
    loss: float,
) -> None:
    topology, elements = "leafspine,leaves=2,spines=1,hosts=2", int(segments_of * SEGMENT)
    options = {"loss": loss, "threads": threads, "system": SYSTEMS[system]}
    inputs = Noise(7, 4, elements, dtype)

    network = make(topology, **options)
    schedule = ALGORITHMS[system].build(4)
    whole = network.arrays(elements, dtype, schedule)
    for rank, array in enumerate(whole):
        inputs.fill(rank, 0, array)
    expected = network.run(schedule, whole)

    leased = make(topology, **options)
    arrays = leased.arrays(elements, dtype, schedule)
    for array in arrays:
        array.view(np.uint8)[:] = GARBAGE
    found = leased.run(schedule, arrays, fill=inputs.fill)

    assert_same(found, expected)
    assert leased.leases is not None
    if threads == 1:  # else two ranks may have the first result at the same time
        assert len(np.unique(leased.leases.addresses)) == leased.leases.pieces
    leased.leases.restore()
    for mine, right in zip(arrays, whole, strict=True):
        assert (mine.view(np.int32) == right.view(np.int32)).all()


def test_an_error_while_inputs_of_a_sum_are_made_ends_the_run() -> None:
    network = make("leafspine,leaves=1,spines=1,hosts=4", system=SYSTEMS["switchml"])
    schedule = ALGORITHMS["switchml"].build(4)

    def fill(rank: int, start: int, out: Array) -> None:
        raise OSError("nothing to read")

    with pytest.raises(OSError, match="nothing to read"):
        network.run(schedule, network.arrays(4096, FLOAT32, schedule), fill=fill)


def test_a_page_that_is_needed_again_keeps_its_memory(given_back: list[int]) -> None:
    memory = np.zeros(8 * PAGE, np.uint8)
    first = -(-memory.ctypes.data // PAGE) * PAGE
    one, other = memory[first - memory.ctypes.data :][:PAGE], first + 2 * PAGE
    found = pages.Pages([memory])

    found.take(first, first + PAGE)
    found.give_back(first, first + PAGE)
    found.take(first, first + PAGE)
    one[:] = 7
    found.take(other, other + PAGE)
    assert (one == 7).all()
