"""What can't be run is said before anything large is loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ringleaf.errors import ConfigError, RingleafError
from ringleaf.experiments.estimates import machine
from ringleaf.experiments.estimates.estimate import check_memory, format_wait
from ringleaf.experiments.runs import checks
from ringleaf.experiments.runs.checks import check
from ringleaf.experiments.runs.request import resolve as request
from ringleaf.experiments.runs.spec_file import read_cases
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.networks.mininet import preflight
from ringleaf.topologies.family import Counts

ROOT = Path(__file__).resolve().parents[2]
GIB = 1 << 30


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"topo": "fattree,k=100", "size": "4K"}, "fattree,k=100: needs .* TiB of memory, 18 GiB"),
        ({"size": "64GiB"}, r"fattree: needs 1\.\d+ TiB of memory, 18 GiB are free; take fewer"),
        ({"algo": "ring,alltoall"}, "algo: must all be of one collective, got 'ring'"),
        ({"topo": "fattree,k=3"}, "fattree,k=3: k must be even, got 3; try k=4"),
        ({"topo": "fattree,k=4", "hosts": "17"}, "has 16 hosts, 17 are wanted"),
        ({"detours": "h0-s99-h1"}, "detour: no such switch, got 's99'"),
        ({"faults": "h0-s9 down"}, "faults: no such node or link, got 'h0-s9'; like"),
        ({"faults": "s0 down, s0-h0 down"}, "faults: two must not be at one link together"),
        ({"faults": "s0 rate 200G"}, "faults: a link can't get faster than 100G, which it has"),
        (
            {"faults": "s0-s8 down", "reroute": "9us", "routes": "ksp:2"},
            "reroute: is for routes dealt and ecmp",
        ),
        (
            {"topo": "torus2d,x=3,y=3", "reroute": "9us"},
            "reroute: routes by a rule lead around nothing, got dimension_order",
        ),
        ({"topo": "fattree,k=8", "routes": "ugal"}, "need an entry for each pair of hosts, of at"),
        (
            {"algo": "ring,switchml", "routes": "ugal"},
            "algo: switches can't aggregate while they run routes=ugal, got 'switchml'; leave",
        ),
        (
            {"topo": "slimfly,q=3,hosts=1", "algo": "ring", "reroute": "9us", "routes": "ugal"},
            "reroute: is for routes dealt and ecmp",
        ),
        ({"faults": "s0 rate 1G", "record": "x"}, "faults: traces have ports' rates at the beg"),
        ({"faults": "s0 down", "net": "flow", "algo": "switchml"}, "faults: no fluid model covers"),
        (
            {"net": "mininet", "rate": "32767999", "mtu": "4096"},  # 8 x 4096 bit/s by 1000
            "scale: a live link must send 4096 bytes in a second, got 32.77 kbit/s, its rate over",
        ),
        (
            {"faults": "s0 down for 1us", "record": "x"},
            "faults: a trace has one beginning of each switch, got record or pcap and 's0' down",
        ),
        (
            {"faults": "s0 down for 1us", "net": "mininet", "pcap": "yes"},
            "faults: a trace has one beginning of each switch, got record or pcap and 's0' down",
        ),
        (
            {"faults": "s0 down for 1us", "pfc": "64K:48K"},
            "faults: a switch would lose its counts of who is paused, got pfc and 's0' down and",
        ),
        (
            {"topo": "leafspine,leaves=2,spines=1,hosts=65", "algo": "atp", "size": "4K"},
            "atp: a job of more than 64 workers may have 64 in a rack, got 65; take a topology",
        ),
        (
            {"topo": "torus2d,x=9,y=9", "algo": "ring,atp", "size": "4K", "servers": "1"},
            "atp: a job of more than 64 workers may be in 64 racks, got 80; take a topology",
        ),
        (
            {"topo": "leafspine,leaves=8,spines=8,hosts=64", "algo": "atp", "size": "4K"},
            "atp: there must be 1 to 255 parameter servers, got 512; SERVERS=1 makes the last",
        ),
        (
            {"topo": "leafspine,leaves=1,spines=0,hosts=1"},
            "hosts: must be two at least to be ranks, got 1",
        ),
        ({"servers": "15"}, "servers: must leave two hosts at least to be ranks, got 15 of 16"),
    ],
)
def test_what_can_not_be_run_is_refused(
    given: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "free_bytes", lambda: 18 * GIB)
    with pytest.raises(RingleafError, match=message):
        check(request(given))


def test_what_may_fit_is_let_through() -> None:
    """An estimate may be twice the truth."""
    check_memory("x", 2 * GIB, GIB)
    check_memory("x", 2 * GIB, None)
    with pytest.raises(ConfigError, match="x: needs 2 GiB of memory, 0 B are free"):
        check_memory("x", 2 * GIB, -1)


def test_a_machine_without_bmv2_is_refused_before_anything_is_set_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(preflight, "_missing", lambda *_: iter([("simple_switch_grpc", "here")]))
    with pytest.raises(ConfigError, match=r"mininet: live .*\n  simple_switch_grpc: here"):
        check(request({"net": "mininet", "switch": "bmv2"}))
    check(request({"net": "mininet", "switch": "bmv2"}), live=False)


def test_hosts_that_are_left_out_are_not_counted() -> None:
    assert count_nodes(resolve({"hosts": "12"})) == Counts(12, 20, 44, 2)
    assert count_nodes(resolve({"hosts": "17"})).switches == 45  # k = 6


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        *((given, "") for given in ("topo=nosuch", "algo=rign", "cc=x", "scheduler=x")),
        ("compress=x", ""),
        ("size=64GiB", "numpy"),  # algorithms' costs are with their builders, which need it
        ("servers=15", "numpy"),
        ("topo=torus2d,x=9,y=9 algo=atp", "numpy"),
    ],
)
def test_wrong_values_load_nothing_that_takes_long(given: str, allowed: str) -> None:
    """Half a second is gone with almost any of these alone."""
    options = dict(each.split("=", 1) for each in given.split())
    code = f"""
import sys
from ringleaf.experiments.commands import run as run_command
from ringleaf.experiments.commands import cli
from ringleaf.errors import ConfigError, RingleafError
try:
    run_command.run_command({options!r})
except ConfigError:
    slow = {{"torch", "numba", "numpy", "networkx", "matplotlib"}} - {{{allowed!r}}}
    print(slow & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("set()\n", "")


PCAP = bytes.fromhex("d4c3b2a1 02000400 00000000 00000000 ffff0000 01000000")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (PCAP[:8], "not a packet capture, got 8 bytes; a pcap file has a header of 24"),
        (
            PCAP + bytes.fromhex("01000000 00000000 64000000 64000000") + bytes(20),
            "packet 1 is truncated, got 20 of its 100 bytes; copy the file anew",
        ),
    ],
)
def test_damaged_captures_are_refused_before_the_run(
    tmp_path: Path, data: bytes, problem: str
) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(data)
    with pytest.raises(ConfigError) as error:
        check(request({"cross_traffic": str(path)}))
    assert str(error.value) == f"cross_traffic: {path}: {problem}"


def test_programs_that_are_not_json_are_refused_before_the_run(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{")
    with pytest.raises(ConfigError, match=r"x\.json: not JSON: Expecting"):
        check(request({"program": str(path)}))


def test_models_that_there_are_not_are_named_with_their_job(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("jobs: [{model: resnet50}, {model: nosuch}]\n")
    with pytest.raises(ConfigError) as error:
        request(read_cases(path)[0], f"spec {path}: ")
    assert str(error.value).startswith(
        f"spec {path}: job 2: model: unknown model, got 'nosuch'; valid: bert-large, gpt2,"
    )


def test_memory_is_what_the_tightest_limit_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 99 kB\nMemAvailable: 8000 kB\n")
    (tmp_path / "own").write_text("0::/a/b\n1:cpu:/\n4:memory:/c\n")
    texts = {
        "a/b": ("max", "1", ""),
        "a": ("9000", "6000", "anon 1\ninactive_file 1500\n"),
    }
    for name, (most, used, stat) in texts.items():
        group = tmp_path / name
        group.mkdir(parents=True, exist_ok=True)
        (group / "memory.max").write_text(most)
        (group / "memory.current").write_text(used)
        (group / "memory.stat").write_text(stat)
    monkeypatch.setattr(machine, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(machine, "GROUPS", tmp_path)

    assert machine.free_bytes() == 9000 - 6000 + 1500
    old = tmp_path / "memory" / "c"
    old.mkdir(parents=True)
    (old / "memory.limit_in_bytes").write_text("4000")
    (old / "memory.usage_in_bytes").write_text("3000")
    assert machine.free_bytes() == 1000
    monkeypatch.setattr(machine, "OWN_GROUPS", tmp_path / "nothing")
    assert machine.free_bytes() == 8000 * 1024
    monkeypatch.setattr(machine, "MEMINFO", tmp_path / "nothing")
    assert machine.free_bytes() is None


def test_waits_are_said_in_the_unit_that_fits() -> None:
    times = (5.2, 119, 600, 3 * 3600, 4 * 86400)
    assert [format_wait(each) for each in times] == ["5 s", "119 s", "10 min", "3 h", "4 days"]


def test_packets_that_grow_beyond_bmv2s_room_are_refused() -> None:
    """256 lanes have 1024 bytes; a packet of votes grows by five planes of 96."""
    live = {"net": "mininet", "switch": "bmv2", "topo": "leafspine"}
    with pytest.raises(ConfigError, match=r"lanes: BMv2 adds at most 512 bytes .* got 1024"):
        check(request({**live, "algo": "omnireduce-switch"}), live=False)
    check(request({**live, "algo": "omnireduce-switch", "lanes": "64"}), live=False)
    check(request({**live, "algo": "vote"}), live=False)
    check(request({**live, "algo": "omnireduce-switch", "switch": "embedded"}), live=False)
