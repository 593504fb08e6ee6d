"""Packets per second that a switch forwards between two namespaces: our switch, and BMv2's.

Both run the same P4 program on the same two veth pairs, one after the other, with the same
niceness, and get the same frames from the same sender, which has one processor, while a switch may
use all. Only frames that arrive at the other end count. The offered load is raised as long as
nearly all of it arrives (RFC 2544, section 26.1, which wants all of it; but here sender, switch and
kernel share processors with other processes). BMv2 loses 0.1 to 2 % in bursts at loads of a third
of what it forwards, so a stricter search stops there or goes on by chance.

What is forwarded depends on who else has the processors, and BMv2, which has four threads, suffers
more from that. So the processor time of a switch's process for each packet is told as well: it
includes the kernel's for what that process sends, up to the receiver, as that is done at once.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.environment import environment
from bench.loads import build_path, sized_frame
from ringleaf.errors import BackendError, ConfigError
from ringleaf.networks.forwarding import forwarding_entities
from ringleaf.switches.bmv2.build import beside, build_name
from ringleaf.topologies.registry import build

SIMPLE_SWITCH = "simple_switch"
SIZES_BYTES = (300, 1500)
TRIAL_S = 1.0
LOSS_ALLOWED = 0.01
TRIALS = 3  # of a load, the best of which counts
STEP = 1.5
CLOSE = 0.05  # the search ends when the lossy and the lossless load are that near
LEAST_PPS = 4000.0

_RATE_BPS = 10**12  # of the lines: no limit
_PATIENCE_S = 120.0
_POLL_S = 0.01
_QUIET_S = 0.1  # after so long without a frame, all have come


@dataclass(frozen=True, slots=True)
class LiveSpeed:
    """The packets per second that arrived."""

    forwarded_pps: float  # at the highest load that nearly all arrived of
    peak_pps: float  # at any load
    used_ns: float = 0.0  # the switch's processor time for a packet, at the former


@dataclass(frozen=True, slots=True)
class Trial:
    """One load: the packets per second that were sent, and that arrived."""

    offered_pps: float
    arrived_pps: float
    lost: float  # of those sent
    used_ns: float = 0.0  # the switch's processor time for a packet that arrived

    @property
    def is_fine(self) -> bool:
        return self.lost <= LOSS_ALLOWED


class End:
    """The bench's handle of a station: its process, and its commands."""

    def __init__(self, name: str) -> None:
        self.name = name
        command = ["mnexec", "-n", sys.executable, "-P", "-m"]
        command += ["bench.station", name]
        self._process = subprocess.Popen(
            command,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = int(self._hear()["ready"])

    def ask(self, command: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({command: arguments}) + "\n")
        self._process.stdin.flush()
        return self._hear()

    def close(self) -> None:
        """Kill the station's process; its namespace goes with it, and all interfaces inside."""
        self._process.kill()
        self._process.communicate()

    def _hear(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise BackendError(f"bench: station {self.name} has ended, got {self._process.wait()}")
        return json.loads(line)


class VethPairs:
    """Two veth pairs, each with one end here and one at a station; a context manager."""

    def __init__(self) -> None:
        self.interfaces = [f"rb{os.getpid()}p{number}" for number in (1, 2)]
        self._stack = ExitStack()
        self.ends: list[End] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for interface in self.interfaces:
                end = End("eth0")
                stack.callback(end.close)
                self.ends.append(end)
                _ip("link", "add", interface, "type", "veth", "peer", "eth0", "netns", str(end.pid))
                # a namespace goes when its last process does, but not at once
                stack.callback(_ip, "link", "delete", "dev", interface)
                off = Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6")
                if off.exists():
                    off.write_text("1")
                _ip("link", "set", "dev", interface, "mtu", "9000", "up")
                end.ask("open")
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()


def _ip(*words: str) -> None:
    done = subprocess.run(("ip", *words), capture_output=True, text=True, check=False)
    if done.returncode:
        raise BackendError(f"bench: ip {' '.join(words)}: {done.stderr.strip()}")


def await_forwarding(wires: VethPairs, frame: bytes) -> None:
    """Wait until the switch takes a frame from end to end, with its data unchanged.

    Raises:
        BackendError: If it doesn't, or changes the data.
    """
    sender, receiver = wires.ends
    receiver.ask("listen")
    deadline_s = time.monotonic() + _PATIENCE_S
    heard = ""
    while not heard:
        if time.monotonic() > deadline_s:
            raise BackendError(
                f"bench: the switch must forward frames, got none in {_PATIENCE_S} s"
            )
        sender.ask("send", frame=frame.hex(), rate_pps=100.0, duration_s=0.005)
        heard = receiver.ask("hear", timeout_s=0.5)
    receiver.ask("ignore")
    if bytes.fromhex(heard)[42:] != frame[42:]:
        raise BackendError(f"bench: the switch has changed a packet's data, got {heard}")


def used_ns(pid: int) -> int:
    """Return the processor time of all threads of a process so far."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in tasks)


def try_load(wires: VethPairs, frame: bytes, rate_pps: float, *, seconds: float, pid: int) -> Trial:
    """Offer one load, and count frames until no more arrive; `pid` is the switch's process."""
    sender, receiver = wires.ends
    before, used_before_ns = receiver.ask("count"), used_ns(pid)
    sent, began_s, _ = sender.ask("send", frame=frame.hex(), rate_pps=rate_pps, duration_s=seconds)
    arrived, changed_s = receiver.ask("count"), time.monotonic()
    while time.monotonic() - changed_s < _QUIET_S:
        time.sleep(_POLL_S)
        now = receiver.ask("count")
        if now != arrived:
            arrived, changed_s = now, time.monotonic()
    arrived -= before
    return Trial(
        sent / seconds,
        arrived / max(changed_s - began_s, seconds),
        1 - arrived / sent,
        (used_ns(pid) - used_before_ns) / max(arrived, 1),
    )


def search(attempt: Callable[[float], Trial], *, least_pps: float = LEAST_PPS) -> LiveSpeed:
    """Raise the load until packets are lost, then close in on the most that is forwarded."""
    good, bad, peak = 0.0, 0.0, 0.0
    best = Trial(0.0, 0.0, 0.0)
    rate = least_pps
    while not bad or (bad - good > CLOSE * bad and bad > least_pps / 8):
        trial = attempt(rate)
        for _ in range(TRIALS - 1):
            if trial.is_fine and trial.offered_pps >= rate / STEP:
                break
            # once more, as the machine is busy otherwise now and then
            again = attempt(rate)
            trial = max(trial, again, key=lambda it: (it.offered_pps >= rate / STEP, -it.lost))
        peak = max(peak, trial.arrived_pps)
        if trial.is_fine:
            good, best = rate, max(best, trial, key=lambda it: it.arrived_pps)
            if trial.offered_pps < rate / STEP:
                break  # the sender can't send more
        else:
            bad = rate
        rate = (good + bad) / 2 if bad else rate * STEP
    return LiveSpeed(best.arrived_pps, peak, best.used_ns)


@contextmanager
def embedded(wires: VethPairs, program: Path, entities: list[Any], folder: Path) -> Iterator[int]:
    """Run our own switch, the daemon that live networks have; yield its process's number."""
    from ringleaf.networks.live.client import Daemon
    from ringleaf.networks.live.engine import LinkEnd
    from ringleaf.networks.mininet.programming import SwitchProgramming, program_switches

    with Daemon(folder / "control", folder / "daemon.log") as daemon:
        daemon.add({"s0": (1, [LinkEnd(name, _RATE_BPS) for name in wires.interfaces])})
        info = program.with_suffix(".p4info.txtpb")
        program_switches([SwitchProgramming("s0", daemon.address, 1, program, info, entities)])
        yield daemon.process.pid


@contextmanager
def simple_switch(
    wires: VethPairs, program: Path, entities: list[Any], folder: Path
) -> Iterator[int]:
    """Run BMv2, without logs; yield its process's number."""
    from ringleaf.networks.live.processes import Child

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        thrift = str(probe.getsockname()[1])
    ports = [w for n, i in enumerate(wires.interfaces, 1) for w in ("-i", f"{n}@{i}")]
    command = [SIMPLE_SWITCH, "-L", "off", "--thrift-port", thrift, *ports, str(program)]
    switch = Child(SIMPLE_SWITCH, command, folder / "bmv2.log", urgent=True)
    try:
        lines = commands(program, entities)
        deadline_s = time.monotonic() + _PATIENCE_S
        while not _tell(thrift, lines):
            switch.check()
            if time.monotonic() > deadline_s:
                raise BackendError(f"bench: {SIMPLE_SWITCH} takes no commands; see {switch.log}")
        yield switch.pid
    finally:
        switch.stop()


def _tell(thrift: str, lines: list[str]) -> bool:
    """Give BMv2 its entries; return False if it doesn't listen yet."""
    done = subprocess.run(
        ("simple_switch_CLI", "--thrift-port", thrift),
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode == 0 and "Could not connect" not in done.stdout + done.stderr


def commands(program: Path, entities: list[Any]) -> list[str]:
    """Return P4Runtime entities as lines of BMv2's command line."""
    from ringleaf.switches.bmv2.commands import CommandWriter
    from ringleaf.switches.program import Program
    from ringleaf.switches.switch import Switch

    told: list[Any] = []

    class Recorder(Switch):
        def apply(self, updates: Any, *, commit: bool = True) -> None:
            known = list(updates)
            told.extend(known)
            super().apply(known, commit=commit)

    loaded = Program.load(program)
    Recorder.alone(loaded, ports=8).write(entities)
    writer = CommandWriter(loaded)
    return [line for update in told for line in writer.lines(update)]


SWITCHES: Mapping[str, Any] = {"embedded": embedded, SIMPLE_SWITCH: simple_switch}


def run(emit: Callable[[str], None], *, seconds: float = TRIAL_S) -> dict[str, Any]:
    """Measure both switches with frames of each size, and print a table.

    Raises:
        ConfigError: If this process may not make interfaces.
        BackendError: If a switch doesn't start, or forwards nothing.
    """
    if os.geteuid() != 0 or not all(shutil.which(name) for name in ("mnexec", "ethtool")):
        raise ConfigError("bench: pps needs network namespaces, got no root, mnexec or ethtool")
    emit("#\n# one switch between two namespaces, forward.p4, AF_PACKET, wall clock: packets/s")
    emit(
        f"# that arrive of the most that is offered with at most {LOSS_ALLOWED:.0%} lost; "
        "peak: at any load; ns: processor"
    )
    emit("# time of the switch for each packet, up to the receiver")
    known = {name: make for name, make in SWITCHES.items() if name == "embedded" or _has_bmv2()}
    emit(f"# {beside(SIMPLE_SWITCH, is_there=SIMPLE_SWITCH in known)}")
    emit(
        f"{'switch':>14} {'bytes':>6} {'packets/s':>10} {'Mbit/s':>8} {'peak':>10} {'x BMv2':>7} "
        f"{'ns':>7} {'of BMv2':>8}"
    )
    speeds = measure(known, seconds=seconds)
    figures: dict[str, Any] = {}
    if SIMPLE_SWITCH in known:
        figures[f"{SIMPLE_SWITCH} build"] = build_name(SIMPLE_SWITCH)
    for (name, size), speed in speeds.items():
        other = speeds.get((SIMPLE_SWITCH, size))
        times = of = "-"
        if other is not None:
            times = f"{speed.forwarded_pps / other.forwarded_pps:.1f}"
            of = f"{speed.used_ns / other.used_ns:.1%}"
        emit(
            f"{name:>14} {size:>6} {speed.forwarded_pps:>10.0f} "
            f"{speed.forwarded_pps * size * 8 / 1e6:>8.0f} {speed.peak_pps:>10.0f} {times:>7} "
            f"{speed.used_ns:>7.0f} {of:>8}"
        )
        figures[f"{name} {size}"] = asdict(speed)
    return figures


def measure(known: Mapping[str, Any], *, seconds: float) -> dict[tuple[str, int], LiveSpeed]:
    """Return each switch's speed by frame size, all on the same wires."""
    graph = build("leafspine,leaves=1,spines=1,hosts=2")
    program, entities = build_path("forward"), list(forwarding_entities(graph)["s0"])
    speeds = {}
    with VethPairs() as wires, tempfile.TemporaryDirectory(prefix="ringleaf-") as folder:
        for name, make in known.items():
            with make(wires, program, entities, Path(folder)) as pid:
                for size in SIZES_BYTES:
                    frame = sized_frame(graph, "h0", "h1", size)
                    await_forwarding(wires, frame)
                    speeds[name, size] = search(
                        partial(try_load, wires, frame, seconds=seconds, pid=pid)
                    )
    return speeds


def _has_bmv2() -> bool:
    return all(shutil.which(name) for name in (SIMPLE_SWITCH, "simple_switch_CLI"))
