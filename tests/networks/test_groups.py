"""Groups of hosts on one network are told apart."""

from __future__ import annotations

import pytest

from ringleaf.errors import ConfigError
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.groups import Group, check_groups, whole
from ringleaf.topologies.registry import build

GRAPH = build("leafspine,leaves=1,spines=1,hosts=4")


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([], "groups: a network needs one at least, got none"),
        (
            [Group(1, ("h0", "h1"), (), SYSTEMS["switchml"]), Group(1, ("h2",), (), None)],
            r"groups: numbers must differ where systems aggregate, got \[1, 1\]",
        ),
        ([Group(3, (), ("h0",), None)], "group 3: needs one host at least, got none"),
        (
            [Group(1, ("h0", "h1"), ("h1",), None)],
            r"group 1: a host may be one node only, got \['h0', 'h1', 'h1'\]",
        ),
        ([Group(1, ("h0", "s0"), (), None)], "group 1: hosts must be in the topology, got 's0'"),
    ],
)
def test_groups_that_make_no_sense_are_refused(groups: list[Group], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_groups(GRAPH, groups)


def test_groups_may_share_hosts_and_those_of_one_job_a_number() -> None:
    both = Group(2, ("h0", "h3"), (), None), Group(2, ("h3", "h1"), (), None)
    check_groups(GRAPH, [whole(GRAPH, SYSTEMS["atp"], 1), *both])


@pytest.mark.parametrize(("servers", "ranks"), [(0, 4), (1, 3), (3, 1)])
def test_the_last_hosts_are_servers(servers: int, ranks: int) -> None:
    group = whole(GRAPH, None, servers)
    hosts = ("h0", "h1", "h2", "h3")
    assert (group.hosts, group.servers) == (hosts[:ranks], hosts[ranks:])
