"""What live networks need, remember and ask of the kernel; without root."""

import json
import os
import shutil
import signal
import socket
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ringleaf.core.units import PS_PER_MS, PS_PER_US
from ringleaf.errors import BackendError, ConfigError
from ringleaf.experiments.commands import shell
from ringleaf.networks.live.client import DaemonCommands
from ringleaf.networks.live.engine import LinkEnd
from ringleaf.networks.live.processes import (
    Child,
    ended_like_interrupts,
    identify,
    is_running,
    kill,
)
from ringleaf.networks.mininet import preflight, state
from ringleaf.networks.mininet.fabric import MininetFabric
from ringleaf.networks.mininet.programming import in_child
from ringleaf.networks.mininet.runtime import interface_name
from ringleaf.networks.mininet.send_buffers import give_room
from ringleaf.networks.mininet.shaping import (
    disciplines,
    host_disciplines,
    netem_options,
    unshaped,
)

LINE = LinkEnd("r1a2b-s0-1", 100 * 10**6, 5 * PS_PER_MS, 0.01, 1 << 20)


def test_all_that_is_missing_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)

    with pytest.raises(ConfigError) as caught:
        preflight.check_machine(bmv2=True, interactive=True)

    for line in (
        "root: run it with sudo",
        "mnexec: apt install mininet",
        "tc: apt install iproute2",
        "ip: apt install iproute2",
        "ethtool: apt install ethtool",
        "ping: apt install iputils-ping",
        "simple_switch_grpc: https://",
    ):
        assert f"\n  {line}" in str(caught.value)


def test_users_need_not_have_roots_programs_on_their_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(preflight, "SYSTEM_PATH", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    for name in {*preflight.PROGRAMS} - {"ethtool"}:
        (tmp_path / name).symlink_to("/bin/true")

    with pytest.raises(ConfigError) as caught:
        preflight.check_machine()

    _, *lines = str(caught.value).split("\n")
    assert lines == ["  root: run it with sudo", "  ethtool: apt install ethtool"]


@pytest.mark.parametrize("absent", ["mnexec", "ip", "ethtool", "ifconfig", "tc", "ping"])
def test_a_program_that_is_not_on_the_path_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absent: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name in {*preflight.PROGRAMS, "tc", "ping", "simple_switch_grpc"} - {absent}:
        (tmp_path / name).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ConfigError) as caught:
        preflight.check_machine(bmv2=True, interactive=True)

    (_, line) = str(caught.value).split("\n")
    assert line.startswith(f"  {absent}: apt install ")


@pytest.mark.parametrize(("bmv2", "wanted", "named"), [
    (True, "delay 5000us", ["htb", "netem"]),
    (True, None, ["htb"]),
    (False, "delay 5000us", []),
])  # fmt: skip
def test_disciplines_are_needed_only_by_bmv2(
    monkeypatch: pytest.MonkeyPatch, bmv2: bool, wanted: str | None, named: list[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(preflight, "_try", lambda *command: command[0] == "ip")

    try:
        preflight.check_machine(bmv2=bmv2, netem_for=wanted)
        text = ""
    except ConfigError as error:
        text = str(error)

    assert [name for name in ("htb", "netem") if f"\n  {name} (" in text] == named
    assert (not named) == (not text)


def test_roots_in_containers_need_more_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be tried there: unshare(2) and rtnetlink(7) answer EPERM, whatever there is."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(preflight, "_try", lambda *command: False)

    with pytest.raises(ConfigError) as caught:
        preflight.check_machine(bmv2=True, netem_for="delay 5000us")

    _, *lines = str(caught.value).split("\n")
    assert [line.endswith("start the container with --privileged") for line in lines] == [True]


@pytest.mark.parametrize(("node", "port", "name"), [
    ("h0", 0, "r1a2b-h0-eth0"),
    ("h999", 0, "r1a2b-h999-eth0"),
    ("h1000", 0, "r1a2b-h1000-0"),  # 15 characters are the most
    ("s0", 1, "r1a2b-s0-1"),
])  # fmt: skip
def test_hosts_have_interfaces_that_scripts_for_mininet_know(
    node: str, port: int, name: str
) -> None:
    """`send.py` and `receive.py` of P4's tutorials look for "eth0" in interfaces' names."""
    assert interface_name("r1a2b", node, port) == name


def test_lines_become_disciplines() -> None:
    assert netem_options(LINE) == "delay 5000us loss 1.000000%"
    assert netem_options(LinkEnd("x", 1, 99 * PS_PER_US)) == ""
    plain = disciplines(LinkEnd("x", 8 * 10**9), priorities=False)
    assert plain == [
        "qdisc add dev x root handle 2: htb default 1",
        "class add dev x parent 2: classid 2:1 htb rate 8000000000bit ceil 8000000000bit "
        "burst 1000000 cburst 1000000",
        f"qdisc add dev x parent 2:1 handle 20: bfifo limit {4 << 20}",
    ]
    sorted_out = disciplines(LINE, priorities=True)
    assert [c.split("parent ")[1].split()[0] for c in sorted_out[2:5]] == ["2:1", "2:10", "10:1"]
    for selector in range(8):
        leaf = f"2:1{selector}"
        (made,) = (c for c in sorted_out if f"classid {leaf} " in c)
        assert made.endswith(f" prio {7 - selector}")
        assert any(f"dsfield {selector << 5:#04x} 0xe0 flowid {leaf}" in c for c in sorted_out)


QUEUE = f"bfifo limit {1 << 20}"
NETEM = "netem delay 5000us loss 1.000000% limit 1000000"


@pytest.mark.parametrize(
    ("there", "last", "lacks"),
    [
        ({"htb", "netem"}, [f"2:1 handle 10: {NETEM}", f"10:1 handle 20: {QUEUE}"], ""),
        ({"htb"}, [f"2:1 handle 20: {QUEUE}"], "without delay 5000us loss 1.000000%: this kernel"),
        (set(), [], "no rate, delay or loss up to their first switch: this kernel lacks the"),
    ],
)
def test_hosts_send_by_their_links_as_far_as_the_kernel_can(
    there: set[str], last: list[str], lacks: str
) -> None:
    commands = host_disciplines(LINE, there)

    assert [each.split(" parent ")[1] for each in commands[2:]] == last
    assert ["rate 100000000bit" in each for each in commands[1:2]] == [True] * bool(there)
    assert lacks in unshaped(LINE, there)
    assert bool(unshaped(LINE, there)) == bool(lacks)


def test_a_link_without_delay_and_loss_needs_no_netem() -> None:
    assert unshaped(LinkEnd("x", 10**9, PS_PER_US), {"htb"}) == ""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(state, "RUNTIME", tmp_path)
    return tmp_path


def test_only_networks_without_an_owner_are_cleaned(folder: Path) -> None:
    own = state.new_record()
    lost = state.new_record()
    pid, start = identify(os.getpid())
    lost.owner = (pid, start + 1)  # the number is taken by another process since
    lost.processes["s0"] = lost.owner
    lost.interfaces = {"lo": 0, "eth0": 1 << 30}  # not by that name, not by that index
    lost.files = [str(folder / "socket")]
    (folder / "socket").touch()
    lost.save()

    assert state.clean_stale() == [lost.name]
    assert [record.name for record in state.records()] == [own.name]
    assert Path("/sys/class/net/lo").exists()
    assert {path.name for path in folder.iterdir()} == {"lock", own.path.name}


def test_records_of_other_versions_are_read(folder: Path) -> None:
    own = state.new_record()
    own.path.write_text(json.dumps({**json.loads(own.path.read_text()), "added_later": 1}))

    assert state.records() == [own]


def test_a_number_that_another_process_has_got_is_not_killed() -> None:
    pid, start = identify(os.getpid())

    assert is_running((pid, start))
    assert not is_running((pid, start + 1))
    assert not kill((pid, start + 1))


def test_a_switch_that_ends_is_named_at_once_while_all_are_programmed(tmp_path: Path) -> None:
    """The work would go on for a minute, as for a switch that does not answer."""
    switch = Child("s0", ["sh", "-c", "echo no such port; exit 3"], tmp_path / "s0.log")
    began_s = time.monotonic()
    with pytest.raises(BackendError, match=r"s0: has ended, got status 3; see .*\n  no such port"):
        in_child(lambda: time.sleep(60), [switch])
    assert time.monotonic() - began_s < 30
    switch.stop()


def test_a_daemon_that_answers_no_more_has_ended_a_little_later(tmp_path: Path) -> None:
    """When it is killed, the kernel closes its sockets first."""
    control = tmp_path / "c"
    code = (
        "import socket, time; s = socket.socket(socket.AF_UNIX); "
        f"s.bind({str(control)!r}); s.listen(); c, _ = s.accept(); c.recv(99); c.close(); "
        "time.sleep(0.2); raise SystemExit(3)"
    )
    daemon = Child("switch daemon", [sys.executable, "-c", code], tmp_path / "log")
    commands = DaemonCommands(control, daemon)

    with pytest.raises(BackendError, match="switch daemon: has ended, got status 3; see "):
        commands.ask("counters")

    commands.close()
    daemon.stop()


def test_an_interface_that_is_gone_is_named_with_its_switch() -> None:
    """Not as a file of sysfs, which nobody has named."""
    switch = SimpleNamespace(name="s0", lines=[LinkEnd("r1a2b-s0-1", 1)])
    shell = SimpleNamespace(poll=lambda: None)
    fabric: Any = object.__new__(MininetFabric)
    fabric._runtime = SimpleNamespace(counters=lambda: {"s0": [{}]}, check=lambda: None)
    fabric.net = SimpleNamespace(switches=[switch], hosts=[SimpleNamespace(name="h1", shell=shell)])
    with pytest.raises(BackendError, match="s0: an interface is gone, got 'r1a2b-s0-1'; run it"):
        fabric.counters()

    shell.poll = lambda: -9
    with pytest.raises(BackendError, match="h1: its shell has ended, got status -9"):
        fabric.counters()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_end_like_interrupts(number: signal.Signals) -> None:
    before = signal.getsignal(number)

    with pytest.raises(KeyboardInterrupt), ended_like_interrupts():
        signal.raise_signal(number)

    assert signal.getsignal(number) is before


def test_interfaces_are_ours_by_name_or_index() -> None:
    index = int(Path("/sys/class/net/lo/ifindex").read_text())

    assert state.is_ours("r1a2b", "lo", index)
    assert not state.is_ours("r1a2b", "lo", index + 1)
    assert not state.is_ours("r1a2b", "lo", 0)
    assert not state.is_ours("r1a2b", "r1a2b-s0-1", 0)  # it isn't there


def test_the_shell_finds_live_switches_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, start = identify(os.getpid())
    monkeypatch.setattr(shell, "state_folders", lambda: [tmp_path, tmp_path / "none"])
    for name, begun in (("ra", start), ("rb", start), ("rc", start + 1)):
        record: dict[str, Any] = {"name": name, "owner": [pid, begun]}
        record["switches"] = {"s1": f"127.0.0.1:1/{len(name)}", f"s_{name}": "127.0.0.1:2/3"}
        (tmp_path / f"{name}.json").write_text(json.dumps(record))

    assert set(shell.find_live("s1")) == {"ra/s1", "rb/s1"}
    assert shell.find_live("ra/s_ra") == shell.find_live("s_ra") == {"ra/s_ra": "127.0.0.1:2/3"}
    assert shell.find_live("s_rc") == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for packet sockets")
def test_packet_sockets_get_room_and_others_none() -> None:
    option = (socket.SOL_SOCKET, socket.SO_SNDBUF)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as ours, socket.socket() as other:
        before = ours.getsockopt(*option), other.getsockopt(*option)
        give_room(os.getpid())

        assert ours.getsockopt(*option) > 100 * before[0]
        assert other.getsockopt(*option) == before[1]
