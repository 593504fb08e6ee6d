"""The same writes to BMv2's P4Runtime server and to ours: the same can be read."""

from __future__ import annotations

import random
from typing import Any

import pytest
from controller_entities import (
    CPU_PORT,
    P4INFO,
    PATH,
    PORTS,
    SCHEMA,
    controller_program,
    destinations,
    encode,
    group,
    guard,
    key_of,
    prefixes,
    session,
)  # fmt: skip
from finsy.p4entity import decode_entity
from finsy.proto import p4r
from p4runtime_client import DELETE, INSERT, MODIFY, Client

from ringleaf.switches.bmv2 import process as bmv2
from ringleaf.switches.p4runtime.replication import port_of
from ringleaf.switches.server.device import SharedDevice
from ringleaf.switches.server.server import P4RuntimeServer

pytestmark = pytest.mark.bmv2

KINDS = [destinations, guard, prefixes, group, session]  # BMv2 has no registers to write
STEPS = 300


def random_updates(seed: int) -> list[tuple[int, Any]]:
    """Updates that all fit: what is inserted is not there yet, and so on.

    Constant entries are left out: section 9.1.4 gives them priorities from 1, BMv2 below 2^31.
    """
    rng = random.Random(seed)
    there: set[tuple[object, ...]] = set()
    updates = []
    for _ in range(STEPS):
        entity = encode(rng.choice(KINDS)(rng))
        engine = entity.packet_replication_engine_entry
        if engine.HasField("clone_session_entry"):
            engine.clone_session_entry.ClearField("packet_length_bytes")  # BMv2 can't truncate
        key = key_of(entity)
        if key in there:
            kind = rng.choice([MODIFY, DELETE])
        elif _is_full(there, key):
            continue
        else:
            kind = INSERT
        (there.discard if kind == DELETE else there.add)(key)
        updates.append((kind, entity))
    return updates


def _is_full(there: set[tuple[object, ...]], key: tuple[object, ...]) -> bool:
    return key[0] == "table_entry" and sum(other[:2] == key[:2] for other in there) >= 8


def state(client: Client) -> list[str]:
    engine = p4r.PacketReplicationEngineEntry
    tables = [SCHEMA.tables[name].id for name in ("destinations", "guard", "prefixes")]
    asked = [
        *(p4r.Entity(table_entry=p4r.TableEntry(table_id=number)) for number in tables),
        p4r.Entity(
            packet_replication_engine_entry=engine(multicast_group_entry=p4r.MulticastGroupEntry())
        ),
        p4r.Entity(
            packet_replication_engine_entry=engine(clone_session_entry=p4r.CloneSessionEntry())
        ),
    ]
    return sorted(map(essence, client.read(*asked)))


def essence(entity: Any) -> str:
    """What any server must keep of an entity; the order of replicas is its own."""
    found = decode_entity(entity, SCHEMA)
    if entity.HasField("table_entry"):
        match = sorted((found.match or {}).items())
        return repr((found.table_id, match, found.priority, found.action))
    message = entity.packet_replication_engine_entry
    one, other = message.multicast_group_entry, message.clone_session_entry
    pairs = sorted((port_of(r), r.instance) for r in [*one.replicas, *other.replicas])
    numbers = one.multicast_group_id, other.session_id, other.packet_length_bytes
    return repr((numbers, pairs))


@pytest.mark.parametrize("seed", range(3))
def test_both_read_what_both_were_told(seed: int) -> None:
    device = SharedDevice(1, ports=PORTS, cpu_port=CPU_PORT)
    device.pipelines.load(controller_program(), PATH.read_bytes())
    with (
        bmv2.Bmv2(PATH, P4INFO) as other,
        P4RuntimeServer([device]) as server,
        Client(other.address) as theirs,
        Client(server.address) as ours,
    ):
        for client in (theirs, ours):
            client.bid(2)
            for update in random_updates(seed):
                client.write(update)
        assert state(ours) == state(theirs)
