"""The end of a handler: values for digests, egress clones and packets that come round again.

Only programs that ask for these have any of this code.
Source: behavioral-model `targets/simple_switch/simple_switch.cpp`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ringleaf.switches.engine.digests import message_words
from ringleaf.switches.engine.layout import (
    CLONE,
    RECIRCULATED,
    REQUESTS,
    RESUBMIT_SHIFT,
    ROUND,
)
from ringleaf.switches.generate.code import FunctionCode
from ringleaf.switches.generate.state import digest_words
from ringleaf.switches.generate.storage import (
    CLONE_FIELDS,
    CLONE_SESSION,
    ENGINE,
    LEARN,
    RECIRCULATE,
    RESUBMIT,
)
from ringleaf.switches.source import (
    STACKS,
    STANDARD,
    Constant,
    Expression,
    FieldSource,
    Primitive,
    ProgramSource,
)

INSTANCE_TYPE = FieldSource(STANDARD, "instance_type")

SET_BETWEEN = {
    FieldSource(STANDARD, name): bits
    for name, bits in {
        "egress_port": 9,
        "instance_type": 32,
        "enq_timestamp": 32,
        "enq_qdepth": 19,
        "deq_timedelta": 32,
        "deq_qdepth": 19,
        "egress_rid": 16,
    }.items()
}
"""Fields that the traffic manager sets between ingress and egress, with v1model's bits.

A program of P4_14 may have fewer, and then keeps the low ones.
"""


def begin_again(code: FunctionCode) -> None:
    """Write code that restores the metadata of a packet that comes round again.

    The packet's row has the instance type, and the number of the field list that was kept. The
    type is set last, as in BMv2: a list that has it does not keep the former one.
    """
    code.add("again = row[AGAIN]")
    with code.block("if again == 0:"):
        code.add("row[PASSES] = 0")
    with code.block("else:"):
        code.add("row[AGAIN] = 0")
        for number, fields in sorted(code.source.field_lists.items()):
            with code.block(f"if again >> 8 == {number}:"):
                for field in fields:
                    load(code, field)
        code.set(INSTANCE_TYPE, ["U(again & 0xFF)"])


def send_digests(code: FunctionCode) -> None:
    """Put the struct that the packet's last `digest` named into the switch's queue."""
    for number in code.source.digests:
        with code.block(f"if {code.read(LEARN)} == {code.u(number)}:"):
            _send(code, number)


def pack(code: FunctionCode, primitive: Primitive) -> None:
    """Put a struct into the switch's queue as it is now; PSA's digests do not wait."""
    (digest,) = primitive.parameters
    assert isinstance(digest, Constant)
    _send(code, digest.value)


def _send(code: FunctionCode, number: int) -> None:
    digest, words = code.source.digests[number], digest_words(code.source)
    row, index = code.u(message_words(words.values())), list(code.source.digests).index(number)
    code.add(
        f"message = begin_message(state, U(block[DIGESTS_AT]), {code.u(index)}, {row}, now_ps)"
    )
    with code.block(f"if message != {code.u(0)}:"):
        values = [
            word
            for element, count in zip(digest.elements, words[digest.name], strict=True)
            for word in _words(code, element, count)
        ]
        for i, value in enumerate(values):
            code.add(f"state[message + {code.u(i)}] = {value}")


def leave_requests(code: FunctionCode) -> None:
    """Write code that requests a resubmission; clones are in the row already."""
    code.add(f"fields[{REQUESTS}] |= {code.read(RESUBMIT)} << {code.u(RESUBMIT_SHIFT)}")


def clone_egress(code: FunctionCode, kept: Iterable[FieldSource]) -> None:
    """Make a twin of the packet, as egress leaves it, with metadata of only its field list."""
    with code.block(f"if {code.is_set(CLONE_SESSION)}:"):
        for field in kept:
            if _is_metadata(code.source, field):
                clear(code, field)
            else:
                store(code, field)
        for number, fields in sorted(code.source.field_lists.items()):
            with code.block(f"if {code.read(CLONE_FIELDS)} == {code.u(number)}:"):
                for field in fields:
                    store(code, field)
        code.add(f"fields[{REQUESTS}] = {code.read(CLONE_SESSION)}")
        code.add("row[TWIN] = copy_packet(arena, packet)")
        code.add(f"flags |= {CLONE}")


def recirculate(code: FunctionCode) -> None:
    """Send the packet, as it was deparsed, to ingress, with metadata of only its field list."""
    with code.block(f"if {code.is_set(RECIRCULATE)}:"):
        for field in sorted(
            {field for fields in code.source.field_lists.values() for field in fields},
            key=lambda item: (item.header, item.name),
        ):
            store(code, field)
        code.add(f"row[AGAIN] = {RECIRCULATED} | I({code.read(RECIRCULATE)}) << 8")
        code.add(f"return flags | {ROUND}")


def load(code: FunctionCode, field: FieldSource) -> None:
    """Write code that loads a field from its slot; a field without a slot is never written."""
    slot = code.storage.slots.get(field)
    if code.storage.lane(field) is None and slot is not None:
        if code.storage.shape(field).width < SET_BETWEEN.get(field, 0):
            code.set_word(field, f"fields[{slot}]", SET_BETWEEN[field])
            return
        for i, name in enumerate(code.storage.names(field)):
            code.add(f"{name} = fields[{slot + i}]")


def store(code: FunctionCode, field: FieldSource) -> None:
    """Write code that stores a field in its slot of the packet's row; one without is not kept."""
    slot = code.storage.slots.get(field)
    if code.storage.lane(field) is None and slot is not None:
        for i, name in enumerate(code.storage.names(field)):
            code.add(f"fields[{slot + i}] = {name}")


def clear(code: FunctionCode, field: FieldSource) -> None:
    """Write code that sets a field's slot to zero."""
    slot = code.storage.slots.get(field)
    if code.storage.lane(field) is None and slot is not None:
        for i in range(len(code.storage.names(field))):
            code.add(f"fields[{slot + i}] = {code.u(0)}")


def _is_metadata(source: ProgramSource, field: FieldSource) -> bool:
    header = source.headers.get(field.header)
    return header is not None and header.metadata and field.header not in (ENGINE, STACKS)


def _words(code: FunctionCode, element: Expression, count: int) -> list[str]:
    if isinstance(element, FieldSource):
        return code.bits_of(element)
    assert isinstance(element, Constant)
    return [code.u(element.value >> 64 * i & (1 << 64) - 1) for i in range(count)]
