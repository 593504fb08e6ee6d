"""What clients can cost: requests, reads, streams and state, without gRPC between."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import finsy as fy
import pytest
from controller_entities import PATH, SCHEMA, Desk, encode
from finsy.proto import U128, p4r
from hypothesis import given
from hypothesis import strategies as st
from p4runtime_client import DELETE, INSERT, MODIFY, sorted_messages

from ringleaf.errors import Code, ConfigError
from ringleaf.switches.engine.updates import DigestMessage
from ringleaf.switches.server.calls import BUSY, FULL, SLOW, RunningRpc, ServerRpcs
from ringleaf.switches.server.controllers import MOST_STREAMS, Controllers
from ringleaf.switches.server.digests import MOST_LISTS, MOST_MESSAGES, DigestLists
from ringleaf.switches.server.limits import FLEET_LIMITS, LIMITS, ServerLimits
from ringleaf.switches.server.memory import EVERY, ProcessMemory
from ringleaf.switches.server.messages import fields, parse_pipeline, split
from ringleaf.switches.server.service import CHUNK
from ringleaf.switches.server.status import MOST_TOLD, BatchError, batch_status
from ringleaf.switches.server.stream import OVERHEAD, Channel
from ringleaf.switches.server.worker import Effort, ServerThread

ALL_REGISTERS = p4r.Entity(register_entry=p4r.RegisterEntry())


def finish(steps: Any) -> Any:
    """Run a generator to its end; return what it returns."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


# Requests, before they are parsed.

UPDATES = st.lists(
    st.builds(
        lambda kind, table, priority: p4r.Update(
            type=kind, entity={"table_entry": {"table_id": table, "priority": priority}}
        ),
        st.sampled_from([INSERT, MODIFY, DELETE]),
        st.integers(0, 2**32 - 1),
        st.integers(-(2**31), 2**31 - 1),
    ),
    max_size=9,
)


@given(UPDATES, st.integers(0, 2**64 - 1), st.text(max_size=5))
def test_a_request_is_its_items_and_the_rest(updates: list[Any], device: int, role: str) -> None:
    whole = p4r.WriteRequest(device_id=device, role=role, updates=updates)
    rest, items = finish(split(whole.SerializeToString(), p4r.WriteRequest, "updates", LIMITS))
    assert list(items) == updates
    whole.ClearField("updates")
    assert rest == whole


@given(st.binary(max_size=60))
def test_any_bytes_are_fields_or_refused(data: bytes) -> None:
    try:
        found = list(fields(data))
    except ConfigError as error:
        assert "request is not protobuf's" in str(error)  # noqa: PT017  either may come
    else:
        assert b"".join(data[field.start : field.end] for field in found) == data


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x80", "a number without end"),
        (b"\x80" * 11 + b"\x01", "a number without end"),
        (b"\x0b", "wire type 3"),
        (b"\x22\x05ab", "a field beyond its end"),
    ],
)
def test_bytes_that_are_no_message_are_refused(data: bytes, what: str) -> None:
    with pytest.raises(ConfigError, match=f"request is not protobuf's, got {what}"):
        list(fields(data))


def test_too_many_items_are_refused_and_a_large_one_is_an_error_in_its_place() -> None:
    limits = ServerLimits(items=3, entity_bytes=100)
    small, large = p4r.Entity(), p4r.Entity(table_entry={"metadata": bytes(200)})
    request = p4r.ReadRequest(entities=[small, large, small])
    _, items = finish(split(request.SerializeToString(), p4r.ReadRequest, "entities", limits))
    first, error, last = items
    assert (first, last) == (small, small)
    assert error.code is Code.RESOURCE_EXHAUSTED
    assert str(error).startswith("Entity: at most 100 bytes, got ")
    request.entities.add()
    with pytest.raises(ConfigError, match="entities: at most 3 in one request, got more"):
        finish(split(request.SerializeToString(), p4r.ReadRequest, "entities", limits))


def pipeline(text: bytes, tables: int = 0, cookie: int = 0) -> bytes:
    request = p4r.SetForwardingPipelineConfigRequest(device_id=1)
    request.config.p4_device_config = text
    request.config.cookie.cookie = cookie
    request.config.p4info.SetInParent()
    for _ in range(tables):
        request.config.p4info.tables.add()
    return bytes(request.SerializeToString())


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (pipeline(b"[" + b"[]," * 100 + b"[]]"), "50 values of BMv2 JSON, got 202"),
        (pipeline(b"{}", tables=60), "40 objects of P4Info, got 60"),
        (pipeline(b"{}", tables=400), "500 bytes of P4Info, got"),
    ],
)
def test_pipelines_that_would_grow_when_parsed_are_refused(data: bytes, what: str) -> None:
    limits = ServerLimits(info_bytes=500, info_objects=40, json_values=50)
    with pytest.raises(ConfigError, match=f"pipeline: at most {what}"):
        parse_pipeline(data, limits)
    request = parse_pipeline(pipeline(b"[1,2]" + b" " * 5000, tables=30, cookie=8), limits)
    assert request.config.cookie.cookie == 8


# Reads and writes.


def test_a_read_of_everything_a_thousand_times_goes_a_slice_at_a_time() -> None:
    desk = Desk()
    read: list[int] = []
    cells = desk.device.switch.read_register

    def counting(name: str, index: int) -> int:
        read.append(index)
        return cells(name, index)

    desk.device.switch.read_register = counting  # type: ignore[method-assign]
    request = p4r.ReadRequest(device_id=1, entities=[ALL_REGISTERS] * 1000)
    steps = desk.service.reading(request, request.entities)
    for number in range(1, 4):
        next(steps)
        assert 0 < len(read) <= number * CHUNK
    del steps
    assert len(read) <= 3 * CHUNK


class Lock:
    """A device's lock that tells whether somebody has it."""

    def __init__(self) -> None:
        self.held = 0
        self.taken = 0

    def __enter__(self) -> None:
        self.held += 1
        self.taken += 1

    def __exit__(self, *_: object) -> None:
        self.held -= 1


def test_others_have_the_lock_between_slices() -> None:
    desk = Desk()
    lock = desk.device.lock = Lock()
    request = p4r.ReadRequest(device_id=1, entities=[ALL_REGISTERS] * 200)
    for _ in desk.service.reading(request, request.entities):
        assert not lock.held
    assert lock.taken > 5
    lock.taken = 0
    write = p4r.WriteRequest(device_id=1, election_id=U128.encode(1))
    missing = p4r.Update(type=DELETE, entity=encode(fy.P4MulticastGroupEntry(7)))
    steps = desk.service.writing(write, [missing] * 2000)
    for _ in islice(steps, 3):
        assert not lock.held
    assert lock.taken == 3
    with pytest.raises(BatchError, match="some updates were refused"):
        finish(steps)


def test_a_write_goes_no_further_once_another_controller_is_primary() -> None:
    desk = Desk()
    write = p4r.WriteRequest(device_id=1, election_id=U128.encode(1))

    def updates() -> Iterator[Any]:
        for number in range(1, 10_000):
            if number == 500:
                bid = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(2))
                desk.device.controllers.arbitrate(desk.stream, bid)
            group = fy.P4MulticastGroupEntry(number)
            yield p4r.Update(type=INSERT, entity=encode(group))

    with pytest.raises(ConfigError, match="only the primary controller of the default role"):
        for _ in desk.service.writing(write, updates()):
            pass
    assert 500 <= len(desk.device.switch.groups()) < 9_999


def test_a_large_write_tells_how_many_failed_and_keeps_the_first() -> None:
    desk = Desk()
    request = p4r.WriteRequest(device_id=1, election_id=U128.encode(1))
    updates = [p4r.Update(type=INSERT, entity=p4r.Entity())] * 5000
    with pytest.raises(BatchError) as caught:
        for _ in desk.service.writing(request, iter(updates)):
            pass
    assert len(caught.value.errors) == MOST_TOLD
    assert all(error.__traceback__ is None for error in caught.value.errors if error)
    status = batch_status(caught.value)
    assert "some updates were refused: 5000 of 5000; the first is number 0: " in status.details


def test_an_entry_that_goes_while_it_is_read_is_left_out() -> None:
    desk = Desk()
    entries = [
        encode(
            fy.P4TableEntry(
                "sources",
                match=fy.Match({"src": number, "ingress_port": 1}),
                action=fy.Action("known"),
                counter_data=fy.P4CounterData(),
            )
        )
        for number in range(1, 9)
    ]
    desk.write(*((INSERT, entry) for entry in entries))
    asked = encode(fy.P4TableEntry("sources", counter_data=fy.P4CounterData()))
    direct = p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry())
    for wildcard in (asked, direct):
        found = desk.device.switch.entities.read(wildcard)
        first = next(found)
        desk.write((DELETE, entries[3]), (DELETE, entries[-1]))
        assert len([first, *found]) == 6
        desk.write((INSERT, entries[3]), (INSERT, entries[-1]))


@pytest.mark.parametrize("kind", ["register", "counter", "meter"])
def test_a_write_of_all_cells_is_a_write_of_each(kind: str) -> None:
    one, each = Desk(), Desk()
    values: dict[str, tuple[str, dict[str, Any]]] = {
        "register": ("last_source", {"data": {"bitstring": b"\x12\x34"}}),
        "counter": ("arrivals", {"data": {"packet_count": 3, "byte_count": 99}}),
        "meter": ("pace", {"config": {"cir": 1, "cburst": 2, "pir": 3, "pburst": 4}}),
    }
    name, value = values[kind]
    number = {
        "register": SCHEMA.registers,
        "counter": SCHEMA.counters,
        "meter": SCHEMA.meters,
    }[kind]
    known = {item.alias: item.id for item in number}
    key = known.get(name) or next(iter(known.values()))
    message = {f"{kind}_id": key, **value}
    one.write((MODIFY, p4r.Entity(**{f"{kind}_entry": message})))
    cells = one.read(p4r.Entity(**{f"{kind}_entry": {f"{kind}_id": key}}))
    assert len(cells) > 1
    for index in range(len(cells)):
        message["index"] = {"index": index}
        each.write((MODIFY, p4r.Entity(**{f"{kind}_entry": message})))
    assert sorted_messages(one.state()) == sorted_messages(each.state())


def test_what_stays_is_refused_once_there_is_no_memory_left() -> None:
    taken = [100]
    memory = ProcessMemory(50, measure=lambda: taken[0])
    memory.check("an update")
    taken[0] = 151
    for _ in range(EVERY - 1):  # measuring takes as long as a small update
        memory.check("an update")
    with pytest.raises(ConfigError, match="server keeps at most 0 MiB for its clients, got") as at:
        memory.check("an update")
    assert at.value.code is Code.RESOURCE_EXHAUSTED
    with pytest.raises(ConfigError, match="got an update more; delete entries"):
        memory.check("an update")
    taken[0] = 150
    memory.check("an update")

    desk = Desk()
    desk.write((INSERT, encode(fy.P4MulticastGroupEntry(1))))
    desk.service.memory = ProcessMemory(-(1 << 40))
    with pytest.raises(BatchError) as caught:
        desk.write((INSERT, encode(fy.P4MulticastGroupEntry(2))))
    assert [error.code for error in caught.value.errors if error] == [Code.RESOURCE_EXHAUSTED]
    desk.write((DELETE, encode(fy.P4MulticastGroupEntry(1))))  # which makes room


# Streams.


def packet(size: int) -> Any:
    return p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=bytes(size)))


@pytest.mark.parametrize("size", [100, 9_000, 1 << 20])
def test_answers_for_a_controller_that_does_not_read_are_bounded(size: int) -> None:
    limits = ServerLimits(waiting_bytes=100_000)
    channel = Channel(Desk().service.find, limits)
    data = packet(size).SerializeToString()
    for _ in range(1000):
        channel.receive_data(data)
    waiting = 0
    while (answer := channel.next_data()) is not None:
        waiting += len(answer) + OVERHEAD
    assert 0 < waiting <= limits.waiting_bytes


def test_a_controller_that_does_not_read_elections_loses_its_stream() -> None:
    desk = Desk()
    channel = Channel(desk.service.find, ServerLimits(waiting_bytes=2000))
    bid = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(7))
    for _ in range(50):
        channel.receive_data(p4r.StreamMessageRequest(arbitration=bid).SerializeToString())
    assert channel.is_over
    with pytest.raises(ConfigError, match="controller does not read, got 4000 bytes for it"):
        list(channel.messages())


def test_an_error_has_its_packet_unless_no_port_would_take_it() -> None:
    channel = Channel(Desk().service.find)
    channel.receive([packet(10_000), packet(10_001)])
    first, second = (message.error.packet_out for message in channel.messages())
    assert len(first.packet_out.payload) == 10_000
    assert not second.HasField("packet_out")


class Deaf:
    def send(self, message: Any) -> None:
        pass


def bid(role: str) -> Any:
    return p4r.MasterArbitrationUpdate(
        device_id=1, election_id=U128.encode(1), role=p4r.Role(name=role) if role else None
    )


def test_other_roles_take_no_room_of_the_default_role() -> None:
    controllers = Controllers(1)
    for number in range(MOST_STREAMS):
        controllers.arbitrate(Deaf(), bid(f"role {number}"))
    with pytest.raises(ConfigError, match=f"at most {MOST_STREAMS} controllers, got one more"):
        controllers.arbitrate(Deaf(), bid("one more"))
    first = Deaf()
    controllers.arbitrate(first, bid(""))
    assert controllers.is_primary(first)
    with pytest.raises(ConfigError, match="role has at most 256 letters, got 257"):
        controllers.arbitrate(Deaf(), bid("r" * 257))


def test_a_role_that_is_a_number_is_answered_so_and_must_be_named_in_writes() -> None:
    """Before 1.4.0 roles were numbers; BMv2 1.15 has no roles, and takes what all may write."""
    answers: list[Any] = []
    stream = Deaf()
    stream.send = answers.append  # type: ignore[method-assign, assignment]
    controllers = Controllers(1)
    numbered = p4r.MasterArbitrationUpdate(
        device_id=1, election_id=U128.encode(1), role=p4r.Role(id=3)
    )
    controllers.arbitrate(stream, numbered)

    assert (answers[0].arbitration.role.id, answers[0].arbitration.role.name) == (3, "3")
    controllers.check_primary(p4r.WriteRequest(role_id=3, election_id=U128.encode(1)))
    with pytest.raises(ConfigError, match="primary controller of the default role, as the request"):
        controllers.check_primary(p4r.WriteRequest(election_id=U128.encode(1)))
    controllers.arbitrate(Deaf(), bid("x"))
    with pytest.raises(ConfigError, match="primary controller of role 'x' may write, got election"):
        controllers.check_primary(p4r.WriteRequest(role="x", election_id=U128.encode(2)))


def test_roles_that_nobody_has_are_forgotten_but_for_the_last() -> None:
    controllers = Controllers(1)
    stays = Deaf()
    controllers.arbitrate(stays, bid("stays"))
    for number in range(10 * MOST_STREAMS):
        stream = Deaf()
        controllers.arbitrate(stream, bid(f"role {number}"))
        controllers.leave(stream)
    assert len(controllers._elections) <= MOST_STREAMS + 2
    assert controllers.is_primary(stays)


def test_digests_that_are_never_acknowledged_are_bounded() -> None:
    endless = {"max_timeout_ns": 1 << 60, "ack_timeout_ns": 1 << 60}
    for size, count, lengths in (
        (1 << 30, 2 * MOST_MESSAGES, [MOST_MESSAGES] * 2),
        (1, MOST_LISTS + 3, [1] * (MOST_LISTS + 3)),
    ):
        configs = {1: p4r.DigestEntry.Config(max_list_size=size, **endless)}
        lists = DigestLists()
        sent = [
            digest
            for value in range(count)
            for digest in lists.add(1, DigestMessage("learn", (value,), 0), configs, 0)
        ]
        assert [len(digest.messages) for digest in sent] == lengths
        assert len(lists._sent) == min(len(sent), MOST_LISTS)


# Calls and their order.


class Context:
    """gRPC's context of a call whose client says nothing."""

    def peer(self) -> str:
        return "ipv4:127.0.0.1:1"

    async def read(self) -> bytes:
        await asyncio.Event().wait()
        return b""


async def wait_for(call: RunningRpc) -> str | None:
    try:
        await call.receive()
    except asyncio.CancelledError:
        return call.reason
    return "went on"


def with_calls(limits: ServerLimits, count: int, act: Any) -> list[str | None]:
    """Let clients call one after the other and say nothing; return why each has ended, if so."""
    now = [0.0]
    calls = ServerRpcs(limits, clock=lambda: now[0])

    async def one() -> str | None:
        call = RunningRpc(calls, Context())
        calls.enter(call)
        return await wait_for(call)

    async def run() -> list[str | None]:
        tasks = []
        for _ in range(count):
            tasks.append(asyncio.create_task(one()))
            await asyncio.sleep(0)
            now[0] += 1
        act(calls)
        for _ in range(3):
            await asyncio.sleep(0)
        found = [task.result() if task.done() else None for task in tasks]
        for task in tasks:
            task.cancel()
        return found

    return asyncio.run(run())


def test_a_call_too_many_ends_the_one_that_waits_longest_for_its_client() -> None:
    assert with_calls(ServerLimits(calls=3), 5, lambda _: None) == [BUSY, BUSY, None, None, None]


def test_calls_end_after_some_time_and_for_their_memory_the_oldest_first() -> None:
    ends = with_calls(ServerLimits(patience_s=2.5), 5, ServerRpcs.end_slow)
    assert ends == [SLOW.format(2.5)] * 3 + [None] * 2
    assert with_calls(LIMITS, 9, ServerRpcs.relieve) == [FULL] * 2 + [None] * 7


def test_what_a_client_has_used_is_forgotten_in_time() -> None:
    now = [100.0]
    effort = Effort(clock=lambda: now[0])
    effort.spend(0.5)
    effort.spend(0.25)
    assert effort.used_s == pytest.approx(0.75)
    now[0] += 1
    assert effort.used_s == pytest.approx(0.75 * 0.36788, rel=1e-4)  # 1/e
    effort.spend(1.0)
    now[0] += 2
    assert effort.used_s == pytest.approx((1 + 0.75 * 0.36788) * 0.36788**2, rel=1e-4)


def test_calls_of_a_connection_share_what_they_have_used() -> None:
    calls = ServerRpcs(LIMITS)
    first = calls.effort("a")
    assert calls.effort("a") is first
    assert calls.effort("b") is not first


def test_short_work_goes_before_long_work_that_came_earlier() -> None:
    worker = ServerThread("test")
    done: list[str] = []
    busy, may_go = threading.Event(), threading.Event()

    def occupy() -> None:
        busy.set()
        may_go.wait(20)

    async def run() -> None:
        first = asyncio.create_task(worker.do(occupy))
        await asyncio.to_thread(busy.wait, 20)
        long = Effort()
        long.spend(1.0)
        later = [asyncio.create_task(worker.do(lambda: done.append("long"), long))]
        dropped = asyncio.create_task(worker.do(lambda: done.append("dropped")))
        await asyncio.sleep(0)
        later += [asyncio.create_task(worker.do(lambda: done.append("short"))) for _ in range(2)]
        await asyncio.sleep(0)
        dropped.cancel()
        await asyncio.sleep(0)
        may_go.set()
        await asyncio.gather(first, *later)

    asyncio.run(run())
    worker.stop(20)
    assert not worker.is_alive()
    assert done == ["short", "short", "long"]


def test_a_program_is_read_without_the_lock_and_set_only_by_the_primary() -> None:
    desk = Desk()
    lock = Lock()
    desk.device.pipelines._lock = lock
    held = []
    text = PATH.read_bytes()
    config = p4r.ForwardingPipelineConfig(p4info=SCHEMA.p4info, p4_device_config=text)
    action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
    before = desk.device.switch

    def permit() -> None:
        held.append(lock.held)
        if len(held) == 2:
            raise ConfigError("no longer the primary")

    with pytest.raises(ConfigError, match="no longer the primary"):
        desk.device.pipelines.set(action, config, permit)
    assert held == [1, 1]
    assert desk.device.switch is before


def test_limits_of_a_fleet_are_those_of_one_switch_but_for_memory() -> None:
    assert (
        replace(FLEET_LIMITS, memory_bytes=LIMITS.memory_bytes, state_bytes=LIMITS.state_bytes)
        == LIMITS
    )
