"""A topology's size is known before it is made."""

from collections import Counter

import pytest
from hypothesis import given
from topology_specs import ANY_SPEC, SPECS

from ringleaf.errors import TopologyError
from ringleaf.topologies.family import Counts
from ringleaf.topologies.graph import attachment, hosts, switches
from ringleaf.topologies.registry import build, count


def size(text: str) -> Counts:
    graph = build(text)
    racks = Counter(attachment(graph, host) for host in hosts(graph))
    assert [attachment(graph, host) for host in hosts(graph)] == [*racks.elements()]
    (rack,) = set(racks.values())
    return Counts(len(hosts(graph)), len(switches(graph)), graph.number_of_edges(), rack)


@pytest.mark.parametrize("text", [*SPECS, "hammingmesh,a=2,b=1,x=33,y=1", "torus3d,x=2,y=1,z=3"])
def test_counts_are_those_of_the_graph(text: str) -> None:
    assert count(text) == size(text)


@given(ANY_SPEC)
def test_counts_of_any_instance_are_those_of_its_graph(text: str) -> None:
    assert count(text) == size(text)


def test_what_could_never_be_made_is_counted_at_once() -> None:
    """k^3/4 hosts, k^2 switches in pods and k^2/4 above, k^3/4 links in each of three tiers."""
    assert count("fattree,k=1000") == Counts(250_000_000, 1_250_000, 750_000_000, 500)


def test_hosts_that_must_find_room_choose_the_size() -> None:
    assert count("torus2d", hosts=128) == size("torus2d,x=16,y=8")
    with pytest.raises(TopologyError, match="fattree: hosts must be >= 1, got 0"):
        count("fattree", hosts=0)


@pytest.mark.parametrize(
    ("spec", "needed", "found"),
    [
        ("bcube", 64, "bcube,n=8,k=1"),  # of 8^2, 4^3 and 3^4 servers, and 64 with fewer levels
        ("bcube", 80, "bcube,n=9,k=1"),  # 9^2 = 3^4 = 81
        ("bcube", 27, "bcube,n=3,k=2"),  # of 6^2, 3^3 and 3^4
        ("bcube", 16, "bcube,n=4,k=1"),
        ("bcube,n=4", 17, "bcube,n=4,k=2"),
        ("bcube,k=2", 28, "bcube,n=4,k=2"),
    ],
)
def test_bcube_has_the_fewest_servers_with_two_to_four_levels(
    spec: str, needed: int, found: str
) -> None:
    assert count(spec, hosts=needed) == size(found)
