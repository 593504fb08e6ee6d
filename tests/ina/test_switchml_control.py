"""Entities of SwitchML jobs: who is whose child, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import finsy as fy
import pytest

from ringleaf.core.arena import Store
from ringleaf.errors import ConfigError
from ringleaf.ina.switchml.control import ENTRIES, SwitchmlJob, check_jobs, entities
from ringleaf.ina.switchml.system import SYSTEM
from ringleaf.ina.switchml.wire import SIZES
from ringleaf.ina.systems import JobRequest, ResourceShare
from ringleaf.topologies.graph import Link, add_host, add_switch, connect, hosts, new_graph, port
from ringleaf.topologies.registry import build
from ringleaf.topologies.trees import aggregation_tree

BUILD = Path(__file__).resolve().parents[2] / "p4" / "build"


def told(spec: str, job: SwitchmlJob) -> tuple[Any, Any, dict[str, list[Any]]]:
    graph = build(spec)
    tree = aggregation_tree(graph, hosts(graph))
    return graph, tree, entities(graph, tree, job)


@pytest.mark.parametrize("spec", ["fattree,k=4", "torus2d,x=3,y=3", "leafspine"])
def test_each_child_has_a_bit_and_each_switch_a_group(spec: str) -> None:
    graph, tree, told_to = told(spec, SwitchmlJob(6, 100, first_slot=20))

    assert set(told_to) == set(tree.children)
    for switch, (group, *members) in told_to.items():
        ports = [port(graph, switch, child) for child in tree.children[switch]]
        parent = tree.parent[switch]
        parent_port = 0 if parent is None else port(graph, switch, parent)
        share = {"children": 2 ** len(ports) - 1, "group": 6, "base": 40, "slots": 100}
        want = {
            number: ("from_child", share | {"child": 2**bit, "parent_port": parent_port})
            for bit, number in enumerate(ports)
        }
        if parent is not None:
            want[parent_port] = ("from_parent", share)
        assert group.replicas == ports
        assert group.multicast_group_id == 6
        assert {
            entity.match["ingress_port"]: (entity.action.name, entity.action.args)
            for entity in members
        } == want
        assert {entity.match["job"] for entity in members} == {6}


@pytest.mark.parametrize("lanes", SIZES)
def test_entries_are_the_programs_and_it_takes_the_entities(lanes: int) -> None:
    schema = fy.P4Schema(BUILD / f"switchml-{lanes}.p4info.txtpb")
    _, _, told_to = told("fattree,k=4", SwitchmlJob(255, ENTRIES[lanes] // 2, lanes=lanes))

    sizes = {register.size for register in schema.p4info.registers}
    assert sizes == {ENTRIES[lanes]}
    for told_one in told_to.values():
        for entity in told_one:
            entity.encode(schema)


def star(leaves: int) -> Any:
    graph = new_graph("star", (leaves,))
    add_switch(graph, 0, 0, "", (0, 0))
    for rank in range(leaves):
        connect(graph, "s0", add_host(graph, rank, (0, 0)), Link(10**9, 0))
    return graph


def test_a_switch_has_at_most_64_children() -> None:
    graph = star(64)
    assert (
        len(entities(graph, aggregation_tree(graph, hosts(graph)), SwitchmlJob(1, 4))["s0"]) == 65
    )

    graph = star(65)
    with pytest.raises(ConfigError, match="job 1: s0 can aggregate 64 children, got 65"):
        entities(graph, aggregation_tree(graph, hosts(graph)), SwitchmlJob(1, 4))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"number": 0, "slots": 1}, "job must be 1 to 255, got 0"),
        ({"number": 1, "slots": 0}, "job 1: slots must lie in the 4096 .*, got 0 to 0"),
        ({"number": 1, "slots": 4097}, "job 1: slots must lie in the 4096 .*, got 0 to 4097"),
        ({"number": 1, "slots": 9, "first_slot": 4090}, "got 4090 to 4099"),
        ({"number": 1, "slots": 9, "first_slot": -1}, "got -1 to 8"),
        ({"number": 1, "slots": 1025, "lanes": 256}, "the 1024 that a switch has for 256 lanes"),
        ({"number": 1, "slots": 1, "lanes": 33}, r"lanes must be one of \[64, 256\], got 33"),
    ],
)
def test_jobs_that_do_not_fit_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SwitchmlJob(**options)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (
            SwitchmlJob(1, 4, first_slot=8),
            "jobs 1 and 1: numbers must differ modulo 16, got the same",
        ),
        (
            SwitchmlJob(17, 4, first_slot=8),
            "jobs 1 and 17: numbers must differ modulo 16, got the same",
        ),
        (SwitchmlJob(2, 4, first_slot=7), "slots must not overlap, got 0 to 8 and from 7 on"),
        (SwitchmlJob(2, 4, first_slot=8, lanes=256), "must have equal lanes, got 64 and 256"),
    ],
)
def test_jobs_that_clash_are_refused(second: SwitchmlJob, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_jobs([SwitchmlJob(1, 8), second])


def test_jobs_with_slots_of_their_own_run_at_once() -> None:
    check_jobs(
        [SwitchmlJob(1, 8), SwitchmlJob(2, 4, first_slot=8), SwitchmlJob(3, 1, first_slot=12)]
    )


def test_system_names_its_programs() -> None:
    assert [SYSTEM.program(lanes) for lanes in SIZES] == ["switchml-64", "switchml-256"]
    with pytest.raises(ConfigError, match=r"switchml: lanes must be one of \[64, 256\], got 128"):
        SYSTEM.program(128)


@pytest.mark.parametrize(("slots", "first"), [(8, 8), (None, 8), (9, None)])
def test_a_job_has_no_more_slots_than_its_share(slots: int | None, first: int | None) -> None:
    """Of 16 entries, the second of two jobs has those from 8 on."""
    graph = build("leafspine,leaves=2,spines=1,hosts=2")
    request = JobRequest(
        number=2,
        members=hosts(graph),
        servers=(),
        share=ResourceShare(1, 2, 16),
        ring=0,
        lanes=64,
        slots=slots,
        rtt_ps=8_000_000,
        ecmp=False,
    )

    def bases() -> set[int]:
        told = SYSTEM.join(graph, Store(), request).entities
        return {
            entry.action.args["base"]
            for entries in told.values()
            for entry in entries
            if isinstance(entry, fy.P4TableEntry) and "base" in entry.action.args
        }

    if first is None:
        with pytest.raises(
            ConfigError, match=r"job 2: slots must be at most 8, .* for 2 jobs, got 9"
        ):
            bases()
    else:
        assert bases() == {2 * first}
