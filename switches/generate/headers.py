"""The primitives that make headers valid, make them invalid, copy and move them.

Source: behavioral-model `targets/simple_switch/primitives.cpp`, `src/bm_sim/core/primitives.cpp`,
`src/bm_sim/stacks.cpp` (as built for P4_16).
"""

from __future__ import annotations

from collections.abc import Sequence

from ringleaf.switches.generate.code import FunctionCode
from ringleaf.switches.generate.storage import LENGTH, valid, varbits
from ringleaf.switches.source import (
    STACKS,
    Constant,
    Expression,
    FieldSource,
    Named,
    Primitive,
    ProgramSource,
)


def fields_of(source: ProgramSource, header: Named) -> tuple[FieldSource, ...]:
    """Return references to all fields of a header, in its order."""
    return tuple(FieldSource(header.name, item.name) for item in source.headers[header.name].fields)


def others_in_union(source: ProgramSource, header: str) -> list[str]:
    """Return the headers that are invalid while this one is valid."""
    return [name for name in source.instances.union_of(header) if name != header]


def invalidate_others(code: FunctionCode, header: str) -> None:
    """Write code that makes the other headers of a header's union invalid."""
    for name in others_in_union(code.source, header):
        code.set(valid(name), [code.u(0)])


def add_header(code: FunctionCode, primitive: Primitive) -> None:
    """Write code of `setValid`, which sets all fields to zero if the header was invalid."""
    header = primitive.parameters[0]
    assert isinstance(header, Named)
    flag = valid(header.name)
    with code.block(f"if {code.read(flag)} == {code.u(0)}:"):
        for run in code.storage.runs_of(header.name):
            with code.block(f"for lane in range({run.start}, {run.start + run.count}):"):
                code.add("lanes[lane] = 0")
        for field in fields_of(code.source, header):
            varbit = code.storage.varbit(field)
            if varbit is not None:  # BMv2 leaves it as long as it was
                with code.block(
                    f"for lane in range({varbit.start}, {varbit.start + varbit.longest}):"
                ):
                    code.add("lanes[lane] = 0")
            elif code.storage.lane(field) is None:
                code.set(field, [code.u(0)] * len(code.storage.read(field)))
        code.set(flag, [code.u(1)])
        _change_length(code, header.name, "+")
        invalidate_others(code, header.name)


def add_header_fast(code: FunctionCode, primitive: Primitive) -> None:
    """Write code that makes a header valid with the fields that it has; the length stays."""
    header = _named(primitive.parameters[0])
    code.set(valid(header), [code.u(1)])
    invalidate_others(code, header)


def remove_header(code: FunctionCode, primitive: Primitive) -> None:
    """Write code of `setInvalid`."""
    header = _named(primitive.parameters[0])
    with code.block(f"if {code.is_set(valid(header))}:"):
        code.set(valid(header), [code.u(0)])
        _change_length(code, header, "-")


def _change_length(code: FunctionCode, header: str, op: str) -> None:
    details = code.source.headers[header]
    size = f"U{code.size_of(details)}" if details.varbit else code.u(details.size_bytes)
    code.set(LENGTH, [f"({code.read(LENGTH)} {op} {size})"])


def assign_header(code: FunctionCode, primitive: Primitive) -> None:
    """Write code that copies a header's fields and validity; an invalid one copies no fields."""
    target, origin = primitive.parameters
    assert isinstance(target, Named)
    assert isinstance(origin, Named)
    if target == origin:
        return
    if code.source.headers[origin.name].metadata:  # a struct, which BMv2 takes for valid
        _copy_fields(code, target, origin)
        return
    flag = code.read(valid(origin.name))
    with code.block(f"if {flag} != {code.u(0)}:"):
        _copy_fields(code, target, origin)
        invalidate_others(code, target.name)
    code.set(valid(target.name), [flag])


def _copy_fields(code: FunctionCode, target: Named, origin: Named) -> None:
    runs = zip(code.storage.runs_of(target.name), code.storage.runs_of(origin.name), strict=True)
    for to, run in runs:
        with code.block(f"for lane in range({run.count}):"):
            code.add(f"lanes[lane + {to.start}] = lanes[lane + {run.start}]")
    pairs = zip(fields_of(code.source, target), fields_of(code.source, origin), strict=True)
    for field, value in pairs:
        if code.storage.varbit(field):
            _copy_varbit(code, field, value)
        elif code.storage.lane(field) is None:
            code.assign(field, value)


def assign_varbit(code: FunctionCode, primitive: Primitive) -> None:
    """Write code that copies a varbit field, with its length."""
    target, origin = primitive.parameters
    assert isinstance(target, FieldSource)
    assert isinstance(origin, FieldSource)
    _copy_varbit(code, target, origin)


def _copy_varbit(code: FunctionCode, target: FieldSource, origin: FieldSource) -> None:
    to, start = code.storage.varbit(target), code.storage.varbit(origin)
    assert to is not None
    assert start is not None
    bits = code.read(start.length)
    code.add(f"copy_varbits(lanes, {to.start}, {start.start}, I({bits} >> {code.u(3)}))")
    code.set(to.length, [bits])


# Stacks.


def push(code: FunctionCode, primitive: Primitive) -> None:
    """Write code of `push_front`: elements move up, and the first ones become invalid."""
    stack, count = _stack_and_count(primitive)
    size = len(code.source.instances.elements(stack))
    order = _swapped(size, [(i, i - count) for i in range(size - 1, count - 1, -1)])
    used = FieldSource(STACKS, stack)
    _reorder(code, stack, order)
    code.set(used, [f"min({code.read(used)} + {code.u(count)}, {code.u(size)})"])
    _invalidate(code, stack, range(min(count, size)))


def pop(code: FunctionCode, primitive: Primitive) -> None:
    """Write code of `pop_front`: elements move down, and the last ones become invalid."""
    stack, count = _stack_and_count(primitive)
    size = len(code.source.instances.elements(stack))
    order = _swapped(size, [(i, i + count) for i in range(size - count)])
    used = FieldSource(STACKS, stack)
    _reorder(code, stack, order)
    before = code.read(used)
    code.set(used, [f"({before} - min({before}, {code.u(count)}))"])
    _invalidate(code, stack, range(max(size - count, 0), size))


def _stack_and_count(primitive: Primitive) -> tuple[str, int]:
    stack, count = primitive.parameters
    assert isinstance(count, Constant), "P4 wants a constant"
    return _named(stack), count.value


def _swapped(size: int, swaps: Sequence[tuple[int, int]]) -> list[int]:
    """Return the order of elements after swaps: BMv2 moves headers so, and keeps invalid ones."""
    order = list(range(size))
    for a, b in swaps:
        order[a], order[b] = order[b], order[a]
    return order


def _reorder(code: FunctionCode, stack: str, order: list[int]) -> None:
    moved = [(to, start) for to, start in enumerate(order) if to != start]
    if not moved:
        return
    elements = code.source.instances.elements(stack)
    for member in range(len(elements[0])):
        names = [headers[member] for headers in elements]
        for number in range(len(fields_of(code.source, Named("header", names[0])))):
            fields = [_field(code, name, number) for name in names]
            _reorder_fields(code, fields, moved)
        _reorder_words(code, [valid(name) for name in names], moved)


def _field(code: FunctionCode, header: str, number: int) -> FieldSource:
    return FieldSource(header, code.source.headers[header].fields[number].name)


def _reorder_fields(
    code: FunctionCode, fields: list[FieldSource], moved: list[tuple[int, int]]
) -> None:
    kept = [code.storage.varbit(field) for field in fields]
    first = kept[0]
    if first is None:
        _reorder_words(code, fields, moved)
        return
    with code.block(f"for lane in range({first.longest}):"):
        starts = [varbit.start for varbit in kept if varbit is not None]
        targets = ", ".join(f"lanes[lane + {starts[to]}]" for to, _ in moved)
        code.add(f"{targets} = {', '.join(f'lanes[lane + {starts[i]}]' for _, i in moved)}")
    _reorder_words(code, [varbits(field.header) for field in fields], moved)


def _reorder_words(
    code: FunctionCode, fields: list[FieldSource], moved: list[tuple[int, int]]
) -> None:
    """Write one assignment for all words, so that none is overwritten before it is read."""
    targets = [word for to, _ in moved for word in code.storage.places(fields[to])]
    values = [word for _, start in moved for word in code.storage.places(fields[start])]
    code.add(f"{', '.join(targets)} = {', '.join(values)}")


def _invalidate(code: FunctionCode, stack: str, elements: range) -> None:
    """Write code that invalidates elements; unions stay, as in BMv2's `mark_invalid`."""
    if stack in code.source.instances.stacks:
        for number in elements:
            code.set(valid(code.source.instances.stacks[stack][number]), [code.u(0)])


def _named(parameter: Expression) -> str:
    assert isinstance(parameter, Named)
    return parameter.name
