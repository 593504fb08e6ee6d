"""P4Runtime's messages, carried out until a switch's tables are laid out."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

from finsy.proto import p4r
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from bench.soak.inputs.device import device_program
from bench.soak.inputs.kind import InputKind
from bench.soak.inputs.mutators import mutate_bytes
from ringleaf.errors import ConfigError
from ringleaf.switches.program import Program
from ringleaf.switches.server.controllers import Controllers
from ringleaf.switches.server.device import SharedDevice
from ringleaf.switches.server.service import Service

_MESSAGES: dict[bytes, Any] = {
    b"W": p4r.WriteRequest,
    b"R": p4r.ReadRequest,
    b"P": p4r.SetForwardingPipelineConfigRequest,
    b"O": p4r.PacketOut,
}


class _AnyController(Controllers):
    """Controllers of which everybody may write, as hostile input does not seek election."""

    def check_primary(self, request: Any) -> None:
        pass


@cache
def _requests() -> list[bytes]:
    """Return good messages, each after the letter of its kind."""
    program, text = device_program()
    read = p4r.ReadRequest(device_id=1)
    write = p4r.WriteRequest(device_id=1)
    for info in program.schema.tables.values():
        read.entities.add().table_entry.table_id = info.id
        for action in info.message.action_refs:
            entry = write.updates.add(type=p4r.Update.INSERT).entity.table_entry
            entry.table_id = info.id
            entry.action.action.action_id = action.id
            for field in info.message.match_fields:
                entry.match.add(field_id=field.id).exact.value = b"\1"
            for parameter in program.schema.actions[action.id].params:
                entry.action.action.params.add(param_id=parameter.id, value=b"\1")
    _add_other_entities(write, read, program)
    config = p4r.ForwardingPipelineConfig(p4info=program.p4info, p4_device_config=text)
    pipeline = p4r.SetForwardingPipelineConfigRequest(
        device_id=1, action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT, config=config
    )
    out = p4r.PacketOut(payload=bytes(60))
    messages = {b"W": write, b"R": read, b"P": pipeline, b"O": out}
    return [letter + message.SerializeToString() for letter, message in messages.items()]


def _add_other_entities(write: Any, read: Any, program: Program) -> None:
    kinds = {
        "counter_entry": (program.schema.counters, "counter_id"),
        "meter_entry": (program.schema.meters, "meter_id"),
        "register_entry": (program.schema.registers, "register_id"),
        "digest_entry": (program.schema.digests, "digest_id"),
        "action_profile_member": (program.schema.profiles, "action_profile_id"),
        "action_profile_group": (program.schema.profiles, "action_profile_id"),
        "value_set_entry": (program.schema.value_sets, "value_set_id"),
    }
    for kind, (known, key) in kinds.items():
        for number in known:
            for entity in (write.updates.add(type=p4r.Update.MODIFY).entity, read.entities.add()):
                setattr(getattr(entity, kind), key, number)
    engine = write.updates.add(type=p4r.Update.INSERT).entity.packet_replication_engine_entry
    engine.multicast_group_entry.multicast_group_id = 1
    engine.multicast_group_entry.replicas.add(egress_port=1, instance=1)
    engine = write.updates.add(type=p4r.Update.INSERT).entity.packet_replication_engine_entry
    engine.clone_session_entry.session_id = 1
    engine.clone_session_entry.replicas.add(egress_port=1, instance=1)


def _draw_request(rng: random.Random) -> bytes:
    data = rng.choice(_requests())
    letter, body = data[:1], data[1:]
    if rng.random() < 0.4:
        return letter + mutate_bytes(rng, body)
    message = _MESSAGES[letter].FromString(body)
    for _ in range(rng.choice((1, 2, 5))):
        _mutate_message(rng, message)
    return letter + bytes(message.SerializeToString())


def _mutate_message(rng: random.Random, message: Any) -> None:
    """Change one field somewhere in a message, or below it."""
    while True:
        fields = [*message.ListFields()]
        inside = [(f, v) for f, v in fields if f.type == f.TYPE_MESSAGE and not _is_map(f)]
        if inside and rng.random() < 0.85:
            field, value = rng.choice(inside)
            repeated = _is_repeated(field)
            message = rng.choice(value) if repeated else value
            continue
        break
    _mutate_field(rng, message)


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def _is_map(field: Any) -> bool:
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def _mutate_field(rng: random.Random, message: Any) -> None:
    field = rng.choice(list(message.DESCRIPTOR.fields))
    if rng.random() < 0.15:
        message.ClearField(field.name)
        return
    if _is_repeated(field):
        values = getattr(message, field.name)
        if not _is_map(field) and field.type == field.TYPE_MESSAGE:
            if values and rng.random() < 0.5:
                values.extend([values[0]] * rng.choice((1, 3, 200)))
            else:
                values.add()
        return
    if field.type == field.TYPE_MESSAGE:
        getattr(message, field.name).SetInParent()
        return
    value = _scalar(rng, field)
    try:
        setattr(message, field.name, value)
    except (TypeError, ValueError):
        message.ClearField(field.name)  # protobuf's own limits


def _scalar(rng: random.Random, field: Any) -> Any:
    if field.type == field.TYPE_BYTES:
        return rng.choice((b"", b"\0", b"\xff" * 400, rng.randbytes(rng.randrange(20))))
    if field.type == field.TYPE_STRING:
        return rng.choice(("", "x\n", "A" * 5000, "\u2028"))
    return rng.choice((0, 1, 2, -1, 255, 65_536, (1 << 31) - 1, (1 << 32) - 1, (1 << 63) - 1))


def _feed_request(data: bytes, folder: Path) -> None:
    letter, body = data[:1], data[1:]
    try:
        message = _MESSAGES.get(letter, p4r.WriteRequest).FromString(body)
    except DecodeError as error:
        raise ConfigError(f"gRPC refuses it: {error}") from error
    program, text = device_program()
    device = SharedDevice(1, cpu_port=64, inject=lambda _: None)
    device.controllers = _AnyController(1)
    device.pipelines.load(program, text)
    service = Service([device])
    match letter:
        case b"R":
            for answer in service.read(message):
                answer.SerializeToString()
        case b"P":
            service.set_pipeline(message)
        case b"O":
            device.packet_out(message)
        case _:
            try:
                service.write(message)
            finally:
                device.switch.commit()


KIND = InputKind(16, _draw_request, _feed_request)
