"""A controller's packets in and out of live switches, as finsy sees them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from namespaces import ip, name_of

ROOT = Path(__file__).resolve().parents[3]
SWITCHES = [
    "embedded",
    pytest.param("bmv2", marks=pytest.mark.bmv2),
]
PATIENCE_S = 200  # a new machine compiles first

# In a process of its own: gRPC's threads must not be in one that forks, as other tests do.
CONTROLLER = """
import asyncio, socket
from pathlib import Path
import finsy as fy
from ringleaf.networks.live.engine import LinkEnd
from ringleaf.networks.mininet.runtime import Runtime
from ringleaf.switches.program import Program

CPU_PORT, PROGRAM = 64, Path("tests/switches/programs/controller.json")
FRAME = bytes.fromhex("0000000000070200000000010800") + bytes(range(46))
switch, folder, ours, theirs = {arguments!r}

async def control(address, link):
    options = fy.SwitchOptions(PROGRAM.with_suffix(".p4info.txtpb"), PROGRAM, device_id=1)
    async with asyncio.timeout(60), fy.Switch("s", address, options) as found:
        packets = found.read_packets()
        first = asyncio.ensure_future(anext(packets))
        await asyncio.sleep(0)  # it listens now
        print("out", await out_by(found, link, 1), await out_by(found, link, 2))
        link.send(FRAME)
        packet = await first
        print("in", packet.payload == FRAME, packet["ingress_port"], packet["reason"])
        await found.write([fy.P4PacketOut(FRAME, egress_port=0, through=1, pad=0)])
        packet = await anext(packets)
        print("in", packet.payload == FRAME, packet["ingress_port"], packet["reason"])
        group = fy.P4MulticastGroupEntry(1, replicas=[1, CPU_PORT])
        match, flood = fy.Match({{"dst": 7}}), fy.Action("flood", group=1)
        await found.write([+group, +fy.P4TableEntry("destinations", match=match, action=flood)])
        await found.write([fy.P4PacketOut(FRAME, egress_port=0, through=1, pad=0)])
        print("flood", await asyncio.get_running_loop().sock_recv(link, 2000) == FRAME)
        await packets.aclose()

async def out_by(found, link, port):
    await found.write([fy.P4PacketOut(FRAME, egress_port=port, through=0, pad=0)])
    if port > 1:
        return "no such port"
    return await asyncio.get_running_loop().sock_recv(link, 2000) == FRAME

if switch == "embedded":
    Program.load(PROGRAM).prepare()  # a new machine compiles, for longer than finsy waits
runtime = Runtime(Path(folder), cpu_port=CPU_PORT)
try:
    start = dict(embedded=runtime.add_embedded, bmv2=runtime.add_bmv2)[switch]
    start(dict(s0=(1, [LinkEnd(ours, 10**8)])))
    address = runtime.record.switches["s0"].rpartition("/")[0]
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as link:
        link.bind((theirs, 3))
        link.setblocking(False)
        asyncio.run(control(address, link))
    runtime.check()
finally:
    runtime.close()
"""


@pytest.mark.live
@pytest.mark.parametrize("switch", SWITCHES)
def test_a_controllers_packets_leave_and_come(switch: str, tmp_path: Path) -> None:
    ours, theirs = name_of(0), name_of(1)
    ip("link", "add", ours, "type", "veth", "peer", "name", theirs)
    try:
        for name in (ours, theirs):
            disable = Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6")
            if disable.exists():
                disable.write_text("1")
            ip("link", "set", name, "up")
        code = CONTROLLER.format(arguments=(switch, str(tmp_path), ours, theirs))
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    finally:
        ip("link", "delete", "dev", ours)

    assert done.stdout.splitlines() == [
        "out True no such port",
        "in True 1 1",
        "in True 64 1",
        "flood True",
    ], done.stderr
