"""Forwarding entities say what `topologies/routing.py` says, and no more than they need to."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import pairwise, permutations
from pathlib import Path

import finsy as fy
import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.marking import Marking, from_depth, parse_marking
from ringleaf.errors import ConfigError, TopologyError
from ringleaf.networks.forwarding import forwarding_entities, forwarding_rows, salt
from ringleaf.switches.program import Program
from ringleaf.switches.switch import Switch
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.detours import detours, with_detours
from ringleaf.topologies.graph import hosts, neighbors, port, switches
from ringleaf.topologies.registry import build
from ringleaf.topologies.routing import dealt, path, routes

BUILD = Path(__file__).resolve().parents[2] / "p4" / "build"
PROGRAM = Program.load(BUILD / "forward.json")
SPECS = ["fattree,k=4", "leafspine,leaves=3,spines=2,hosts=2", "torus2d,x=3,y=4", "bcube,n=3,k=1"]


class Tables:
    """A switch's entities as a plain program would look them up."""

    def __init__(self, entities: list[fy.P4TableEntry]) -> None:
        self.lpm: dict[tuple[int, int], fy.P4TableAction] = {}
        self.nexthops: dict[int, fy.P4TableAction] = {}
        self.detours: dict[tuple[int, int], int] = {}
        self.threshold = -1
        for entity in entities:
            action = entity.action
            assert isinstance(action, fy.P4TableAction)
            if entity.table_id == "ecn_threshold":
                assert entity.is_default_action
                self.threshold = action.args["threshold"]
            elif entity.table_id == "ipv4_lpm":
                assert entity.match is not None
                assert entity.match["dst"] not in self.lpm
                self.lpm[entity.match["dst"]] = action
            elif entity.table_id == "detours":
                assert entity.match is not None
                self.detours[entity.match["src"], entity.match["dst"]] = action.args["row"]
            else:
                assert entity.match is not None
                assert entity.match["nexthop"] not in self.nexthops
                self.nexthops[entity.match["nexthop"]] = action

    def look_up(self, address: int, src: int = 0) -> list[tuple[int, int]]:
        """(port, MAC) of all that a packet to `address` may be sent to, if it is from `src`."""
        for bits in range(32, -1, -1):
            action = self.lpm.get((address >> (32 - bits) << (32 - bits), bits))
            if action is not None:
                break
        else:
            raise AssertionError("no route")
        hops = [action]
        if action.name == "ecmp":
            base, count = action.args["base"], action.args["count"]
            hops = [self.nexthops[row] for row in range(base, base + count)]
            if (src, address) in self.detours:
                hops = [self.nexthops[self.detours[src, address]]]
        return [(hop.args["port"], hop.args["dmac"]) for hop in hops]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("ecmp", [True, False])
def test_every_host_is_reached_by_the_ports_of_its_route(spec: str, ecmp: bool) -> None:
    graph = build(spec)
    told = forwarding_entities(graph, ecmp=ecmp)
    tables = {name: Tables(entities) for name, entities in told.items()}

    assert list(tables) == switches(graph)
    expected = routes(graph) if ecmp else dealt(graph, routes(graph))
    for switch, table in expected.items():
        peers = neighbors(graph, switch)
        for host, ports in table.items():
            want = [(out, mac(graph, peers[out], port(graph, peers[out], switch))) for out in ports]
            assert tables[switch].look_up(ipv4(graph, host)) == want


def test_without_ecmp_every_host_is_reached_by_its_dealt_port() -> None:
    graph = build("fattree,k=4")
    told = {name: Tables(rows) for name, rows in forwarding_entities(graph, ecmp=False).items()}

    for switch, table in dealt(graph, routes(graph)).items():
        assert told[switch].nexthops == {}
        for host, ports in table.items():
            assert [out for out, _ in told[switch].look_up(ipv4(graph, host))] == list(ports)


def some_way(graph: nx.Graph[str], src: str, dst: str) -> str:
    """The last switch that a detour can lead by."""
    for switch in reversed(switches(graph)):
        with suppress(TopologyError):
            with_detours(graph, [(src, switch, dst)])
            return switch
    raise AssertionError("no way")


@pytest.mark.parametrize("ecmp", [True, False])
@pytest.mark.parametrize("spec", SPECS)
def test_detours_change_the_ways_of_their_hosts_only(spec: str, ecmp: bool) -> None:
    plain = build(spec)
    ends = [("h0", "h3"), ("h1", "h5"), ("h2", "h5"), ("h5", "h2")]
    graph = with_detours(plain, [(src, some_way(plain, src, dst), dst) for src, dst in ends])
    tables = {name: Tables(told) for name, told in forwarding_entities(graph, ecmp=ecmp).items()}
    before = {name: Tables(told) for name, told in forwarding_entities(plain, ecmp=ecmp).items()}

    for src, dst in permutations(hosts(graph), 2):
        here, there = ipv4(graph, src), ipv4(graph, dst)
        turned = dict(pairwise(path(graph, src, dst)[1:-1])) if (src, dst) in detours(graph) else {}
        for switch in tables:
            found = tables[switch].look_up(there, here)
            if switch in turned:
                (number,) = (out for out, _ in found)
                assert neighbors(graph, switch)[number] == turned[switch]
            else:
                assert found == before[switch].look_up(there)
    schema = fy.P4Schema(BUILD / "forward.p4info.txtpb")
    for told in forwarding_entities(graph, ecmp=ecmp).values():
        for entity in told:
            entity.encode(schema)


def test_hosts_behind_another_switch_share_a_route_and_alike_groups_their_rows() -> None:
    graph = build("fattree,k=4")  # 8 edge switches with 2 hosts each
    told = {name: Tables(entities) for name, entities in forwarding_entities(graph).items()}

    edge = told["s0"]
    assert len(edge.lpm) == 2 + 7
    assert len(edge.nexthops) == 2
    core = told[switches(graph)[-1]]
    assert len(core.lpm) == 8
    assert core.nexthops == {}


def test_groups_have_their_rows_in_the_order_of_routes() -> None:
    graph = build("jellyfish,switches=16,degree=4,hosts=1")
    most = 0
    for name, entries in forwarding_entities(graph).items():
        actions = [each for each in Tables(entries).lpm.values() if each.name == "ecmp"]
        bases = list(dict.fromkeys(each.args["base"] for each in actions))
        assert bases == sorted(bases), name
        most = max(most, len(bases))
    assert most > 2


def test_without_ecmp_there_are_no_groups() -> None:
    told = forwarding_entities(build("fattree,k=4"), ecmp=False)

    assert all(Tables(entities).nexthops == {} for entities in told.values())


def test_salts_are_odd_and_differ() -> None:
    salts = [salt(f"s{i}") for i in range(1000)]

    assert all(value % 2 for value in salts)
    assert len(set(salts)) == len(salts)
    assert max(salts) < 2**32


def test_ecn_threshold_is_passed_on() -> None:
    graph = build(SPECS[1])

    assert {Tables(told).threshold for told in forwarding_entities(graph).values()} == {0}
    marked = forwarding_entities(graph, ecn=from_depth(65))
    assert {Tables(told).threshold for told in marked.values()} == {65}


def test_red_is_told_as_two_depths_and_what_is_drawn_from() -> None:
    told = forwarding_entities(build(SPECS[1]), ecn=Marking(5, 205, 0.01))
    actions = {repr(entities[-1].action) for entities in told.values()}
    wanted = fy.P4TableAction("mark_between", least=5, full=205, last=200 * 100 - 1)
    assert actions == {repr(wanted)}


@pytest.mark.parametrize("name", ["forward", "switchml-64", "switchml-256"])
def test_every_program_takes_the_entities(name: str) -> None:
    schema = fy.P4Schema(BUILD / f"{name}.p4info.txtpb")

    for told in forwarding_entities(build("fattree,k=4")).values():
        for entity in told:
            entity.encode(schema)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "ecn: must be a depth in packets, or two and a probability, got 'x'"),
        ("5:9", "must be a depth in packets, or two and a probability, got '5:9'"),
        ("-1", "must be a depth in packets"),
        ("524288", "depths must grow from 0 to at most 524287 packets, got 524288:524288"),
        ("9:5:1%", "depths must grow from 0 to at most 524287 packets, got 9:5"),
        ("5:9:0", "the probability must be 0.01% to 100%, got 0.0"),
    ],
)
def test_impossible_thresholds_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        parse_marking(text, "ecn")


@given(st.integers(0, 500), st.integers(1, 500), st.floats(1e-4, 1, exclude_max=True))
def test_red_draws_for_the_probability_that_was_asked_for(
    least: int, width: int, most: float
) -> None:
    marking = Marking(least, least + width, most)
    assert width / (marking.last_draw + 1) == pytest.approx(most, rel=0.5 / width)
    assert parse_marking(f"{least}:{least + width}:{most!r}", "ecn") == marking


def memory(switch: Switch) -> list[bytes]:
    arena = switch.store.arena
    return [part.tobytes() for part in (arena.words, arena.fields, arena.lanes, arena.bytes)]


MORE = ["fattree,k=6", "bcube,n=2,k=3", "hammingmesh,a=3,b=2,x=2,y=2", "torus3d,x=3,y=2,z=2"]


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("ecmp", [True, False])
@pytest.mark.parametrize("spec", [*SPECS, *MORE])
def test_switches_filled_by_rows_and_by_messages_are_the_same(
    spec: str, ecmp: bool, turned: bool
) -> None:
    graph = build(spec)
    if turned:
        ways = [("h0", "h3"), ("h1", "h5"), ("h5", "h2")]
        graph = with_detours(graph, [(src, some_way(graph, src, dst), dst) for src, dst in ways])
    told = forwarding_rows(graph, ecmp=ecmp)
    messages = forwarding_entities(graph, ecmp=ecmp)

    for switch in switches(graph)[:: 1 + len(told) // 4]:
        ports = len(neighbors(graph, switch))
        one, other = (Switch.alone(PROGRAM, ports, switch) for _ in range(2))
        one.write(told[switch])
        other.write(messages[switch])
        assert memory(one) == memory(other)
        for table in ("ipv4_lpm", "ecmp_nexthop", "detours"):
            name = next(full for full in PROGRAM.schema.tables_by_name if full.endswith(table))
            assert one.entries(name) == other.entries(name)
