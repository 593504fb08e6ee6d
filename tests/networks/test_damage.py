"""Packets with a wrong bit: who notices, what it costs, and where nobody would."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nic_runs import RANKS, Exchanges
from test_faults import run
from test_record_replay import record, replay
from test_virtual_parts import send, star
from test_virtual_tiny import FRAME_PS, LINE_BYTES

import ringleaf.networks.virtual.state as s
from ringleaf.core.compiled import UNCOMPILED
from ringleaf.core.faults import parse_faults
from ringleaf.errors import ConfigError
from ringleaf.experiments.runs import python
from ringleaf.hosts.agent import CORRUPTED
from ringleaf.hosts.nic.embedding.sizes import ExchangeSizes
from ringleaf.ina.registry import find_system
from ringleaf.networks.faults import Disturbance, LinkDamage, LinkLoss
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.networks.virtual.losses import BLOCK_WORDS, DAMAGED, ROW_WORDS
from ringleaf.topologies.registry import build

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")
UP = ("h1", "s0")
CLOS = "leafspine,leaves=2,spines=2,hosts=2"
FEW = settings(max_examples=3 if UNCOMPILED else 20, deadline=None)


def first_frame(change: type[LinkDamage] | type[LinkLoss]) -> list[Disturbance]:
    """Return what befalls the first of the frames that h1 sends."""
    return [change(0, UP, 1.0), change(FRAME_PS // 2, UP, None)]


def damaged(network: VirtualNetwork) -> int:
    words = network.store.arena.words
    block = int(words[network._network + s.DAMAGE_AT])
    rows = words[block + BLOCK_WORDS :][: len(network._net().ports) * ROW_WORDS]
    return int(rows[DAMAGED::ROW_WORDS].sum()) if block else 0


def test_a_damaged_packet_takes_as_long_as_a_lost_one_and_the_way_to_the_receiver() -> None:
    """By hand: it is one more frame on the switch's link to h0, and discarded by h0 alone."""
    lossy, corrupt = star(), star()
    lost = send(lossy, disturbances=first_frame(LinkLoss))
    wrong = send(corrupt, disturbances=first_frame(LinkDamage))
    assert (lost.lost, lost.corrupted, damaged(lossy)) == (1, 0, 0)
    assert (wrong.lost, wrong.corrupted, damaged(corrupt)) == (0, 1, 1)
    assert wrong.time_ps == lost.time_ps
    assert wrong.retransmissions == lost.retransmissions == 4
    assert wrong.link_bytes["h1", "s0"] == lost.link_bytes["h1", "s0"]
    assert wrong.link_bytes["s0", "h0"] - lost.link_bytes["s0", "h0"] == LINE_BYTES
    again = send(corrupt)
    assert (again.corrupted, again.retransmissions) == (0, 0), "it is over with the run"


def test_a_link_that_loses_all_has_nothing_to_damage() -> None:
    changes = [*first_frame(LinkLoss), *first_frame(LinkDamage)]
    network = star()
    both = send(network, disturbances=changes)
    assert (both.lost, both.corrupted, damaged(network)) == (1, 0, 0)


@FEW
@given(
    place=st.sampled_from(["h1", "s0-s2", "s3-s1"]),
    share=st.sampled_from(["5%", "40%"]),
    at=st.integers(0, 60),
    lasting=st.integers(1, 300),
    algo=st.sampled_from(["ring", "halvingdoubling", "tree"]),
    cc=st.sampled_from(["fixed", "hpcc"]),
)
def test_all_are_found_whatever_the_threads_and_though_there_is_no_data(
    place: str, share: str, at: int, lasting: int, algo: str, cc: str
) -> None:
    """Each packet crosses the link once, and queues drop none: all damaged ones reach hosts."""
    faults = parse_faults(f"{place} corrupt {share} at {at}us for {lasting}us", "faults")
    found = []
    for threads in (1, 2):
        options = NetworkOptions(faults=faults, threads=threads, mtu_bytes=1024, cc=cc)
        on = VirtualNetwork(build(CLOS), options)
        result = run(on, algo=algo)
        assert on.drain() == 0
        assert (result.drops, result.lost) == (0, 0)
        words, agents = on.store.arena.words, on._net().agents[:, s.AGENT_AT]
        assert words[agents + CORRUPTED].sum() == damaged(on)
        found.append((result.time_ps, result.corrupted, damaged(on), result.link_bytes))
    assert found[0] == found[1]


def test_runs_without_data_lose_as_much_time(tmp_path: Path) -> None:
    options: dict[str, Any] = {"topo": CLOS, "algo": "ring", "size": "256K", "figures": "no"}
    options |= {"faults": "h1 corrupt 10% at 0"}
    with_data, without = (
        python.run(**options, out=str(tmp_path / data), data=data).rows[0]
        for data in ("random", "none")
    )
    assert (with_data.wrong, without.wrong) == (0, None)
    assert with_data.corrupted > 0
    assert (without.time_ps, without.corrupted) == (with_data.time_ps, with_data.corrupted)


def test_traces_hold_wrong_bits_and_switches_do_the_same_again(tmp_path: Path) -> None:
    faults = parse_faults("s0-s2 corrupt 20% at 0", "faults")
    options: dict[str, Any] = {"delay_ps": 10**6, "mtu_bytes": 512, "faults": faults}
    plain = record(Path(), CLOS, "ring", 3000, **options)
    traced = record(Path(), CLOS, "ring", 3000, **options, record=tmp_path)
    assert traced.corrupted == plain.corrupted > 0
    assert traced.time_ps == plain.time_ps
    for folder in sorted(tmp_path.iterdir()):
        assert all(result.equal for result in replay(folder))


FAULTS = parse_faults("h0 corrupt 1%", "faults")


def test_it_is_refused_where_nobody_would_notice() -> None:
    switchml = NetworkOptions(system=find_system("switchml"), faults=FAULTS, lanes=64)
    with pytest.raises(ConfigError, match="faults: nothing that adds up switchml's packets veri"):
        VirtualNetwork(build(CLOS), switchml)
    network = VirtualNetwork(build(CLOS), replace(switchml, faults=()))
    with pytest.raises(ConfigError, match="faults: nothing that adds up switchml's packets veri"):
        network.play(None, disturbances=[LinkDamage(0, UP, 0.5)])  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="trim have no ICRC any more"):
        VirtualNetwork(build(CLOS), NetworkOptions(trim_bytes=1000, faults=FAULTS))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algo": "ring,switchml"}, "faults: nothing that adds up switchml's packets verifies"),
        ({"algo": "ring", "net": "flow"}, "faults: no fluid model covers corrupt, got 'h0 corr"),
        ({"algo": "ring", "trim": "1K"}, "have no ICRC any more"),
    ],
)
def test_it_is_refused_before_anything_runs(
    tmp_path: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        python.run(topo=CLOS, size="4K", faults="h0 corrupt 1%", out=str(tmp_path), **options)  # type: ignore[arg-type]
    assert not (tmp_path / "results.csv").exists()


def test_messages_of_nics_that_compute_are_checked_too() -> None:
    """Each pass is compared with the whole table."""
    faults = parse_faults("h1 corrupt 20%", "faults")
    sizes = ExchangeSizes(RANKS, rows=60, dim=8, bags=6, per_bag=5)
    found = Exchanges(sizes, options=NetworkOptions(mtu_bytes=256, faults=faults))
    results = [result for _ in range(3) for result in found.iterate()]
    assert found.nics.wrong == 0
    assert sum(each.corrupted for each in results) > 0
    assert sum(each.lost for each in results) == 0


def test_links_damage_nothing_after_the_run() -> None:
    """Though the fault has no end."""
    network = star()
    forever = send(network, disturbances=[LinkDamage(0, UP, 0.5)])
    assert forever.corrupted > 0
    assert send(network).corrupted == 0
