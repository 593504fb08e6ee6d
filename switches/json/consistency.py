"""Checks of a program's consistency, so far as the safety of memory depends on it.

Generated code does not check whether an offset is inside its array: that follows from the
program's declarations. p4c's programs keep these rules; a program from elsewhere must, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from ringleaf.core.units import format_count
from ringleaf.switches.source import (
    NO_ACTION,
    VALID,
    ActionSource,
    Constant,
    FieldSource,
    HeaderField,
    HeaderSource,
    Named,
    Primitive,
    ProgramSource,
    SelectedSource,
    TableSource,
)

MOST_FIELDS = 200_000  # of all headers; each is a variable, or a lane
MOST_HEADER_BYTES = 1 << 20  # of all headers together: a packet's head may need room for them
MOST_ELEMENTS = 4096  # of a stack


def check_source(source: ProgramSource) -> None:
    """Check that a program keeps the rules above.

    Raises:
        ConfigError: Naming the part that doesn't.
        KeyError: If a name is not declared.
    """
    _check_headers(source)
    _check_stacks(source)
    for side in source.sides():
        _check_packet(side)
    for table in _tables(source):
        _check_table(source, table)
    for primitive in source.primitives():
        _check_primitive(source, primitive)
    for meter in source.meters.values():
        if meter.target is not None:
            _check_written(source, meter.target)
    for checksum in source.checksums:
        _check_written(source, checksum.target, checksum.where)
    for fields in source.field_lists.values():
        for field in fields:
            _check_written(source, field)


def _check_headers(source: ProgramSource) -> None:
    headers = source.headers.values()
    count = sum(len(header.fields) for header in headers)
    if count > MOST_FIELDS:
        raise source.refuse(f"headers have at most {MOST_FIELDS} fields in all", count)
    size = sum(header.size_bytes for header in headers)
    if size > MOST_HEADER_BYTES:
        raise source.refuse(f"headers have at most {MOST_HEADER_BYTES} bytes in all", size)
    for header in headers:
        names = {item.name for item in header.fields}
        if len(names) < len(header.fields):
            raise source.refuse("a header's fields must have names of their own", header.name)
    for struct, bits in source.architecture.structs.items():
        for item in source.headers[struct].fields:
            most = bits.get(item.name, 64)
            if item.width > most or item.signed or item.varbit:
                raise source.refuse(
                    f"{struct}.{item.name} is an unsigned number of at most "
                    f"{format_count(most, 'bit')}",
                    item.width,
                )


def _check_stacks(source: ProgramSource) -> None:
    instances = source.instances
    for name in (*instances.stacks, *instances.union_stacks):
        elements = instances.elements(name)
        if not 0 < len(elements) <= MOST_ELEMENTS:
            raise source.refuse(f"a stack has 1 to {MOST_ELEMENTS} elements: {name}", len(elements))
        for element in elements:
            _check_alike(source, element, elements[0], name)
            for header in element:
                _check_in_packet(source, header)
    for name, headers in instances.unions.items():
        if len(headers) != len(instances.members[name]):
            raise source.refuse("a union with other headers than its type", name)


def _check_alike(
    source: ProgramSource, headers: Sequence[str], others: Sequence[str], what: str, where: str = ""
) -> None:
    """Check that headers are of the same types as others: their bytes are copied."""
    first, second = ([_layout(source.headers[name]) for name in side] for side in (headers, others))
    if first != second:
        raise source.refuse("headers of several types where they must be of one", what, where)


def _layout(header: HeaderSource) -> list[tuple[int, bool, bool]]:
    return [(item.width, item.signed, item.varbit) for item in header.fields]


def _check_in_packet(source: ProgramSource, name: str, where: str = "") -> None:
    if source.headers[name].metadata:
        raise source.refuse("metadata is never in a packet", name, where)


def _check_packet(source: ProgramSource) -> None:
    """Check that a parser and its deparser name headers that can be in a packet."""
    for name in source.emitted:
        _check_in_packet(source, name)
    if source.first_state is not None:
        assert source.states[source.first_state]
    for state in source.states.values():
        for op in state.ops:
            _check_parser_op(source, op)
        for transition in state.transitions:
            if transition.target is not None:
                assert source.states[transition.target]
            if transition.value_set is not None:
                assert source.value_sets[transition.value_set]


def _check_parser_op(source: ProgramSource, op: Primitive) -> None:
    first = op.parameters[0] if op.parameters else None
    if op.op == "extract" and isinstance(first, Named) and first.kind == "header":
        _check_in_packet(source, first.name, op.where)
    known = first.value if isinstance(first, Constant) else 0
    if op.op in ("advance", "shift") and not 0 <= known <= MOST_HEADER_BYTES:
        raise source.refuse("an advance by so much is not supported", known, op.where)


def _tables(source: ProgramSource) -> list[TableSource]:
    tables = [*source.ingress.tables, *source.egress.tables]
    if len({table.name for table in tables}) < len(tables):
        raise source.refuse("tables must have names of their own", "two of one name")
    return tables


def _check_table(source: ProgramSource, table: TableSource) -> None:
    if table.default_action != NO_ACTION:
        _check_call(source, table, table.default_action, table.default_arguments)
    for entry in table.entries:
        _check_call(source, table, entry.action, entry.arguments)
        for key, values in zip(table.keys, entry.keys, strict=True):
            width = _width(source, key.target)
            number, *limits = values
            inside = all(0 <= value < 1 << width for value in (number, *limits))
            if key.kind == "lpm":
                inside = 0 <= number < 1 << width and limits[0] <= width
            if not inside:
                raise source.refuse(f"an entry of {table.name} beyond its key", values, table.where)
    for key in table.keys:
        assert source.headers[key.target.header]
        assert _width(source, key.target)
        if key.mask is not None and key.mask < 0:
            raise source.refuse(f"a negative mask of {table.name}", key.mask, table.where)


def _check_call(
    source: ProgramSource, table: TableSource, number: int, arguments: tuple[int, ...]
) -> None:
    if number not in table.actions:
        raise source.refuse(f"an action that {table.name} does not have", number, table.where)
    action: ActionSource = source.actions[number]
    fits = len(arguments) == len(action.widths) and all(
        0 <= value < 1 << width for value, width in zip(arguments, action.widths, strict=True)
    )
    if not fits:
        raise source.refuse(f"arguments that {action.name} does not take", arguments, table.where)


def _width(source: ProgramSource, field: FieldSource) -> int:
    item: HeaderField = source.field_of(field)
    return item.width


_TARGETS = {  # primitives that write a field, and which parameter that is
    **dict.fromkeys(("assign", "modify_field", "set", "assign_VL", "register_read"), 0),
    **dict.fromkeys(("modify_field_with_hash_based_offset", "modify_field_rng_uniform"), 0),
    "execute_meter": 2,
}


def _check_primitive(source: ProgramSource, primitive: Primitive) -> None:
    """Check that no primitive writes fields that only the engine may, or copies between types."""
    op, where = primitive.op, primitive.where
    if op in _TARGETS:
        for field in _fields(primitive, _TARGETS[op]):
            _check_written(source, field, where)
    if op == "assign_header":
        sides = [_names(primitive, number) for number in (0, 1)]
        for target in sides[0]:
            for origin in sides[1]:
                _check_alike(source, [target], [origin], target, where)
    if op in ("add_header", "add_header_fast", "remove_header"):
        for name in _names(primitive, 0):
            _check_in_packet(source, name, where)
    if op == "assign_VL":
        widths = {_width(source, field) for n in (0, 1) for field in _fields(primitive, n)}
        if len(widths) > 1:
            raise source.refuse("varbits of several types", sorted(widths), where)


def _check_written(source: ProgramSource, field: FieldSource, where: str = "") -> None:
    if field.name == VALID:
        raise source.refuse("validity is set by setValid alone", field.header, where)


def _fields(primitive: Primitive, number: int) -> list[FieldSource]:
    return [item for item in _options(primitive, number) if isinstance(item, FieldSource)]


def _names(primitive: Primitive, number: int) -> list[str]:
    return [item.name for item in _options(primitive, number) if isinstance(item, Named)]


def _options(primitive: Primitive, number: int) -> list[object]:
    """Return the operands that a parameter may stand for."""
    if number >= len(primitive.parameters):
        return []
    parameter = primitive.parameters[number]
    if isinstance(parameter, SelectedSource):
        return [chosen for _, chosen in parameter.options]
    return [parameter]
