"""Live networks through real commands, as root: pings through P4, and nothing left in the end."""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from networks.live.processes import Identity, identify, is_running
from networks.mininet.preflight import check_machine
from networks.mininet.state import INTERFACES, clean_stale, runtime_dir
from ringleaf.errors import ConfigError
from switches import bmv2

ROOT = Path(__file__).resolve().parents[2]
TOPO = "leafspine,leaves=2,spines=2,hosts=2"
ALL_PAIRS = "0% dropped (12/12 received)"
CLI = [sys.executable, "-m", "experiments.cli", "net"]
PATIENCE_S = 200  # a new machine compiles first


def why_not() -> str | None:
    """What is missing here, if anything."""
    try:
        check_machine(interactive=True)
    except ConfigError as error:
        return " ".join(str(error).split())
    return None


MISSING = why_not()
pytestmark = [pytest.mark.live, pytest.mark.skipif(MISSING is not None, reason=str(MISSING))]
BOTH = [
    "embedded",
    pytest.param(
        "bmv2",
        marks=[
            pytest.mark.bmv2,
            pytest.mark.skipif(not bmv2.is_there(), reason="BMv2 is not installed"),
        ],
    ),
]


def run(*command: str, text: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        input=text,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def heed_interrupts() -> None:
    """A process started in the background, as a CI job may be, has its interrupts ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Running:
    """A network that `ringleaf net` runs, with commands to come."""

    def __init__(self, switch: str) -> None:
        self.process = subprocess.Popen(
            [*CLI, TOPO, "--switch", switch],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=heed_interrupts,
        )
        line = self.read_line()
        match = re.match(r"# (r\w+): 4 hosts, 4 switches", line)
        assert match, line
        self.name = match[1]
        record = json.loads(self.state.read_text())
        self.processes: dict[str, Identity] = {
            name: (pid, start) for name, (pid, start) in record["processes"].items()
        }

    @property
    def state(self) -> Path:
        return runtime_dir() / f"{self.name}.json"

    def read_line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline()

    def write(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def end(self, number: int | None = None) -> tuple[int, str]:
        """Send a signal, or close the input; return exit code and what it has printed."""
        if number is not None:
            self.process.send_signal(number)
        output, _ = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, output

    def left(self) -> list[str]:
        """What there still is of it."""
        interfaces = [
            each.name for each in INTERFACES.iterdir() if each.name.startswith(f"{self.name}-")
        ]
        processes = [name for name, identity in self.processes.items() if is_running(identity)]
        files = [path.name for path in runtime_dir().glob(f"{self.name}*")]
        return [*interfaces, *processes, *files]


@contextlib.contextmanager
def running(switch: str) -> Iterator[Running]:
    """A network; whatever a test does with it, it is gone in the end."""
    network = Running(switch)
    try:
        yield network
    finally:
        network.process.kill()
        network.process.wait()
        clean_stale()
        for pipe in (network.process.stdin, network.process.stdout):
            assert pipe
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


@pytest.fixture
def foreign() -> Iterator[tuple[str, Identity]]:
    """A veth and a namespace with a process that are not ours."""
    name = f"f{os.getpid()}"
    add = ["ip", "link", "add", "name", f"{name}a", "type", "veth", "peer", "name", f"{name}b"]
    subprocess.run(add, check=True)
    with subprocess.Popen(["mnexec", "-n", "cat"], stdin=subprocess.PIPE) as process:
        yield f"{name}a", identify(process.pid)
        process.kill()
    subprocess.run(["ip", "link", "delete", "dev", f"{name}a"], check=True)


@pytest.mark.parametrize("switch", BOTH)
def test_all_pairs_ping_through_p4(switch: str) -> None:
    with running(switch) as network:
        assert network.left()
        network.write("pingall")
        code, output = network.end()

        assert ALL_PAIRS in output
        assert code == 0
        assert network.left() == []


@pytest.mark.parametrize("switch", BOTH)
def test_interfaces_carry_frames_as_they_are(switch: str) -> None:
    with running(switch) as network:
        inside = f"{network.name}-h0-0"
        network.write(f"h0 ip link show dev {inside}; ethtool -k {inside}; cat /proc/net/if_inet6")
        network.write("h0 ip neighbour show")
        _, output = network.end()

        assert "mtu 9000" in output
        for offload in ("tx-checksumming", "rx-checksumming", "generic-receive-offload"):
            assert f"{offload}: off" in output
        assert inside not in output.rpartition("link")[0].partition("fe80")[2]
        assert "10.0.1.2 dev" in output
        assert output.count("PERMANENT") == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_leave_nothing(number: int) -> None:
    with running("embedded") as network:
        code, _ = network.end(number)

        assert code == 130
        assert network.left() == []


@pytest.mark.parametrize("switch", BOTH)
def test_clean_removes_all_of_a_killed_network_and_nothing_else(
    switch: str, foreign: tuple[str, Identity]
) -> None:
    with running(switch) as other, running(switch) as network:
        network.write("h1 sleep 12345 &")
        network.write("h1 echo sleeper $!")
        while not (found := re.match(r"sleeper (\d+)", network.read_line())):
            pass
        sleeper = identify(int(found[1]))
        network.end(signal.SIGKILL)
        assert network.left()

        done = run(*CLI, "clean")

        assert f"# {network.name}: removed" in done.stdout
        assert f"# {other.name}: process {other.process.pid} runs it" in done.stdout
        assert network.left() == []
        assert not is_running(sleeper)
        veth, stranger = foreign
        assert (INTERFACES / veth).exists()
        assert is_running(stranger)
        other.write("pingall")
        assert ALL_PAIRS in other.end()[1]


def test_the_next_start_removes_what_a_killed_network_left() -> None:
    with running("embedded") as network:
        network.end(signal.SIGKILL)
        with running("embedded"):
            assert network.left() == []


@pytest.mark.parametrize(("switch", "victim"), [("embedded", "switch daemon"), ("bmv2", "s1")])
def test_a_switch_that_ends_is_named(switch: str, victim: str) -> None:
    if switch == "bmv2" and not bmv2.is_there():
        pytest.skip("BMv2 is not installed")
    with running(switch) as network:
        descriptor = os.pidfd_open(network.processes[victim][0])
        os.kill(network.processes[victim][0], signal.SIGKILL)
        select.select([descriptor], [], [], PATIENCE_S)
        os.close(descriptor)
        code, output = network.end()

        assert f"ringleaf: {victim}: has ended, got signal 9; see " in output
        assert code == 1
        assert network.left() == []


PROGRAM_TWICE = """
from pathlib import Path
from networks.mininet.fabric import Fabric, Settings
from switches.forwarding import forwarding_entities
from topologies.registry import build

graph = build({topo!r}, rate_bps=10**11, delay_ps=0)
forward, other = Path("p4/build/forward.json"), Path("p4/build/switchml-64.json")
entities = forwarding_entities(graph)
settings = Settings(switch={switch!r}, run_dir=Path({folder!r}))
with Fabric(graph, settings, program=forward, entities=entities) as fabric:
    ping = f"ping -c 1 -W 5 {{fabric.net['h3'].IP()}}"
    assert fabric.rate_bps("h0", "s0") == 10**8
    assert set(fabric.watched().values()) == set({names!r})
    for program, known in ((forward, entities), (other, entities), (forward, {{}})):
        fabric.program(program, entities=known)
        print("1 received" in fabric.net["h0"].cmd(ping))
    fabric.check()
    sent = [port["tx_packets"] for port in fabric.counters()["s0"]]
    print(len(sent), sent[0])
"""


@pytest.mark.parametrize("switch", BOTH)
def test_programs_are_replaced_with_all_they_hold(switch: str, tmp_path: Path) -> None:
    names = ["switch daemon"] if switch == "embedded" else ["s0", "s1", "s2", "s3"]
    code = PROGRAM_TWICE.format(topo=TOPO, switch=switch, folder=str(tmp_path), names=names)

    done = run(sys.executable, "-c", code)

    assert done.stdout.split() == ["True", "True", "False", "4", "2"], done.stderr
    assert list(tmp_path.glob("*.log"))


@pytest.mark.parametrize("switch", BOTH)
def test_mininets_own_command_takes_our_switches(switch: str) -> None:
    """In namespaces of its own: when `mn` fails it kills all it takes for Mininet's."""
    scripts = Path(sys.executable).parent
    mn = (
        f"{scripts}/python {scripts}/mn --custom networks/mininet/custom.py --controller none "
        f"--topo {TOPO} --switch {switch} --test pingall"
    )
    prepare = "ip link set lo up && mkdir -p /run/ringleaf && mount -t tmpfs none /run/ringleaf"
    apart = ["unshare", "--net", "--pid", "--fork", "--mount", "--mount-proc"]

    done = run(*apart, "sh", "-c", f"{prepare} && {mn} && ls /run/ringleaf /sys/class/net")

    assert ALL_PAIRS in done.stderr, done.stderr
    assert set(done.stdout.split()) <= {"/run/ringleaf:", "lock", "/sys/class/net:", "lo"} | {
        each.name for each in INTERFACES.iterdir()
    }


def test_delays_with_bmv2_need_netem() -> None:
    done = run(*CLI, TOPO, "--switch", "bmv2", "--delay", "5ms", text="pingall\n")

    assert (
        ALL_PAIRS in done.stderr
        or "netem (a queueing discipline, for delay 5000us with BMv2)" in (done.stderr)
    )
