"""Servers over gRPC with clients that are many, slow, deaf or strangers; their limits are small."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from controller_entities import CPU_PORT, PATH, PORTS, controller_program
from finsy.proto import U128, p4r, p4r_grpc

from bench.soak.attacks import ATTACKS
from bench.soak.siege import KINDS, AttackOutcome, Others
from ringleaf.core.compiled import handler
from ringleaf.switches.server.device import SharedDevice
from ringleaf.switches.server.limits import ServerLimits
from ringleaf.switches.server.server import P4RuntimeServer
from ringleaf.switches.server.status import DETAILS

HANG_S = 30.0
TOKEN = "a token of this test"
KNOWN = (("authorization", f"Bearer {TOKEN}"),)
BUSY = p4r.ReadRequest(
    device_id=1, entities=[p4r.Entity(register_entry=p4r.RegisterEntry())] * 1000
)


def device() -> SharedDevice:
    made = SharedDevice(1, ports=PORTS, cpu_port=CPU_PORT)
    made.pipelines.load(controller_program(), PATH.read_bytes())
    return made


@contextmanager
def connected(server: P4RuntimeServer, count: int = 1) -> Iterator[Any]:
    """Connect, each time anew; return a stub, or several."""
    with ExitStack() as stack:
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1)]
        channels = [
            stack.enter_context(grpc.insecure_channel(server.address, options))
            for _ in range(count)
        ]
        stubs = [p4r_grpc.P4RuntimeStub(channel) for channel in channels]
        yield stubs if count > 1 else stubs[0]


def ask(stub: Any, **more: Any) -> Any:
    return stub.Capabilities(p4r.CapabilitiesRequest(), timeout=HANG_S, **more)


def elect(stub: Any, requests: Any = ()) -> Any:
    """Become primary; return the stream."""
    bid = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(1))

    def say() -> Iterator[Any]:
        yield p4r.StreamMessageRequest(arbitration=bid)
        yield from requests
        yield from silence()

    stream = stub.StreamChannel(say(), timeout=HANG_S)
    assert next(stream).arbitration.status.code == 0
    return stream


def silence() -> Iterator[Any]:
    threading.Event().wait(HANG_S)
    yield from ()


def code_of(call: Any) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        list(call())
    return str(caught.value.code().name)


def test_a_stranger_is_turned_away_before_a_message_is_received() -> None:
    with P4RuntimeServer([device()], token=TOKEN) as server, connected(server) as stub:
        channel = grpc.insecure_channel(server.address)
        for name in ("Write", "Read", "SetForwardingPipelineConfig", "StreamChannel"):
            call = channel.stream_stream(f"/p4.v1.P4Runtime/{name}")
            assert code_of(lambda call=call: call(silence(), timeout=HANG_S)) == "UNAUTHENTICATED"
        channel.close()
        large = p4r.WriteRequest(role="x" * (32 << 20))
        assert code_of(lambda: [stub.Write(large, timeout=HANG_S)]) == "UNAUTHENTICATED"
        assert ask(stub, metadata=KNOWN)


def test_silent_calls_lock_nobody_out() -> None:
    limits = ServerLimits(calls=20)
    with P4RuntimeServer([device()], limits=limits) as server, connected(server, 4) as stubs:
        mute = [stub.StreamChannel(silence()) for stub in stubs[:3] for _ in range(20)]
        assert ask(stubs[3])
        stream = elect(stubs[3])
        ended = [each.exception(timeout=HANG_S) for each in mute[:30]]
        assert {error.code().name for error in ended} == {"RESOURCE_EXHAUSTED"}
        assert "waited longest for its client" in ended[0].details()
        assert stream.is_active()
        for each in mute:
            each.cancel()


def test_a_silent_call_ends_by_itself_and_a_controller_s_stream_does_not() -> None:
    with (
        P4RuntimeServer([device()], limits=ServerLimits(patience_s=0.05)) as server,
        connected(server) as stub,
    ):
        stream = elect(stub)
        mute = stub.StreamChannel(silence())
        assert "neither sent nor read for 0.05 s" in mute.exception(timeout=HANG_S).details()
        assert stream.is_active()


def test_packets_without_end_for_one_who_reads_nothing_stop_coming() -> None:
    sent = []
    packet = p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=bytes(9000)))

    def packets() -> Iterator[Any]:
        for number in range(2000):
            sent.append(number)
            yield packet

    limits = ServerLimits(waiting_bytes=50_000)
    with (
        P4RuntimeServer([device()], limits=limits) as server,
        connected(server, 2) as (deaf, other),
    ):
        stream = deaf.StreamChannel(packets())
        for _ in range(20):
            assert ask(other)
        stopped = len(sent)
        assert stopped < 2000
        assert ask(other)
        while sum(1 for _ in stream) < 2000:  # who reads gets an answer for each
            pass
        assert len(sent) == 2000


def test_a_read_ends_with_its_client_and_others_write_meanwhile() -> None:
    with P4RuntimeServer([device()]) as server, connected(server, 2) as (reader, other):
        stream = elect(other)
        answers = reader.Read(BUSY)
        next(answers)
        request = p4r.WriteRequest(device_id=1, election_id=U128.encode(1))
        other.Write(request, timeout=HANG_S)
        answers.cancel()
        last = list(other.Read(p4r.ReadRequest(device_id=1), timeout=HANG_S))
        assert last == []
        assert stream.is_active()
    assert server.has_ended


def test_messages_that_are_too_long_or_packed_are_refused() -> None:
    limits = ServerLimits(message_bytes=1 << 20)
    with P4RuntimeServer([device()], limits=limits) as server, connected(server) as stub:
        for size, packing, code in (
            (1 << 21, None, "RESOURCE_EXHAUSTED"),
            (1 << 21, grpc.Compression.Gzip, "UNIMPLEMENTED"),
        ):
            long = p4r.WriteRequest(role="x" * size)
            call = lambda long=long, packing=packing: [  # noqa: E731
                stub.Write(long, compression=packing, timeout=HANG_S)
            ]
            assert code_of(call) == code


def test_a_request_that_is_none_is_refused() -> None:
    with P4RuntimeServer([device()]) as server, grpc.insecure_channel(server.address) as channel:
        call = channel.stream_stream("/p4.v1.P4Runtime/Write")
        assert code_of(lambda: call(iter([b"\x0b"]), timeout=HANG_S)) == "INVALID_ARGUMENT"
        assert code_of(lambda: call(iter([]), timeout=HANG_S)) == "INVALID_ARGUMENT"


def test_a_write_of_refused_updates_tells_how_many() -> None:
    with P4RuntimeServer([device()]) as server, connected(server) as stub:
        stream = elect(stub)
        request = p4r.WriteRequest(device_id=1, election_id=U128.encode(1))
        request.updates.extend([p4r.Update(type=p4r.Update.INSERT)] * 3000)
        with pytest.raises(grpc.RpcError) as caught:
            stub.Write(request, timeout=HANG_S)
        assert "3000 of 3000; the first is number 0" in caught.value.details()
        assert DETAILS in dict(caught.value.trailing_metadata())
        stream.cancel()


def test_memory_that_is_needed_ends_calls_and_those_who_are_quick_go_on() -> None:
    limits = ServerLimits(memory_bytes=-(1 << 40))
    with P4RuntimeServer([device()], limits=limits) as server, connected(server) as stub:
        mute = stub.StreamChannel(silence())
        assert "memory is full" in mute.exception(timeout=HANG_S).details()


def test_others_of_a_siege_are_served_and_their_table_says_so() -> None:
    outcome = AttackOutcome("peace")
    with P4RuntimeServer([device()]) as server:
        others = Others(server.address, ())
        for name, act in KINDS.items():
            act(others)
            outcome.waits_s[name] = 0.125
        others.close()
    assert outcome.is_good
    assert outcome.line().split() == [
        "peace",
        "0",
        "0.125",
        "0.125",
        "0.125",
        "0.125",
        "0",
        "0.00",
        "ok",
    ]
    outcome.waits_s["read"] = 2.5
    assert not outcome.is_good


SERVE = """
import sys
from ringleaf.experiments.commands.serve import serve
serve(Path(sys.argv[1]) if sys.argv[1:] else None, p4info=None, address="127.0.0.1:0", first=1,
      count=1, ports=8, cpu_port=None, is_open=True, emit=lambda line: print(line, flush=True))
"""


def test_a_signal_ends_a_server_that_is_at_work() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVE], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[2].rstrip(",")
        with grpc.insecure_channel(address) as channel:
            stub = p4r_grpc.P4RuntimeStub(channel)
            mute = [stub.StreamChannel(silence()) for _ in range(50)]
            ask(stub)
            process.terminate()
            assert process.wait(HANG_S) == 0
            assert not any(each.is_active() for each in mute if each.exception(timeout=HANG_S))


STUCK = """
import hashlib, signal
from ringleaf.core.interrupts import ended_within
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: None)
with ended_within(0.05):
    print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", (1 << 31) - 1)  # hears no signal before it is done
"""


@pytest.mark.parametrize("number", [2, 15])
def test_a_signal_ends_a_process_whose_main_thread_does_not_listen(number: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUCK], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(HANG_S) == 128 + number


def test_a_program_s_code_leaves_other_threads_running() -> None:
    @handler
    def spin(arena: Any, at: int, packet: int, now_ps: int) -> int:
        return at

    assert getattr(spin, "targetoptions", {"nogil": True})["nogil"]


def test_the_siege_knows_its_attacks() -> None:
    assert len(ATTACKS) >= 13
    assert all(attack.__doc__ for attack in ATTACKS.values())
