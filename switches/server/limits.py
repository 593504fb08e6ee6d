"""How much clients may ask of a P4Runtime server, in bytes and in time."""

from __future__ import annotations

from dataclasses import dataclass

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """The limits of one server. They are for all of its clients together, unless they say more."""

    message_bytes: int = 6 * MIB  # of one request: programs and batches
    info_bytes: int = MIB  # of the request that sets a pipeline, without the BMv2 JSON
    info_objects: int = 20_000  # of P4Info: tables, actions, registers and so on
    json_values: int = 500_000  # of the BMv2 JSON, commas and brackets counted
    entity_bytes: int = 64 * KIB  # of one update or entity, or one message of a stream
    items: int = 100_000  # updates of a Write, entities of a Read
    calls: int = 6000  # at a time, 26 KiB each, without the streams of controllers that have bid
    connections: int = 2048
    waiting_bytes: int = 256 * KIB  # for one controller that does not read
    memory_bytes: int = 200 * MIB  # of this process, beyond what it had when the server began
    state_bytes: int = 128 * MIB  # of that, what new entries and programs may take
    patience_s: float = 30.0  # for a client that neither sends what is missing nor reads
    slice_s: float = 0.002  # of work at a stretch; others come in between
    farewell_s: float = 1.0  # to end calls, when the server ends


LIMITS = ServerLimits()
FLEET_LIMITS = ServerLimits(memory_bytes=4 * GIB, state_bytes=3 * GIB)
"""For live networks: many switches in one process, to which only its own user can connect."""
