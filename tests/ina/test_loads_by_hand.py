"""All systems' loads in two racks, worked out by hand: bytes, begins, and times to follow.

Hosts 0 and 1 are below s0, 2 and 3 below s1, and s2 is above both. Each link takes 1 us, a byte
80 ps on a host's link (100 Gbit/s), and 160 ps between switches.
"""

from __future__ import annotations

import numpy as np
import pytest

from ringleaf.ina.loads import Aggregation, Demand
from ringleaf.ina.registry import SYSTEMS
from ringleaf.topologies.registry import build
from ringleaf.topologies.ways import TopologyRoutes

RACKS = "leafspine,leaves=2,spines={},hosts=2,rate=50G,host_rate=100G"
HOP_PS = 1_000_000
BLOCKS = 5
Rows = dict[tuple[str, str], tuple[int, int, int]]
"""By the ends of a link: bytes, their earliest begin, and the time after the last of them."""


def near_ps(size_bytes: int) -> int:
    """Return the time of a packet from host to switch or back."""
    return HOP_PS + 80 * size_bytes


def far_ps(size_bytes: int) -> int:
    """Return the time of a packet between switches."""
    return HOP_PS + 160 * size_bytes


def both_ps(size_bytes: int) -> int:
    """Return the time of a packet from a host to s2, or back."""
    return near_ps(size_bytes) + far_ps(size_bytes)


def rows_of(needs: Demand) -> Rows:
    return {
        (node, peers[0]): (load.size_bytes, load.begin_ps, load.after_ps)
        for (node, peers), load in needs.loads.items()
    }


def tree_rows(up: int, sums: int, down: int, *, begin_ps: int = 0, blocks: int = BLOCKS) -> Rows:
    """Return the rows of three workers with blocks of so many bytes up, between switches, down.

    Sums leave a leaf when the last worker's packet could be there, which takes as long as theirs.
    """
    back_ps, there_ps = both_ps(down), begin_ps + both_ps(up)
    own = blocks * up, begin_ps, HOP_PS + far_ps(up) + back_ps
    joined = blocks * sums, begin_ps + near_ps(up), HOP_PS + back_ps
    result = blocks * down, there_ps, HOP_PS + near_ps(down)
    last = blocks * down, there_ps + far_ps(down), HOP_PS
    return {
        ("h0", "s0"): own, ("h1", "s0"): own, ("h2", "s1"): own,
        ("s0", "s2"): joined, ("s1", "s2"): joined,
        ("s2", "s0"): result, ("s2", "s1"): result,
        ("s0", "h0"): last, ("s0", "h1"): last, ("s1", "h2"): last,
    }  # fmt: skip


def needs_of(
    system: str,
    elements: int,
    *,
    members: tuple[int, ...] = (0, 1, 2),
    servers: tuple[int, ...] = (),
    is_float: bool = False,
    spines: int = 1,
    **more: object,
) -> Demand:
    ways = TopologyRoutes(build(RACKS.format(spines)))
    what = Aggregation(members, servers, elements, is_float, 64, **more)  # type: ignore[arg-type]
    return SYSTEMS[system].demand(ways, what)


# A packet has 24 bytes of line, 14 of Ethernet, 28 of IP and UDP, and the system's own header.
SWITCHML = 42 + 10 + 256 + 24
NETREDUCE = 42 + 16 + 256 + 24
EXPONENT = 60 + 24  # as short as Ethernet has frames
SIGNS, COUNTS = 42 + 10 + 96 + 24, 42 + 10 + 6 * 96 + 24
PLANES, TERNARY_SUMS = 42 + 14 + 2 * 96 + 24, 42 + 14 + 6 * 96 + 24
ATP = 42 + 22 + 256 + 24


@pytest.mark.parametrize(
    ("system", "is_float", "elements", "sizes"),
    [
        ("switchml", False, 64, (SWITCHML, SWITCHML, SWITCHML)),
        ("sharp", True, 64, (SWITCHML, SWITCHML, SWITCHML)),
        ("panama", False, 64, (SWITCHML, SWITCHML, SWITCHML)),
        ("netreduce", True, 64, (NETREDUCE, NETREDUCE, NETREDUCE)),
        ("vote", True, 768, (SIGNS, COUNTS, SIGNS)),
        ("tern", True, 768, (PLANES, TERNARY_SUMS, TERNARY_SUMS)),
    ],
)
@pytest.mark.parametrize("more", [1, 0])
def test_each_block_goes_up_and_down_the_tree(
    system: str, is_float: bool, elements: int, sizes: tuple[int, int, int], more: int
) -> None:
    needs = needs_of(system, (BLOCKS - 1) * elements + more, is_float=is_float)
    up, _, down = sizes
    assert needs.chain_ps == both_ps(up) + both_ps(down)
    assert rows_of(needs) == tree_rows(*sizes, blocks=BLOCKS - 1 + more)


def test_floats_wait_for_the_exponents_of_all_workers() -> None:
    needs = needs_of("switchml", BLOCKS * 64, is_float=True)
    begin_ps = 2 * both_ps(EXPONENT)
    assert needs.chain_ps == begin_ps + 2 * both_ps(SWITCHML)
    assert rows_of(needs) == tree_rows(SWITCHML, SWITCHML, SWITCHML, begin_ps=begin_ps)


@pytest.mark.parametrize("limit", [{"trees": 2}, {"slots": 2}, {"trees": 3, "slots": 2}])
def test_blocks_are_dealt_to_trees_in_turn(limit: dict[str, int]) -> None:
    """The trees' roots are s2 and s3, and the first gets blocks 0, 2 and 4."""
    needs = needs_of("panama", BLOCKS * 64, spines=3, **limit)  # type: ignore[arg-type]
    sizes = {ends: size for ends, (size, _, _) in rows_of(needs).items()}
    for leaf in ("s0", "s1"):
        assert [sizes[leaf, root] for root in ("s2", "s3")] == [3 * SWITCHML, 2 * SWITCHML]
        assert [sizes[root, leaf] for root in ("s2", "s3")] == [3 * SWITCHML, 2 * SWITCHML]
        assert (leaf, "s4") not in sizes
    assert {sizes["h0", "s0"], sizes["s1", "h2"]} == {5 * SWITCHML}
    assert needs.chain_ps == 2 * both_ps(SWITCHML)
    alone = needs_of("panama", 64, spines=3, **limit)  # type: ignore[arg-type]
    assert {root for _, root in rows_of(alone) if root in ("s2", "s3")} == {"s2"}


def filled(*blocks: int, size: int, count: int) -> np.ndarray:
    """A tensor that has nothing but 1 at the end of these blocks; the last one has one element."""
    values = np.zeros((count - 1) * size + 1, np.int32)
    for block in blocks:
        values[min(block * size + size - 1, values.size - 1)] = 1
    return values


def test_omnireduce_in_switches_sends_values_of_full_blocks_alone() -> None:
    """h0 has blocks 0 and 3 of five, h1 3, and h2 1; so of two slots there are 3 + 2 rounds."""
    owned = (0, 3), (3,), (1,)
    inputs = [filled(*blocks, size=64, count=BLOCKS) for blocks in owned]
    needs = needs_of("omnireduce-switch", 4 * 64 + 1, slots=2, inputs=inputs)

    def bytes_of(full: int) -> int:
        return 5 * EXPONENT + full * (42 + 14 + 256 - 60)

    assert needs.chain_ps == 4 * both_ps(EXPONENT)  # a round that asks, and one with values
    expected = tree_rows(EXPONENT, EXPONENT, EXPONENT)
    full = {"h0": 2, "h1": 1, "h2": 1, "s0": 2, "s1": 1}
    assert rows_of(needs) == {
        (src, dst): (bytes_of(full[src] if dst > src or src[0] == "h" else 3), *times)
        if (src, dst) not in {("s0", "h0"), ("s0", "h1"), ("s1", "h2")}
        else (bytes_of(3), *times)
        for (src, dst), (_, *times) in expected.items()
    }


@pytest.mark.parametrize(
    ("inputs", "rounds", "full", "packets"), [([], 5 + 2, 5, 4), ([()] * 3, 2, 0, 2)]
)
def test_omnireduce_in_switches_with_all_values_or_none(
    inputs: list[tuple[()]], rounds: int, full: int, packets: int
) -> None:
    given = [filled(*blocks, size=64, count=BLOCKS) for blocks in inputs] or None
    needs = needs_of("omnireduce-switch", 4 * 64 + 1, slots=2, inputs=given)
    sizes = {size for size, _, _ in rows_of(needs).values()}
    assert sizes == {rounds * EXPONENT + full * (42 + 14 + 256 - 60)}
    assert needs.chain_ps == packets * both_ps(EXPONENT)


def test_omnireduce_sends_blocks_to_two_aggregators() -> None:
    """Ranks h0 and h2, aggregators h3 and h1; three slots of two columns, and eight blocks.

    Slots 0 and 2 are h3's: blocks 0, 1, 4, 5, 6 and 7. h0 has 1 and 6, h2 has 2, 6 and 7. Blocks
    that nobody has take a round where they are the first of their column: slot 0 has two rounds,
    slots 1 and 2 have one.
    """
    inputs = [filled(*blocks, size=32, count=8) for blocks in ((1, 6), (2, 6, 7))]
    told = {"members": (0, 2), "servers": (3, 1), "slots": 3, "inputs": inputs}
    needs = needs_of("omnireduce", 7 * 32 + 1, **told)  # type: ignore[arg-type]

    head = 42 + 12 + 8 + 24
    long_ps = 2 * both_ps(head)  # to the other rack
    assert needs.chain_ps == 2 * long_ps
    us = HOP_PS
    assert rows_of(needs) == {
        # Updates to h3 have 3 heads and 2 blocks; to h1 a head, and h2's block 2. Results are of
        # 3 heads and blocks, and of one.
        ("h0", "s0"): (4 * head + 2 * 128, 0, 2 * us + long_ps),
        ("h2", "s1"): (4 * head + 3 * 128, 0, 2 * us + long_ps),
        ("s0", "s2"): (3 * head + 2 * 128 + head + 128, us, 3 * us),
        ("s2", "s1"): (3 * head + 2 * 128 + head + 128, 2 * us, 2 * us),
        ("s1", "s2"): (head + 128 + 3 * head + 3 * 128, us, 3 * us),
        ("s2", "s0"): (head + 128 + 3 * head + 3 * 128, 2 * us, 2 * us),
        ("s1", "h3"): (6 * head + 4 * 128, us, us + long_ps),
        ("s0", "h1"): (2 * head + 128, us, us + long_ps),
        ("h3", "s1"): (2 * (3 * head + 3 * 128), long_ps, 2 * us),
        ("h1", "s0"): (2 * (head + 128), long_ps, 2 * us),
        ("s0", "h0"): (4 * head + 4 * 128, long_ps + us, us),
        ("s1", "h2"): (4 * head + 4 * 128, long_ps + us, us),
    }


def test_omnireduce_of_full_tensors_has_a_slot_for_each_aggregator() -> None:
    """Of five blocks, in two columns each, h3 has 0, 1 and 4; of a single one, h1 has nothing."""
    told = {"members": (0, 2), "servers": (3, 1)}
    head = 42 + 12 + 8 + 24
    rows = rows_of(needs_of("omnireduce", 5 * 32, **told))  # type: ignore[arg-type]
    assert rows["s1", "h3"][0] == 2 * (2 * head + 3 * 128)
    assert rows["s0", "h1"][0] == 2 * (head + 2 * 128)
    rows = rows_of(needs_of("omnireduce", 32, **told))  # type: ignore[arg-type]
    assert rows["s1", "h3"][0] == 2 * (head + 128)
    assert ("s0", "h1") not in rows


def test_atp_adds_in_the_workers_rack_and_at_the_server() -> None:
    """Workers h0, h1 and h2; the server is h3, whose results go to h2, and by s2 to s0."""
    needs = needs_of("atp", 4 * 64 + 1, servers=(3,))
    near, far, size = near_ps(ATP), far_ps(ATP), BLOCKS * ATP
    down_ps = 2 * near + 2 * far
    up_ps = 2 * near + 2 * far
    assert needs.chain_ps == up_ps + down_ps
    own = size, 0, HOP_PS + 2 * far + near + down_ps
    home = size, up_ps + near + 2 * far, HOP_PS
    assert rows_of(needs) == {
        ("h0", "s0"): own,
        ("h1", "s0"): own,
        ("h2", "s1"): (size, 0, HOP_PS + near + down_ps),
        ("s0", "s2"): (size, near, HOP_PS + far + near + down_ps),
        ("s2", "s1"): (size, near + far, HOP_PS + near + down_ps),
        ("s1", "h3"): (size, near, HOP_PS + down_ps),
        ("h3", "s1"): (size, up_ps, HOP_PS + 2 * far + near),
        ("s1", "h2"): (size, up_ps + near, HOP_PS),
        ("s1", "s2"): (size, up_ps + near, HOP_PS + far + near),
        ("s2", "s0"): (size, up_ps + near + far, HOP_PS + near),
        ("s0", "h0"): home,
        ("s0", "h1"): home,
    }


def test_atp_deals_blocks_to_servers_in_turn() -> None:
    """Of five blocks h3 gets three, and h1, a worker itself, two; of one block h1 gets none."""
    rows = rows_of(needs_of("atp", BLOCKS * 64, members=(0, 1, 2), servers=(3, 1)))
    assert (rows["s1", "h3"][0], rows["h3", "s1"][0]) == (3 * ATP, 3 * ATP)
    rows = rows_of(needs_of("atp", 64, members=(0, 2), servers=(3, 1)))
    assert ("h3", "s1") in rows
    assert ("h1", "s0") not in rows
