"""What a p4runtime-shell does to a switch; run by its own Python: ADDRESS P4INFO JSON.

It says on its standard output what it has read.
"""

import queue
import sys

import p4runtime_sh.shell as sh
from p4runtime_sh.p4runtime import P4RuntimeWriteException

PATIENCE_S = 20


def main(address: str, p4info: str, program: str) -> None:
    config = sh.FwdPipeConfig(p4info, program)
    sh.setup(device_id=1, grpc_addr=address, election_id=(0, 1), config=config)
    try:
        write_tables()
        write_profiles()
        write_replication()
        write_arrays()
        exchange_packets()
    finally:
        sh.teardown()


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")


def write_tables() -> None:
    entry = sh.TableEntry("destinations")(action="forward")
    entry.match["hdr.ethernet.dst"] = "00:00:00:00:00:07"
    entry.action["port"] = "2"
    entry.insert()
    entry.action["port"] = "3"
    entry.modify()
    try:
        entry.insert()
    except P4RuntimeWriteException as error:
        say("again:", error)
    sh.TableEntry("destinations").read(lambda e: say("destination", e.action["port"]))
    entry.delete()
    say("left", len(list(sh.TableEntry("destinations").read())))
    guard = sh.TableEntry("guard")(action="drop", priority=5)
    guard.match["hdr.ethernet.type"] = "1..9"
    guard.insert()
    sh.TableEntry("guard").read(lambda e: say("guard", e.priority))
    default = sh.TableEntry("destinations")(action="drop", is_default=True)
    default.modify()
    say("default", next(iter(default.read())).action.action_name)


def write_profiles() -> None:
    member = sh.ActionProfileMember("plain")(member_id=1, action="forward")
    member.action["port"] = "4"
    member.insert()
    say("members", len(list(sh.ActionProfileMember("plain").read())))
    entry = sh.TableEntry("uplinks")
    entry.match["hdr.ethernet.type"] = "0x0800"
    forward = sh.Action("forward")
    forward["port"] = "1"
    entry.oneshot.add(forward, weight=3)
    entry.insert()
    shots = list(sh.TableEntry("uplinks").read())
    say("weights", str(shots[0].oneshot).count("weight: 3"))


def write_replication() -> None:
    group = sh.MulticastGroupEntry(1).add(1, 1).add(2, 1)
    group.insert()
    say("replicas", len(next(iter(sh.MulticastGroupEntry(1).read())).replicas))
    session = sh.CloneSessionEntry(5).add(3)
    session.packet_length_bytes = 64
    session.insert()
    say("length", next(iter(sh.CloneSessionEntry(5).read())).packet_length_bytes)
    digest = sh.DigestEntry("learn_t")
    digest.max_list_size = 1
    digest.insert()


def write_arrays() -> None:
    counter = sh.CounterEntry("arrivals")
    counter.index = 2
    counter.packet_count = 77
    counter.modify()
    say("counters", [c.packet_count for c in sh.CounterEntry("arrivals").read()])
    meter = sh.MeterEntry("arrival_rate")
    meter.index, meter.cir, meter.cburst, meter.pir, meter.pburst = 1, 1, 2, 3, 4
    meter.modify()
    say("peaks", [m.pir for m in sh.MeterEntry("arrival_rate").read()])


def exchange_packets() -> None:
    default = sh.TableEntry("destinations")(action="to_controller", is_default=True)
    default.action["reason"] = "9"
    default.modify()
    packets_in = sh.PacketIn()
    packet = sh.PacketOut(bytes(12) + b"\x08\x07" + b"hello", egress_port="0", through="1", pad="0")
    packet.send()
    try:
        message = packets_in.packet_in_queue.get(timeout=PATIENCE_S)
    except queue.Empty:
        say("no packet")
    else:
        say("packet", message.packet.payload[14:].decode())
    digest = sh.client.get_stream_packet("digest", timeout=PATIENCE_S)
    say("digests", len(digest.digest.data))


main(*sys.argv[1:])
