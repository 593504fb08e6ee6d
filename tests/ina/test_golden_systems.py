"""Aggregation systems: numbers that their sources give, and values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from atp_network import job_on
from lossy_network import EsaJob, tree_of

from ringleaf.core.arena import Store
from ringleaf.errors import ConfigError
from ringleaf.ina.a2tp import job as a2tp
from ringleaf.ina.congestion import (
    CONTROL_WORDS,
    MARKED,
    SHARE,
    TIMELY,
    WANTED,
    WINDOW,
    begin_window,
)
from ringleaf.ina.esa.control import entities
from ringleaf.ina.netreduce.values import check_range, read_floats, write_floats
from ringleaf.ina.panama import job as panama
from ringleaf.ina.registry import SYSTEMS
from ringleaf.ina.sharp import job as sharp
from ringleaf.ina.sharp_quantum2 import job as sharp_quantum2
from ringleaf.ina.systems import JobRequest, ResourceShare
from ringleaf.ina.tern.values import read_sums, write_levels
from ringleaf.ina.tern.wire import MOST_WORKERS, PLANE_BYTES, PLANES
from ringleaf.ina.vote import wire as vote
from ringleaf.ina.window_registry import find_window
from ringleaf.topologies.registry import build


def after_a_round(name: str, **facts: int) -> tuple[int, int]:
    """Return a window of 20 of 40 and its share after a round of 20 results."""
    store = Store()
    at = store.allocate("words", CONTROL_WORDS)
    block = store.arena.words[at : at + CONTROL_WORDS]
    chosen = find_window(name)
    begin_window(block, chosen, most=40, growth=5)
    places = {"wanted": WANTED, "marked": MARKED, "timely": TIMELY}
    for fact, value in facts.items():
        block[places[fact]] = value
    chosen.on_round(store.arena, at, 20, 0)
    return int(block[WINDOW]), int(block[SHARE])


def test_a2tp() -> None:
    """Its window is that of the released code: b = 1/8 of all wanted, 20 (1 - 0.025 / 1.9)."""
    assert after_a_round(a2tp.WINDOWS, wanted=20, timely=20) == (21, 19)
    targets = {build.name: build for build in SYSTEMS["a2tp"].builds}
    assert set(targets) == {"a2tp-64", "a2tp-256", "a2tp-switchml-64"}
    assert {target.source for target in targets.values()} == {"a2tp.p4"}
    joint = SYSTEMS["a2tp"].joint
    assert joint == {frozenset({"a2tp-64", "switchml-64"}): "a2tp-switchml-64"}


def test_esa() -> None:
    """A gradient that is kept out halves the urgency: a bit. Sums go home as bits of their racks.

    With 4 bits for 8 workers there are racks 1 and 2 below the server's own, 0.
    """
    graph = tree_of((3, 3))
    plain = job_on(graph)
    told = entities(graph, EsaJob(1, plain.workers, plain.servers, 8, 8, bits=4))
    args = [(entry.table_id, entry.action.args) for each in told.values() for entry in each
            if getattr(entry, "action", None)]  # fmt: skip
    assert {each["fading"] for _, each in args if "fading" in each} == {1}
    homes = {switch: [e.action.args["rack"] for e in each if getattr(e, "table_id", "") == "homes"]
             for switch, each in told.items()}  # fmt: skip
    assert homes == {"s0": [], "s1": [1], "s2": [2], "s3": [0]}


def test_netreduce() -> None:
    """20 bits of fraction, to the nearest, ties to even; four sums below 2^31 are below 512."""
    values = np.array([1.5, 2.0**-21, 3 * 2.0**-21, -1], np.float32)
    lanes = np.zeros(16, np.uint8)
    write_floats(values, lanes)
    assert lanes.view(">i4").tolist() == [3 << 19, 0, 2, -(1 << 20)]
    read_floats(lanes, values)
    assert values.tolist() == [1.5, 0, 2.0**-19, -1]
    check_range(np.array([511.999], np.float32), 4)
    with pytest.raises(ConfigError, match="at most 512 for fixed-point sums of 4 workers"):
        check_range(np.array([512], np.float32), 4)


def test_panama() -> None:
    """Its window is DCTCP's: as large as may be, and cut by half of alpha, 15/16 + 1/16."""
    window, _ = after_a_round(panama.DCTCP, marked=20)
    assert window == 20


def asked(members: list[str], earlier: list[tuple[int, list[str]]]) -> JobRequest:
    return JobRequest(
        number=2, members=members, servers=(), share=ResourceShare(), ring=0, lanes=64, slots=None,
        rtt_ps=8_000_000, ecmp=False, earlier=earlier,
    )  # fmt: skip


RACKS = "leafspine,leaves=4,spines=4,hosts=2"


def test_sharp() -> None:
    """NVIDIA's documentation: 63 streaming trees, one for a switch, and two transactions else."""
    assert (sharp.QUANTUM.streams, sharp.QUANTUM.per_port) == (63, False)
    assert sharp.MOST_BYTES == 1_073_741_792
    second = sharp.join(build(RACKS), Store(), asked(["h1", "h3"], [(1, ["h0", "h2"])]))
    assert second.hosts is not None
    assert second.tree.window_bytes == 2 * 64 * 4


def test_sharp_quantum2() -> None:
    """NVIDIA's documentation: 511 streaming trees, and one for each port of a switch."""
    assert (sharp.QUANTUM_2.streams, sharp.QUANTUM_2.per_port) == (511, True)
    job = sharp_quantum2.join(build(RACKS), Store(), asked(["h1", "h3"], [(1, ["h0", "h2"])]))
    assert job.hosts is None


def test_tern() -> None:
    """Levels plus one in two bits, lower bits first; two workers' counts less two are the sum."""
    planes = np.zeros(2 * PLANE_BYTES, np.uint8)
    write_levels(np.array([7, 0, -7, 7], np.float32), planes)
    assert planes[0] == 0b0010
    assert planes[PLANE_BYTES] == 0b1001
    sums = np.zeros(PLANES * PLANE_BYTES, np.uint8)
    sums[0], sums[PLANE_BYTES], sums[2 * PLANE_BYTES] = 0b0010, 0b0110, 0b1001  # 4, 3, 2, 4
    values = np.zeros(4, np.float32)
    read_sums(sums, values, 2, 7.0)
    assert values.tolist() == [14, 7, 0, 14]
    assert MOST_WORKERS == 31  # counts go up to twice the workers, in six bits


def test_vote() -> None:
    """A bit for each of 768 elements is 96 bytes; counts of six bits add up 63 workers.

    The majority of +1, +1 and -1 is +1; it is 0 away from their sum, and 2 from that of three.
    """
    assert (vote.SIGNS, 4 * vote.WORDS, vote.MOST_WORKERS) == (768, 96, 63)
    parts = np.array([[1, 1, 1], [1, 1, -1], [-1, 1, -1]], np.float32)
    assert SYSTEMS["vote"].error_bound(parts, 64).tolist() == [0, 2, 0]
