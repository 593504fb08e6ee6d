"""Jobs on one switch have parts of its memory that never overlap, however these change."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.groups import Group
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.registry import build

RACK = "leafspine,leaves=1,spines=1,hosts=8"


def make(systems: list[str], entries: int) -> VirtualNetwork:
    """Return a network whose jobs have two hosts each, below one switch."""
    groups = [
        Group(place + 1, (f"h{2 * place}", f"h{2 * place + 1}"), (), SYSTEMS[name])
        for place, name in enumerate(systems)
    ]
    options = NetworkOptions(lanes=64, allocator="equal", switch_entries=entries)
    return VirtualNetwork(build(RACK), options, groups=groups)


def slots_of(network: VirtualNetwork, group: int) -> range:
    """Return the slots of a job in the switch, from its entries; two registers are a slot."""
    members = [
        each.action.args
        for each in network.endpoints.aggregators[group].entities["s0"]
        if getattr(each, "table_id", "") == "members"
    ]
    first = members[0]["base"] // 2
    return range(first, first + members[0]["slots"])


@settings(max_examples=20, deadline=None)
@given(
    systems=st.lists(
        st.sampled_from(("switchml", "sharp", "sharp-quantum2")), min_size=1, max_size=4
    ),
    entries=st.integers(8, 40),
)
@example(systems=["switchml", "sharp"], entries=8)
@example(systems=["sharp", "switchml", "omnireduce", "switchml"], entries=9)
def test_parts_that_jobs_keep_are_not_among_those_that_others_exchange(
    systems: list[str], entries: int
) -> None:
    network = make(systems, entries)

    movers = network.endpoints.movers()
    in_switch = {place for place, name in enumerate(systems) if name != "omnireduce"}
    assert set(movers) == {place for place, name in enumerate(systems) if name == "switchml"}
    parts = [slots_of(network, place) for place in in_switch]
    taken = [slot for part in parts for slot in part]
    assert len(taken) == len(set(taken))
    assert max(taken) < entries
    for place in in_switch - set(movers):
        for mover in movers.values():
            assert min(slots_of(network, place)) >= mover.available
    for place, mover in movers.items():
        assert mover.available == entries * len(movers) // len(in_switch)
        assert mover.holding.first == min(slots_of(network, place))
        assert mover.holding.stop <= mover.available
