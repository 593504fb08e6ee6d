"""What goes through a controller's stream besides elections: packets, digests, idle entries."""

from __future__ import annotations

import random
from typing import Any

import finsy as fy
import pytest
from controller_entities import CPU_PORT, SCHEMA, Desk, encode
from finsy.proto import U128, p4d, p4r
from p4runtime_client import DELETE, INSERT, MODIFY

from ringleaf.errors import Code
from ringleaf.switches.server.stream import Channel

NS = 1000  # ps
MAC = bytes.fromhex("020000000001")


def frame(source: bytes = MAC, target: bytes = b"\0" * 5 + b"\7") -> bytes:
    return target + source + b"\x08\x00" + bytes(range(20))


def packet_out(port: int, payload: bytes, *, through: bool = False) -> Any:
    values = [bytes([port]), bytes([through]), b"\0"]
    metadata = [
        p4r.PacketMetadata(metadata_id=i + 1, value=value) for i, value in enumerate(values)
    ]
    return p4r.PacketOut(payload=payload, metadata=metadata)


def learned(port: int, source: bytes = MAC) -> Any:
    members = [source.lstrip(b"\0") or b"\0", bytes([port])]
    return p4d.P4Data(
        struct=p4d.P4StructLike(members=[p4d.P4Data(bitstring=data) for data in members])
    )


def enable(desk: Desk, **config: int) -> None:
    desk.write((INSERT, encode(fy.P4DigestEntry("learn_t", **config))))


def take(desk: Desk, kind: str) -> list[Any]:
    """Return what the controller has been sent of one kind."""
    messages = [getattr(m, kind) for m in desk.stream.messages if m.WhichOneof("update") == kind]
    desk.stream.messages.clear()
    return messages


def test_a_packet_out_leaves_by_the_port_that_it_names() -> None:
    desk, sent = Desk(), []
    desk.device._transmit = lambda port, data: sent.append((port, data))
    desk.device.packet_out(packet_out(5, frame()))
    assert sent == [(5, frame())]


def test_what_has_no_entry_comes_to_the_controller() -> None:
    desk = Desk()
    assert desk.device.process(3, frame()) == []
    (packet,) = take(desk, "packet")
    assert packet.payload == frame()
    assert [(m.metadata_id, m.value) for m in packet.metadata] == [(1, b"\3"), (2, b"\1")]


def test_a_packet_out_may_go_through_the_tables() -> None:
    desk = Desk()
    desk.device.packet_out(packet_out(0, frame(), through=True))
    (packet,) = take(desk, "packet")
    assert packet.metadata[0].value == bytes([CPU_PORT])


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (p4r.PacketOut(payload=b"x"), Code.INVALID_ARGUMENT),
        (p4r.PacketOut(metadata=[p4r.PacketMetadata(metadata_id=9)]), Code.INVALID_ARGUMENT),
        (packet_out(1, b"", through=True).metadata[:2], Code.INVALID_ARGUMENT),
        ([*packet_out(1, b"").metadata, p4r.PacketMetadata(metadata_id=1)], Code.INVALID_ARGUMENT),
        (
            [p4r.PacketMetadata(metadata_id=i, value=b"\2\0") for i in (1, 2, 3)],
            Code.OUT_OF_RANGE,
        ),
    ],
)
def test_wrong_packets_out_are_reported(message: Any, code: Code) -> None:
    if isinstance(message, list) or not hasattr(message, "payload"):
        message = p4r.PacketOut(payload=frame(), metadata=message)
    desk = Desk()
    errors = answers(desk, p4r.StreamMessageRequest(packet=message))
    (error,) = [answer.error for answer in errors if answer.WhichOneof("update") == "error"]
    assert error.canonical_code == code
    assert error.packet_out.packet_out == message


def test_wrong_acknowledgements_are_reported() -> None:
    ack = p4r.DigestListAck(digest_id=12345, list_id=1)
    errors = answers(Desk(), p4r.StreamMessageRequest(digest_ack=ack))
    assert errors[-1].error.canonical_code == Code.INVALID_ARGUMENT
    assert errors[-1].error.digest_list_ack.digest_list_ack == ack


def answers(desk: Desk, request: Any) -> list[Any]:
    """What a new primary's stream says to one request."""
    channel = Channel(desk.service.find)
    bid = p4r.MasterArbitrationUpdate(device_id=1, election_id=p4r.Uint128(low=9))
    channel.receive([p4r.StreamMessageRequest(arbitration=bid), request])
    return list(channel.messages())


def test_digests_are_sent_at_once_if_they_need_not_wait() -> None:
    desk = Desk()
    desk.device.process(3, frame())
    assert take(desk, "digest") == []  # not enabled yet
    enable(desk)
    desk.device.process(3, frame())
    (digest,) = take(desk, "digest")
    assert digest.digest_id == SCHEMA.digests["learn_t"].id
    assert list(digest.data) == [learned(3)]
    desk.write((DELETE, encode(fy.P4DigestEntry("learn_t"))))
    desk.device.process(4, frame())
    assert take(desk, "digest") == []


def test_digests_are_gathered_until_a_list_is_full_or_old() -> None:
    desk = Desk()
    enable(desk, max_list_size=3, max_timeout_ns=1000)
    for port in (1, 1, 2):
        desk.device.process(port, frame())
    assert take(desk, "digest") == []
    desk.device.process(3, frame())
    (digest,) = take(desk, "digest")
    assert list(digest.data) == [learned(1), learned(2), learned(3)]

    desk.device.process(4, frame())
    desk.now_ps += 999 * NS
    desk.device.poll_digests()
    assert take(desk, "digest") == []
    desk.now_ps += NS
    desk.device.poll_digests()
    (digest,) = take(desk, "digest")
    assert list(digest.data) == [learned(4)]


def test_what_was_sent_is_not_sent_again_until_it_is_acknowledged_or_forgotten() -> None:
    desk = Desk()
    enable(desk, ack_timeout_ns=500)
    desk.device.process(1, frame())
    (digest,) = take(desk, "digest")
    desk.device.process(1, frame())
    assert take(desk, "digest") == []
    desk.device.acknowledge(digest.digest_id, digest.list_id)
    desk.device.process(1, frame())
    (again,) = take(desk, "digest")
    assert again.list_id != digest.list_id
    desk.now_ps += 500 * NS
    desk.device.poll_digests()
    desk.device.process(1, frame())
    assert len(take(desk, "digest")) == 1


def test_nothing_is_held_back_where_no_acknowledgement_is_awaited() -> None:
    """With `ack_timeout_ns` 0 each packet of a burst is told, though nobody polls meanwhile."""
    desk = Desk()
    enable(desk)
    for _ in range(3):
        desk.device.process(1, frame())
    assert [list(each.data) for each in take(desk, "digest")] == [[learned(1)]] * 3


def test_digests_that_wait_are_lost_with_their_entry() -> None:
    desk = Desk()
    enable(desk, max_list_size=3, max_timeout_ns=1000)
    desk.device.process(1, frame())
    desk.write((DELETE, encode(fy.P4DigestEntry("learn_t"))))
    desk.device.poll_digests()
    enable(desk, max_list_size=3, max_timeout_ns=1000)
    desk.device.process(2, frame())
    desk.now_ps += 1000 * NS
    desk.device.poll_digests()
    (digest,) = take(desk, "digest")
    assert list(digest.data) == [learned(2)]


@pytest.mark.parametrize(("action", "left"), [("VERIFY", 1), ("VERIFY_AND_COMMIT", 0)])
def test_digests_that_wait_stay_while_the_pipeline_does(action: str, left: int) -> None:
    desk = Desk()
    enable(desk, max_list_size=3, max_timeout_ns=1000)
    desk.device.process(1, frame())
    config = desk.device.pipelines.committed.config
    desk.service.set_pipeline(
        p4r.SetForwardingPipelineConfigRequest(
            device_id=1, election_id=U128.encode(1), action=action, config=config
        )
    )
    desk.now_ps += 1000 * NS
    desk.device.poll_digests()
    assert len(take(desk, "digest")) == left


def test_idle_entries_are_told_with_what_the_controller_said_of_them() -> None:
    desk = Desk()
    match = fy.Match({"src": 0x020000000001, "ingress_port": 1})
    entry = fy.P4TableEntry(
        "sources",
        match=match,
        action=fy.Action("known"),
        idle_timeout_ns=1000,
        metadata=b"mine",
        controller_metadata=5,
    )
    desk.write((INSERT, encode(entry)))
    desk.now_ps += 900 * NS
    desk.device.process(1, frame())
    desk.now_ps += 900 * NS
    desk.device.poll_idle()
    assert take(desk, "idle_timeout_notification") == []
    desk.now_ps += 100 * NS
    desk.device.poll_idle()
    (note,) = take(desk, "idle_timeout_notification")
    (told,) = note.table_entry
    sent = encode(entry).table_entry
    sent.ClearField("action")
    assert told == sent
    asked = encode(fy.P4TableEntry("sources", time_since_last_hit=0))
    desk.now_ps += 50 * NS
    (read,) = desk.read(asked)
    assert read.table_entry.time_since_last_hit.elapsed_ns == 1050
    desk.device.poll_idle()
    assert take(desk, "idle_timeout_notification") == []


def test_counters_and_meters_of_entries_are_those_of_their_packets() -> None:
    desk = Desk()
    match = fy.Match({"src": 0x020000000001, "ingress_port": 1})
    entry = fy.P4TableEntry(
        "sources", match=match, action=fy.Action("known"), counter_data=fy.P4CounterData()
    )
    desk.write((INSERT, encode(entry)))
    for _ in range(3):
        desk.device.process(1, frame())
    (read,) = desk.read(encode(fy.P4TableEntry("sources", counter_data=fy.P4CounterData())))
    assert read.table_entry.counter_data.packet_count == 3
    assert read.table_entry.counter_data.byte_count == 3 * len(frame())
    (cell,) = desk.read(encode(fy.P4CounterEntry("arrivals", index=1)))
    assert cell.counter_entry.data.packet_count == 3
    (register,) = desk.read(encode(fy.P4RegisterEntry("last_source", index=1)))
    assert register.register_entry.data.bitstring == MAC

    zero = p4r.Entity(direct_counter_entry={"table_entry": encode(entry).table_entry})
    zero.direct_counter_entry.data.SetInParent()
    desk.write((MODIFY, zero))
    (read,) = desk.read(p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry()))
    assert read.direct_counter_entry.data == p4r.CounterData()


def test_actions_of_a_set_are_picked_by_weight() -> None:
    desk = Desk()
    actions = fy.P4IndirectAction(
        action_set=[(3, fy.Action("forward", port=2)), (1, fy.Action("forward", port=4))]
    )
    entry = fy.P4TableEntry("uplinks", match=fy.Match({"type": 0x0800}), action=actions)
    desk.write((INSERT, encode(entry)))
    assert desk.read(encode(fy.P4TableEntry("uplinks"))) == [encode(entry)]
    assert desk.read(p4r.Entity(action_profile_member={})) == []
    assert desk.read(p4r.Entity(action_profile_group={})) == []

    rng = random.Random(1)
    seen = [
        port
        for _ in range(200)
        for port, _ in desk.device.process(1, frame(source=rng.randbytes(6)))
    ]
    assert set(seen) == {2, 4}
    assert seen.count(2) > seen.count(4) > 20
    desk.write((DELETE, encode(entry)))
    assert desk.device.switch.members("I.spread") == []
    assert desk.device.switch.member_groups("I.spread") == []
