"""A difference as a test in STF, which expects BMv2's outputs of each packet."""

from __future__ import annotations

from collections.abc import Iterator

from ringleaf.errors import ConfigError
from ringleaf.switches.bmv2.commands import CommandWriter
from ringleaf.switches.engine.shapes import TableShape
from ringleaf.switches.engine.updates import InstalledEntry, MeterUpdate, TableUpdate, Update
from ringleaf.switches.fuzz.contest import Disagreement
from ringleaf.switches.program import Program
from ringleaf.switches.stf.entries import GREATEST_PRIORITY


def as_stf(program: Program, disagreement: Disagreement) -> str:
    """Return the test; updates that STF can't express are comments with BMv2's commands."""
    writer = CommandWriter(program)
    shapes = {shape.table.name: shape for shape in program.module.shapes}
    lines = [
        line
        for update in disagreement.updates
        for line in _update_lines(program, shapes, writer, update)
    ]
    answers = (*disagreement.earlier, disagreement.theirs)
    hidden = disagreement.hidden or [(b"",) * len(outputs) for outputs in answers]
    for (port, data), outputs, masks in zip(disagreement.packets, answers, hidden, strict=True):
        lines.append(f"packet {port} {data.hex()}")
        lines += [
            f"expect {to} {_pattern(sent, mask)}$"
            for (to, sent), mask in zip(outputs, masks, strict=True)
        ]
    return "".join(f"{line}\n" for line in lines)


def _pattern(data: bytes, mask: bytes) -> str:
    """Return the bytes in hexadecimal, with asterisks for those that a mask hides."""
    if not mask:
        return data.hex()
    pairs = zip(data, mask, strict=True)
    return "".join("**" if hidden else f"{byte:02x}" for byte, hidden in pairs)


def _update_lines(
    program: Program, shapes: dict[str, TableShape], writer: CommandWriter, update: Update
) -> Iterator[str]:
    commands = writer.lines(update)
    if not isinstance(update, TableUpdate):
        known = ("mc_", "mirroring_", "register_", "counter_", "meter_")
        direct = isinstance(update, MeterUpdate) and update.entry is not None
        for line in commands:
            yield line if line.startswith(known) and not direct else f"# not in STF: {line}"
        return
    entry, shape = update.entry, shapes[update.table]
    assert entry is not None
    if entry.indirect is not None:
        yield f"# not in STF: {commands[0]}"
        return
    action = program.source.actions[entry.action]
    arguments = ", ".join(
        f"{name}:{value:#x}" for name, value in zip(action.parameters, entry.arguments, strict=True)
    )
    call = f"{action.name}({arguments})"
    if update.is_default:
        yield f"setdefault {update.table} {call}"
        return
    try:
        keys = " ".join(_keys(shape, entry))
    except ConfigError:
        yield f"# not in STF: {commands[0]}"
        return
    priority = f"{GREATEST_PRIORITY + entry.precedence} " if shape.prioritized else ""
    yield f"add {update.table} {priority}{keys} {call}"


def _keys(shape: TableShape, entry: InstalledEntry) -> Iterator[str]:
    """Yield the keys; STF has no ranges other than single values and whole ranges."""
    columns = zip(shape.table.keys, shape.widths, entry.match, strict=True)
    for key, width, (value, mask) in columns:
        full = (1 << width) - 1
        match key.kind:
            case "lpm":
                yield f"{key.name}:{value:#x}/{mask.bit_count()}"
            case "ternary":
                yield f"{key.name}:0b{_binary(value, mask, width)}"
            case "optional" if mask != full:
                continue
            case "range" if (value, mask) == (0, full):
                continue
            case "range" if value != mask:
                raise ConfigError(f"stf: no word for a range, got {value:#x} to {mask:#x}")
            case _:
                yield f"{key.name}:{value:#x}"


def _binary(value: int, mask: int, width: int) -> str:
    return "".join(
        str(value >> bit & 1) if mask >> bit & 1 else "*" for bit in reversed(range(width))
    )
