"""Makes the traces that are committed here; run as `python tests/traces/make_traces.py [NAME...]`.

Three are of an experiment's switches, from `ringleaf run --record`; one of them is BMv2's, made
only as root where there is BMv2. `l2l3` is as a trace from elsewhere would be: microsecond pcaps
with wall-clock stamps, entries by hand, a few later ones.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import finsy as fy
import yaml
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether

from ringleaf.networks.traces.checksums import write_checksums
from ringleaf.networks.traces.entries import load_schema, write_entries
from ringleaf.switches.bmv2.binaries import is_there

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RINGLEAF = (sys.executable, "-m", "ringleaf.experiments.commands.cli")
ON_BMV2 = "atp-bmv2"
EXPERIMENTS = {
    # name -> switch, program, options
    "switchml": (
        "s2",
        "switchml-64",
        "--topo leafspine,leaves=2,spines=1,hosts=2 --algo switchml --lanes 64 --size 8K --loss 4%"
        " --duplicate 2% --reorder 2% --seed 7",
    ),
    "ecmp-ecn": (
        "s0",
        "forward",
        "--topo leafspine,leaves=2,spines=2,hosts=4 --algo alltoall --size 8K --mtu 256"
        " --routes ecmp --ecn 2 --delay 0 --seed 3",
    ),
    ON_BMV2: (
        "s1",  # the parameter server's rack
        "atp-64",
        "--topo leafspine,leaves=2,spines=1,hosts=3 --servers 1 --algo atp --lanes 64 --size 8K"
        " --seed 5 --net mininet --switch bmv2",
    ),
}

PORTS = 4
ROUTER = "02:aa:00:00:00:01"
SECOND_LATE = "2s"
EPOCH_US = 1_760_000_000_000_000


def record(name: str) -> None:
    switch, program, options = EXPERIMENTS[name]
    with tempfile.TemporaryDirectory() as folder:
        out = ("--record", f"{folder}/traces", "--out", f"{folder}/out")
        command = (*RINGLEAF, "run", *options.split(), *out)
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        (run,) = Path(folder, "traces").iterdir()
        shutil.rmtree(HERE / name, ignore_errors=True)
        shutil.copytree(run / switch, HERE / name)
    _use_program(HERE / name, f"ringleaf:{program}")


def _use_program(folder: Path, program: str) -> None:
    """Have the trace run the program as it is here, and not a copy."""
    for copy in ("program.json", "program.p4info.txtpb"):
        (folder / copy).unlink(missing_ok=True)
    path = folder / "trace.yaml"
    data = yaml.safe_load(path.read_text()) | {"program": program}
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    write_checksums(folder)


def host_mac(number: int) -> str:
    return f"02:00:00:00:00:{number:02x}"


def entries() -> Iterator[Any]:
    """Ports 1 and 2 are one VLAN's hosts, 3 and 4 lead to routers."""
    yield fy.P4MulticastGroupEntry(1, replicas=list(range(1, PORTS + 1)))
    yield fy.P4TableEntry(
        "my_macs", match=fy.P4TableMatch(mac=ROUTER), action=fy.P4TableAction("NoAction")
    )
    yield fy.P4TableEntry("macs", action=fy.P4TableAction("flood", group=1), is_default_action=True)
    for number in range(1, PORTS + 1):
        yield fy.P4TableEntry(
            "macs",
            match=fy.P4TableMatch(mac=host_mac(number)),
            action=fy.P4TableAction("to_port", port=number),
        )
        yield fy.P4TableEntry(
            "next_hops",
            match=fy.P4TableMatch(next_hop=number),
            action=fy.P4TableAction("rewrite", port=number, src=ROUTER, dst=host_mac(number)),
        )
    for prefix, next_hop in (("10.0.0.0/8", 3), ("10.1.0.0/16", 4), ("10.1.2.0/24", 1)):
        yield route(prefix, next_hop)
    yield acl(30, "deny", dst="10.1.9.0/24", protocol=6, dport=23)
    yield acl(20, "permit_with_dscp", protocol=17, dport=5000)
    yield acl(10, "deny", src="10.66.0.0/16")


def route(prefix: str, next_hop: int) -> fy.P4TableEntry:
    return fy.P4TableEntry(
        "routes",
        match=fy.P4TableMatch(dst=prefix),
        action=fy.P4TableAction("to_next_hop", next_hop=next_hop),
    )


def acl(priority: int, action: str, **match: Any) -> fy.P4TableEntry:
    arguments = {"dscp": 46} if action == "permit_with_dscp" else {}
    return fy.P4TableEntry(
        "acl",
        match=fy.P4TableMatch(**match),
        action=fy.P4TableAction(action, **arguments),
        priority=priority,
    )


def packets(count: int) -> Iterator[tuple[int, int, bytes]]:
    """(time in us, port, bytes) of packets as they come, some of them broken."""
    rng = random.Random(1)
    time_us = EPOCH_US
    for _ in range(count):
        time_us += rng.choice([0, 1, 3, 20_000])
        port = rng.randint(1, PORTS)
        yield time_us, port, packet(rng, port)


def packet(rng: random.Random, port: int) -> bytes:
    src = host_mac(port)
    if rng.random() < 0.15:
        request = ARP(op=1, hwsrc=src, psrc=f"10.0.0.{port}", pdst=f"10.0.0.{rng.randint(1, 9)}")
        return bytes(Ether(src=src, dst="ff:ff:ff:ff:ff:ff") / request)
    dst = rng.choice([ROUTER, ROUTER, ROUTER, host_mac(rng.randint(1, 6))])
    source = rng.choice(["10.0.0.1", "10.66.1.1", "10.2.2.2"])
    target = rng.choice(["10.1.2.3", "10.1.9.9", "10.9.9.9", "11.0.0.1", "10.1.77.1"])
    kind = rng.choice([TCP, UDP])
    ports = kind(sport=rng.randint(1024, 9999), dport=rng.choice([23, 80, 5000]))
    ttl = rng.choice([1, 2, 64, 64, 64])
    whole = IP(src=source, dst=target, ttl=ttl) / ports / rng.randbytes(rng.choice([0, 18, 300]))
    data = bytearray(bytes(Ether(src=src, dst=dst) / whole))
    if rng.random() < 0.05:
        data[24] ^= 0xFF  # the header's checksum
    if rng.random() < 0.03:
        del data[rng.randint(1, 33) :]
    return bytes(data)


def make_l2l3() -> None:
    folder = HERE / "l2l3"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "in").mkdir(parents=True)
    program = HERE.parent / "switches" / "programs" / "l2l3.json"
    schema = load_schema(program, None)
    for suffix in (".json", ".p4info.txtpb"):
        shutil.copy(program.with_suffix(suffix), folder / f"program{suffix}")
    write_entries(folder / "entries.txtpb", entries(), schema)
    write_entries(folder / "later.txtpb", [route("11.0.0.0/8", 2)], schema)
    files = {port: [_FILE_HEADER] for port in range(1, PORTS + 1)}
    for time_us, port, data in packets(300):
        stamp = divmod(time_us, 1_000_000)
        files[port].append(struct.pack(">4I", *stamp, len(data), len(data)) + data)
    for port, parts in files.items():
        (folder / "in" / f"port{port}.pcap").write_bytes(b"".join(parts))
    (folder / "trace.yaml").write_text(_MANIFEST)
    command = (*RINGLEAF, "replay", str(folder), "--update")
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


_FILE_HEADER = struct.pack(">IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)  # as a Sun wrote it
_MANIFEST = f"""\
format: ringleaf-trace
version: 1
program: program.json
entries: entries.txtpb
later:
  - {{at: {SECOND_LATE}, entries: later.txtpb}}
ports:
  1: {{rate: 1G, queue: 64K}}
  2: {{rate: 1G, queue: 64K}}
  3: {{rate: 10G, queue: 64K}}
  4: {{rate: 10M, queue: 1K}}
"""


def main() -> None:
    wanted = sys.argv[1:] or [*EXPERIMENTS, "l2l3"]
    for name in wanted:
        if name == "l2l3":
            make_l2l3()
        elif name != ON_BMV2 or (os.geteuid() == 0 and is_there()):
            record(name)


if __name__ == "__main__":
    main()
