"""The kinds of input from outside, with functions that make hostile ones and that read them.

Each is fed as far as possible without machine code: a program until its module is Python byte
code, messages until a switch's tables are laid out.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from finsy.proto import p4r
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from ringleaf.collectives.files.algorithm import read_algorithm
from ringleaf.collectives.files.registry import FORMATS
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.errors import ConfigError, RingleafError
from ringleaf.experiments.soak.mutators import mutate_bytes, mutate_json, mutate_text
from ringleaf.hosts.training.model import MODELS
from ringleaf.shipped import P4_BUILD, P4INFO_SUFFIX, SPECS
from ringleaf.switches.program import Program
from ringleaf.switches.server.controllers import Controllers
from ringleaf.switches.server.device import Device
from ringleaf.switches.server.service import Service
from ringleaf.switches.server.status import BatchError

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "switches" / "programs"
TRACES = ROOT / "tests" / "traces"
STF = ROOT / "tests" / "switches" / "stf"
MOST_BYTES = 2 << 20  # of a changed program: larger ones take long to be refused
LONGEST_SPEC = 12_000  # bytes, with few exceptions: YAML takes a second for 200,000
LARGEST = 60_000  # bytes of a program that is worth changing

REFUSALS: tuple[type[Exception], ...] = (RingleafError, BatchError)
"""The errors by which input may be refused."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of input, with functions that draw and feed one.

    `feed` takes an input, and an empty folder for it alone.
    """

    share: int  # of all inputs
    draw: Callable[[random.Random], bytes]
    feed: Callable[[bytes, Path], None]


_NEEDED = (
    *("experiments.jobs.session", "experiments.spec.file"),
    *("networks.traces.entries", "networks.traces.trace", "switches.stf.parser"),
)
"""Modules that feeders import when they feed, which takes a while."""


def prepare() -> None:
    """Import the modules that feeding needs, and read the common files."""
    for name in _NEEDED:
        import_module(f"ringleaf.{name}")
    for kind in KINDS.values():
        kind.draw(random.Random(0))
    _device_program()


# Programs.


@cache
def _programs() -> list[bytes]:
    paths = sorted([*P4_BUILD.glob("*.json"), *PROGRAMS.glob("*.json")])
    return [path.read_bytes() for path in paths if path.stat().st_size < LARGEST]


def _draw_program(rng: random.Random) -> bytes:
    data = rng.choice(_programs())
    changed = mutate_json(rng, data)
    return changed if len(changed) <= MOST_BYTES else mutate_bytes(rng, data)


def _feed_program(data: bytes, folder: Path) -> None:
    path = folder / "program.json"
    path.write_bytes(data)
    Program.load(path)


# Captures.


@cache
def _captures() -> list[bytes]:
    return [path.read_bytes()[:3000] for path in sorted(TRACES.glob("*/*/port*.pcap"))]


def _draw_capture(rng: random.Random) -> bytes:
    data = rng.choice(_captures())
    if rng.random() < 0.4:
        data = _as_pcapng(rng, data)
    return mutate_bytes(rng, data)


def _as_pcapng(rng: random.Random, data: bytes) -> bytes:
    """Return a pcapng file: a section, an interface and blocks with some bytes of a capture."""
    section = _block(0x0A0D0D0A, (0x1A2B3C4D).to_bytes(4, "little") + bytes(12))
    options = bytes((9, 0, 1, 0, rng.choice((6, 9, 0x80, 0xFF)), 0, 0, 0))
    blocks = [section, _block(1, bytes((1, 0, 0, 0, 0, 0, 0, 0)) + options)]
    for number in range(rng.randrange(5)):
        size = rng.choice((14, 60, 1500))
        sizes = (0, 0, number, size, size)
        body = b"".join(value.to_bytes(4, "little") for value in sizes) + data[:size].ljust(size)
        blocks.append(_block(6, body + bytes(-size % 4)))
    return b"".join(blocks)


def _block(kind: int, body: bytes) -> bytes:
    size = (12 + len(body)).to_bytes(4, "little")
    return kind.to_bytes(4, "little") + size + body + size


def _feed_capture(data: bytes, folder: Path) -> None:
    from ringleaf.networks.traces.pcap_read import read_packets

    path = folder / "packets.pcap"
    path.write_bytes(data)
    file = read_packets(path)
    for number in range(len(file)):
        assert 0 < len(file.packet(number)) <= len(data)


# P4Runtime.

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
def _device_program() -> tuple[Program, bytes]:
    path = PROGRAMS / "controller.json"
    return Program.load(path), path.read_bytes()


@cache
def _requests() -> list[bytes]:
    """Return good messages, each after the letter of its kind."""
    program, text = _device_program()
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
    program, text = _device_program()
    device = Device(1, cpu_port=64, inject=lambda _: None)
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


# P4Info and entries as text.


@cache
def _texts(pattern: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted(PROGRAMS.glob(pattern))]


def _draw_p4info(rng: random.Random) -> bytes:
    return mutate_text(rng, rng.choice(_texts(f"*{P4INFO_SUFFIX}")))


def _feed_p4info(data: bytes, folder: Path) -> None:
    program, _ = _device_program()
    path = folder / f"program{P4INFO_SUFFIX}"
    path.write_bytes(data)
    other = Program(program.source, program.module, path)
    other.schema.check()
    assert other.encoder


# Specs.


@cache
def _specs() -> list[bytes]:
    paths = [*SPECS.glob("*.yaml"), *sorted(MODELS.glob("*.yaml"))[:2]]
    return [path.read_bytes()[:3000].rpartition(b"\n")[0] for path in paths]


def _draw_spec(rng: random.Random) -> bytes:
    changed = _changed_spec(rng)
    return (
        changed if len(changed) <= LONGEST_SPEC or rng.random() < 0.01 else changed[:LONGEST_SPEC]
    )


def _changed_spec(rng: random.Random) -> bytes:
    data = rng.choice(_specs())
    if rng.random() < 0.3:
        document = json.dumps(yaml.safe_load(data)).encode()
        return mutate_json(rng, document)  # JSON is YAML, too
    if rng.random() < 0.05:
        return b"a0: &a0 [x, x]\n" + b"".join(
            b"a%d: &a%d [*a%d, *a%d]\n" % (i, i, i - 1, i - 1) for i in range(1, 40)
        )
    return mutate_text(rng, data)


def _feed_spec(data: bytes, folder: Path) -> None:
    from ringleaf.experiments.spec.file import read_cases
    from ringleaf.experiments.spec.options import JOBS, resolve, resolve_jobs, run_name
    from ringleaf.hosts.training.model import read_model

    path = folder / "spec.yaml"
    path.write_bytes(data)
    if b"layers:" in data:
        read_model(path)
    else:
        for case in read_cases(path)[:20]:
            if JOBS in case:
                resolve_jobs(case)
            else:
                resolve(case)
                _check_name(run_name(case))


def _check_name(name: str) -> None:
    assert "/" not in name, f"a run's folder lies in runs, got {name!r}"
    assert name not in ("", ".", ".."), f"a run's folder lies in runs, got {name!r}"


def _draw_options(rng: random.Random) -> bytes:
    from ringleaf.experiments.spec.options import OPTIONS

    given = {name: option.default for name, option in OPTIONS.items() if rng.random() < 0.4}
    return mutate_json(rng, json.dumps(given | {"topo": "fattree,k=4"}).encode())


def _feed_options(data: bytes, folder: Path) -> None:
    from ringleaf.experiments.spec.options import make_command, resolve, run_name
    from ringleaf.topologies.registry import parse

    try:
        given = json.loads(data)
    except (ValueError, RecursionError):
        return  # options come as texts
    if not isinstance(given, dict):
        return
    typed = {str(key): value for key, value in given.items() if isinstance(value, str)}
    spec = resolve(typed)
    make_command(typed)
    _check_name(run_name(typed))
    parse(spec.topo)


# STF.


@cache
def _stf() -> list[bytes]:
    return [path.read_bytes() for path in sorted(STF.glob("*.stf"))]


def _draw_stf(rng: random.Random) -> bytes:
    return mutate_text(rng, rng.choice(_stf()))


def _feed_stf(data: bytes, folder: Path) -> None:
    from ringleaf.switches.stf.entries import EntryTranslator
    from ringleaf.switches.stf.parser import read_stf
    from ringleaf.switches.stf.statements import AddEntry, SetDefault

    path = folder / "test.stf"
    path.write_bytes(data)
    translator = EntryTranslator(_device_program()[0])
    for statement in read_stf(path):
        try:
            if isinstance(statement, AddEntry):
                translator.add("here", statement)
            elif isinstance(statement, SetDefault):
                translator.set_default("here", statement)
        except RingleafError:
            pass  # the statement is of another program


# Traces: one of their files, after its name and a zero.


@cache
def _trace() -> Path:
    return TRACES / "l2l3"


def _draw_trace(rng: random.Random) -> bytes:
    names = (
        ["trace.yaml"] * 6
        + ["entries.txtpb"] * 2
        + ["in/port1.pcap", "SHA256SUMS", "out/port2.pcap"]
    )
    name = rng.choice([*names, "later.txtpb", "arrivals.npy"])
    source = TRACES / "switchml" / name if name == "arrivals.npy" else _trace() / name
    data = source.read_bytes()
    changed = (mutate_text if source.suffix in (".yaml", ".txtpb", "") else mutate_bytes)(rng, data)
    return name.encode() + b"\0" + changed


def _feed_trace(data: bytes, folder: Path) -> None:
    from ringleaf.networks.traces.checksums import changed_files
    from ringleaf.networks.traces.entries import load_schema, read_entries
    from ringleaf.networks.traces.trace import open_trace

    name, _, body = data.partition(b"\0")
    trace = folder / "trace"
    shutil.copytree(_trace(), trace)
    (trace / "SHA256SUMS").unlink()
    place = (trace / name.decode("utf-8", "replace")).resolve()
    if place.is_relative_to(trace) and place.parent.is_dir() and not place.is_dir():
        place.write_bytes(body)
    if name == b"arrivals.npy":
        with (trace / "trace.yaml").open("a") as file:
            file.write("arrivals: arrivals.npy\n")
    changed_files(trace)
    opened = open_trace(trace)
    schema = load_schema(opened.manifest.program, opened.manifest.p4info)
    for write in opened.manifest.writes:
        read_entries(write.path, schema)


# Schedules: their text, after the format's name and a zero.


@cache
def _schedules() -> list[bytes]:
    made = [ALGORITHMS[name].build(3) for name in ("ring", "alltoall", "broadcast")]
    texts = [(name, FORMATS[name].write(each)) for name in FORMATS for each in made]
    return [f"{name}\0{text}".encode() for name, text in texts]


def _draw_schedule(rng: random.Random) -> bytes:
    name, _, text = rng.choice(_schedules()).partition(b"\0")
    if rng.random() < 0.4:
        return name + b"\0" + mutate_text(rng, text)
    digits = [place for place, letter in enumerate(text) if letter in b"0123456789"]
    changed = bytearray(text)
    for place in rng.sample(digits, min(len(digits), rng.choice((1, 2, 5)))):
        changed[place] = rng.choice(b"01239-")
    return name + b"\0" + bytes(changed)


def _feed_schedule(data: bytes, folder: Path) -> None:
    name, _, text = data.partition(b"\0")
    path = folder / f"schedule.{'xml' if name == b'xml' else 'csv'}"
    path.write_bytes(text)
    algorithm = read_algorithm(path)
    assert algorithm.ranks is not None
    algorithm.build(algorithm.ranks, size_bytes=1 << 20)


KINDS: dict[str, Kind] = {
    "program": Kind(24, _draw_program, _feed_program),
    "capture": Kind(16, _draw_capture, _feed_capture),
    "request": Kind(16, _draw_request, _feed_request),
    "p4info": Kind(6, _draw_p4info, _feed_p4info),
    "spec": Kind(12, _draw_spec, _feed_spec),
    "options": Kind(10, _draw_options, _feed_options),
    "stf": Kind(8, _draw_stf, _feed_stf),
    "trace": Kind(8, _draw_trace, _feed_trace),
    "schedule": Kind(8, _draw_schedule, _feed_schedule),
}
