"""Live networks through real commands, as root: pings through P4, and nothing left in the end."""

import contextlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_commands import BOTH, COMMAND, PATIENCE_S, Leavings, end, run, start, strangers

from ringleaf.networks.live.processes import identify, is_running
from ringleaf.networks.mininet.preflight import shaping_disciplines
from ringleaf.networks.mininet.state import INTERFACES, clean_stale

TOPO = "leafspine,leaves=2,spines=2,hosts=2"
ALL_PAIRS = "0% dropped (12/12 received)"
CLI = [*COMMAND, "net"]
pytestmark = pytest.mark.live


class Running(Leavings):
    """A network that `ringleaf net` runs, with commands to come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        lines = iter(self.read_line, "")
        line = next(line for line in lines if not line.startswith("ringleaf: "))  # a warning
        assert re.match(r"# r\w+: 4 hosts, 4 switches", line), line
        super().__init__(process.pid)

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


@contextlib.contextmanager
def running(switch: str) -> Iterator[Running]:
    """A network; whatever a test does with it, it is gone in the end."""
    process = start("net", TOPO, "--switch", switch)
    try:
        yield Running(process)
    finally:
        end(process)
        clean_stale()


def test_programs_of_ones_own_run_on_hosts_and_end_with_the_network() -> None:
    """As `ringleaf net --help` says: in the background, by a host's name, from another terminal."""
    server = "import socket; s = socket.create_server(('', 7000)); s.accept()[0].send(b'hello, h3')"
    client = "import socket, sys; print(socket.create_connection((sys.argv[1], 7000)).recv(9))"
    with running("embedded") as network:
        network.write(f'h0 {sys.executable} -c "{server}" &')
        network.write("h2 sleep 3600 &")
        network.write("h0 until ss -tln | grep -q :7000; do sleep 0.1; done; echo listening")
        while "listening" not in network.read_line():
            pass
        shells = run("pgrep", "-f", "mininet:h3$").stdout.split()  # of other networks, too
        addresses = [run("mnexec", "-a", shell, "ip", "-4", "addr").stdout for shell in shells]
        network.write(f'h3 {sys.executable} -c "{client}" h0')
        code, output = network.end()

        assert "b'hello, h3'" in output
        assert sum(f"{network.name}-h3-eth0" in text for text in addresses) == 1
        assert (code, network.left()) == (0, [])


def test_what_a_host_sends_takes_its_links_rate() -> None:
    """One that sends to three others would else send three times as much as its link carries."""
    if "htb" not in shaping_disciplines():
        pytest.skip("the kernel lacks htb")
    classes = "h0 tc class show dev $(ls /sys/class/net | grep eth0)\n"
    done = run(*CLI, TOPO, "--rate", "12M", text=classes)

    assert " rate 12Mbit ceil 12Mbit " in done.stderr


@pytest.mark.parametrize("switch", BOTH)
def test_all_pairs_ping_through_p4(switch: str) -> None:
    with running(switch) as network:
        assert network.left()
        inside = f"{network.name}-h0-eth0"
        network.write(f"h0 ip link show dev {inside}; ethtool -k {inside}; cat /proc/net/if_inet6")
        network.write("h0 ip neighbour show")
        network.write("pingall")
        code, output = network.end()

        assert ALL_PAIRS in output
        assert code == 0
        assert network.left() == []
        assert "mtu 9000" in output
        for offload in ("tx-checksumming", "rx-checksumming", "generic-receive-offload"):
            assert f"{offload}: off" in output
        assert inside not in output.rpartition("link")[0].partition("fe80")[2]
        assert "10.0.1.2 dev" in output
        assert output.count("PERMANENT") == 3


def test_to_be_told_to_end_leaves_nothing() -> None:
    with running("embedded") as network:
        code, _ = network.end(signal.SIGTERM)

        assert code == 143
        assert network.left() == []


@pytest.mark.parametrize("switch", BOTH)
def test_clean_removes_all_of_a_killed_network_and_nothing_else(
    switch: str,
) -> None:
    with strangers() as foreign, running(switch) as other, running(switch) as network:
        network.write("h1 sleep 12345 &")
        network.write("h1 echo sleeper $!")
        while not (found := re.match(r"sleeper (\d+)", network.read_line())):
            pass
        sleeper = identify(int(found[1]))
        network.end(signal.SIGKILL)
        assert network.left()

        done = run(*CLI, "clean")

        told = [line for line in done.stdout.splitlines() if network.name in line]
        # A network that another test starts meanwhile removes the dead one, too.
        assert told in ([f"# {network.name}: removed"], [])
        assert f"# {other.name}: process {other.process.pid} runs it" in done.stdout
        assert network.left() == []
        assert not is_running(sleeper)
        assert foreign.untouched()
        other.write("pingall")
        assert ALL_PAIRS in other.end()[1]


PROGRAM_TWICE = """
from pathlib import Path
from ringleaf.networks.mininet.fabric import LiveSettings, MininetFabric
from ringleaf.networks.forwarding import forwarding_entities
from ringleaf.topologies.registry import build

graph = build({topo!r}, rate_bps=10**11, delay_ps=0)
forward, other = Path("p4/build/forward.json"), Path("p4/build/switchml-64.json")
entities = forwarding_entities(graph)
settings = LiveSettings(switch={switch!r}, run_dir=Path({folder!r}))
with MininetFabric(graph, settings, program=forward, entities=entities) as fabric:
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


BACKLOG = """
import socket
import subprocess
import sys
from pathlib import Path
from ringleaf.networks.mininet.fabric import LiveSettings, MininetFabric
from ringleaf.networks.forwarding import forwarding_entities
from ringleaf.topologies.registry import build

RECEIVE = '''
import socket
endpoint = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
endpoint.bind(("", 4000))
print("ready", flush=True)
print(*(endpoint.recv(2000)[0] for _ in range(12)))
'''
SEND = '''
import socket
import sys
ways = {selector: socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for selector in (0, 5, 7)}
for selector, way in ways.items():
    way.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, selector << 5)
for number, selector in enumerate([0] * 8 + [5] * 2 + [7] * 2):
    ways[selector].sendto(bytes([number]) + bytes(999), (sys.argv[1], 4000))
'''

graph = build("leafspine,leaves=1,spines=0,hosts=2", rate_bps=40_000, delay_ps=0)
settings = LiveSettings(switch=sys.argv[1], scale=1, run_dir=Path(sys.argv[2]))
program = Path("p4/build/forward.json")
with MininetFabric(graph, settings, program=program, entities=forwarding_entities(graph)) as fabric:
    sender, receiver = fabric.net["h0"], fabric.net["h1"]
    pipe = {"stdout": subprocess.PIPE, "text": True}
    listening = receiver.popen([sys.executable, "-c", RECEIVE], **pipe)
    listening.stdout.readline()
    sender.popen([sys.executable, "-c", SEND, receiver.IP()]).wait()
    print(listening.communicate()[0])
"""


@pytest.mark.parametrize("switch", BOTH)
def test_urgent_packets_pass_a_backlog(switch: str, tmp_path: Path) -> None:
    """A packet takes the line 0.2 s; the others have come by the time that the first has left."""
    done = run(sys.executable, "-c", BACKLOG, switch, str(tmp_path))

    order = [int(number) for number in done.stdout.split()]
    assert sorted(order) == list(range(12)), done.stderr
    assert [number for number in order if number < 8] == list(range(8))
    assert order[-4:] == [4, 5, 6, 7]  # those before may have left before the urgent ones came
    urgent = [number for number in order if number >= 8]
    assert urgent[-1] == 9, "the less urgent of the two must come last"
    assert urgent.index(10) < urgent.index(11)


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


@pytest.mark.bmv2
def test_delays_with_bmv2_need_netem() -> None:
    done = run(*CLI, TOPO, "--switch", "bmv2", "--delay", "5ms", text="pingall\n")

    assert (
        ALL_PAIRS in done.stderr
        or "netem (a queueing discipline, for delay 5000us with BMv2)" in (done.stderr)
    )
