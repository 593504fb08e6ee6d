"""Random entities of `programs/controller.p4`, and devices that run it."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import finsy as fy
from finsy.p4entity import P4ValueSetMember
from finsy.proto import U128, p4d, p4r

from ringleaf.switches.program import Program
from ringleaf.switches.server.device import SharedDevice
from ringleaf.switches.server.service import Service

PATH = Path(__file__).parent / "programs" / "controller.json"
P4INFO = PATH.with_suffix(".p4info.txtpb")
CPU_PORT = 64
PORTS = 8
SCHEMA = fy.P4Schema(P4INFO)


@cache
def controller_program() -> Program:
    return Program.load(PATH)


class Listener:
    """A controller's stream that remembers what it is sent."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def send(self, message: Any) -> None:
        self.messages.append(message)


class Desk:
    """A device with its service and a primary controller, without gRPC between them."""

    def __init__(self, number: int = 1) -> None:
        self.now_ps = 0
        self.device = SharedDevice(
            number, ports=PORTS, cpu_port=CPU_PORT, clock=lambda: self.now_ps
        )
        self.device.pipelines.load(controller_program(), PATH.read_bytes())
        self.service = Service([self.device])
        self.stream = Listener()
        bid = p4r.MasterArbitrationUpdate(device_id=number, election_id=U128.encode(1))
        self.device.controllers.arbitrate(self.stream, bid)
        self.stream.messages.clear()

    def write(self, *updates: tuple[int, Any]) -> None:
        request = p4r.WriteRequest(device_id=self.device.number, election_id=U128.encode(1))
        for kind, entity in updates:
            request.updates.append(p4r.Update(type=kind, entity=entity))
        self.service.write(request)

    def read(self, *entities: Any) -> list[Any]:
        request = p4r.ReadRequest(device_id=self.device.number, entities=entities)
        return [entity for part in self.service.read(request) for entity in part.entities]

    def state(self) -> list[Any]:
        """All that can be read, with counters and meters."""
        return self.read(*everything())


def everything() -> list[Any]:
    """Wildcards of all kinds of entities."""
    engine = p4r.PacketReplicationEngineEntry
    tables = []
    for table in SCHEMA.tables:
        asked = p4r.TableEntry(table_id=table.id)
        asked.counter_data.SetInParent()
        asked.meter_config.SetInParent()
        tables += [asked, p4r.TableEntry(table_id=table.id, is_default_action=True)]
    return [
        *(p4r.Entity(table_entry=asked) for asked in tables),
        p4r.Entity(action_profile_member=p4r.ActionProfileMember()),
        p4r.Entity(action_profile_group=p4r.ActionProfileGroup()),
        p4r.Entity(meter_entry=p4r.MeterEntry()),
        p4r.Entity(counter_entry=p4r.CounterEntry()),
        p4r.Entity(direct_meter_entry=p4r.DirectMeterEntry()),
        p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry()),
        p4r.Entity(
            packet_replication_engine_entry=engine(multicast_group_entry=p4r.MulticastGroupEntry())
        ),
        p4r.Entity(
            packet_replication_engine_entry=engine(clone_session_entry=p4r.CloneSessionEntry())
        ),
        p4r.Entity(value_set_entry=p4r.ValueSetEntry()),
        p4r.Entity(register_entry=p4r.RegisterEntry()),
        p4r.Entity(digest_entry=p4r.DigestEntry()),
    ]


def encode(entity: Any) -> Any:
    """Return the p4.v1.Entity of a finsy entity."""
    return entity.encode(SCHEMA)


def address(rng: random.Random) -> int:
    return rng.randrange(1, 6)


def replicas(rng: random.Random) -> list[tuple[int, int]]:
    pairs = [(port, instance) for port in range(PORTS + 1) for instance in range(3)]
    return rng.sample(pairs, rng.randrange(1, 5))


def action(rng: random.Random) -> Any:
    return rng.choice([fy.Action("forward", port=rng.randrange(PORTS)), fy.Action("drop")])


def sources(rng: random.Random) -> Any:
    match = fy.Match({"src": address(rng), "ingress_port": rng.randrange(3)})
    rate = rng.randrange(1, 1000)
    return fy.P4TableEntry(
        "sources",
        match=match,
        action=fy.Action("known"),
        idle_timeout_ns=rng.choice([0, 10**6]),
        metadata=rng.choice([b"", b"cookie"]),
        controller_metadata=rng.choice([0, 7]),
        counter_data=fy.P4CounterData(byte_count=rng.randrange(99), packet_count=rng.randrange(9)),
        meter_config=rng.choice(
            [None, fy.P4MeterConfig(cir=rate, cburst=8, pir=rate * 2, pburst=16)]
        ),
    )


def destinations(rng: random.Random) -> Any:
    match = fy.Match({"dst": rng.randrange(12)})
    return fy.P4TableEntry("destinations", match=match, action=action(rng))


def guard(rng: random.Random) -> Any:
    match: dict[str, Any] = {}
    if rng.random() < 0.7:
        mask = rng.choice([0xFF, 0xFFFFFFFFFFFF, 0x010000000000])
        match["dst"] = (rng.randrange(1 << 48) & mask, mask)
    if rng.random() < 0.7:
        match["type"] = (rng.randrange(3), rng.randrange(3, 6))
    if rng.random() < 0.5:
        match["ingress_port"] = rng.randrange(3)
    return fy.P4TableEntry(
        "guard", match=fy.Match(match), action=fy.Action("drop"), priority=rng.randrange(1, 4)
    )


def prefixes(rng: random.Random) -> Any:
    length = rng.randrange(49)
    match = {"dst": (rng.getrandbits(length) << (48 - length), length)} if length else {}
    return fy.P4TableEntry("prefixes", match=fy.Match(match), action=action(rng))


def group(rng: random.Random) -> Any:
    metadata = rng.choice([b"", b"flood"])
    return fy.P4MulticastGroupEntry(rng.randrange(1, 5), replicas=replicas(rng), metadata=metadata)


def session(rng: random.Random) -> Any:
    return fy.P4CloneSessionEntry(
        rng.randrange(1, 5), replicas=replicas(rng), packet_length_bytes=rng.choice([0, 64])
    )


def digest(rng: random.Random) -> Any:
    return fy.P4DigestEntry(
        "learn_t", max_list_size=rng.randrange(3), max_timeout_ns=rng.randrange(3)
    )


INSERTED: list[Callable[[random.Random], Any]] = [
    sources, destinations, guard, prefixes, group, session, digest,
]  # fmt: skip


def counter_cell(rng: random.Random) -> Any:
    data = fy.P4CounterData(byte_count=rng.randrange(9), packet_count=rng.randrange(9))
    return fy.P4CounterEntry("arrivals", index=rng.randrange(8), data=data)


def meter_cell(rng: random.Random) -> Any:
    rate = rng.randrange(1, 100)
    config = rng.choice([None, fy.P4MeterConfig(cir=rate, cburst=5, pir=rate + 5, pburst=9)])
    return fy.P4MeterEntry("arrival_rate", index=rng.randrange(8), config=config)


def register_cell(rng: random.Random) -> Any:
    return fy.P4RegisterEntry(
        "last_source", index=rng.randrange(8), data=rng.getrandbits(rng.choice([3, 48]))
    )


def value_set(rng: random.Random) -> Any:
    types = rng.sample(range(10), rng.randrange(5))
    members = [P4ValueSetMember(t) for t in types]
    return fy.P4ValueSetEntry("watched", members=members)


def default(rng: random.Random) -> Any:
    return fy.P4TableEntry(
        "destinations", is_default_action=True, action=action(rng), metadata=b"default"
    )


MODIFIED: list[Callable[[random.Random], Any]] = [
    counter_cell, meter_cell, register_cell, value_set, default,
]  # fmt: skip


def key_of(entity: Any) -> tuple[object, ...]:
    """Return what tells an entity from others of its kind."""
    kind = entity.WhichOneof("entity")
    message = getattr(entity, kind)
    match kind:
        case "table_entry":
            match = tuple(field.SerializeToString() for field in message.match)
            return kind, message.table_id, match, message.priority, message.is_default_action
        case "packet_replication_engine_entry":
            group, session = message.multicast_group_entry, message.clone_session_entry
            return kind, group.multicast_group_id, session.session_id
        case "value_set_entry" | "digest_entry":
            return (kind,)
        case _:
            return kind, message.index.index


def register_data(number: int) -> Any:
    return p4d.P4Data(bitstring=number.to_bytes(6, "big"))
