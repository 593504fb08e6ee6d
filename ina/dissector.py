"""A Wireshark dissector in Lua, made of the layers that scapy uses.

`ringleaf dissector` prints it; Wireshark loads it from its folder of personal Lua plugins, tshark
by `-X lua_script:ringleaf.lua`.

The lanes behind a header are shown in every type that the system's layers know, as the header
alone does not give the type: in ATP as integers and as float32.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scapy.fields import Field, FieldListField, IEEEFloatField, SignedIntField
from scapy.layers.inet import UDP
from scapy.packet import Packet

from ringleaf.hosts.rc.layers import BTH
from ringleaf.hosts.rc.wire import UDP_PORT
from ringleaf.ina.registry import layer_modules

_HEX = ("X", "XByte", "XInt", "XLong", "XShort")  # prefixes of the classes of such fields


@dataclass(frozen=True, slots=True)
class LuaField:
    """One field of a header as Lua has it.

    Attributes:
        name: Name of the field.
        offset: Offset of the first byte that has some of its bits.
        size: Size in bytes.
        mask: Its bits in those bytes; 0: all of them.
        kind: Kind of `ProtoField`: uint8, int32, float.
        base: DEC, HEX or NONE.
        names: Names of its values.
    """

    name: str
    offset: int
    size: int
    mask: int
    kind: str
    base: str
    names: dict[int, str]


@dataclass(frozen=True, slots=True)
class List:
    """Values one after the other.

    Attributes:
        name: Name of the list.
        item: One value, at offset 0.
        count: The field of the header that holds their number; "": as many as there are.
    """

    name: str
    item: LuaField
    count: str


def write_dissector() -> str:
    """Return the dissector of all systems' packets."""
    parts = ["-- Made of Ringleaf's layers by `ringleaf dissector`.\n"]
    for header, ports in _headers().items():
        parts += _protocol(header, ports)
    parts += _roce(_ports_of(BTH) - {UDP_PORT})
    return "\n".join(parts)


def _headers() -> dict[type[Packet], list[int]]:
    """Return the systems' headers, with the UDP ports of each."""
    modules = layer_modules()
    layers = (layer for _, layer in UDP.payload_guess if layer.__module__ in modules)
    return {layer: sorted(_ports_of(layer)) for layer in dict.fromkeys(layers)}


def _ports_of(layer: type[Packet]) -> set[int]:
    return {
        fields["dport"] for fields, each in UDP.payload_guess if each is layer and "dport" in fields
    }


def _roce(ports: set[int]) -> Iterator[str]:
    """Yield the Lua for systems that send RoCEv2 to ports of their own, as NetReduce does."""
    yield f'local roce = DissectorTable.get("udp.port"):get_dissector({UDP_PORT})'
    for port in sorted(ports):
        yield f'DissectorTable.get("udp.port"):add({port}, roce)'
    yield ""


def items_of(layer: type[Packet]) -> tuple[list[LuaField], List | None]:
    """Return the fields of a header, and the list at its end if it has one."""
    items: list[LuaField] = []
    bit = 0
    for each in layer.fields_desc:
        if isinstance(each, FieldListField):
            return items, _list(each, layer)
        width = round(8 * each.sz)
        items.append(_item(each, bit, width))
        bit += width
    return items, None


def _item(each: Field[Any, Any], bit: int, width: int) -> LuaField:
    first, last = bit // 8, (bit + width - 1) // 8
    size = last - first + 1
    whole = width == 8 * size
    mask = 0 if whole else ((1 << width) - 1) << (8 * size - bit % 8 - width)
    if isinstance(each, IEEEFloatField):
        kind, base = "float", "NONE"
    else:
        kind = f"{'int' if isinstance(each, SignedIntField) else 'uint'}{8 * size}"
        base = "HEX" if type(each).__name__.startswith(_HEX) else "DEC"
    names = {int(value): str(name) for value, name in getattr(each, "i2s", {}).items()}
    return LuaField(each.name, first, size, mask, kind, base, names)


def _list(each: FieldListField, layer: type[Packet]) -> List:
    counts = (f.name for f in layer.fields_desc if getattr(f, "count_of", None) == each.name)
    one = _item(each.field, 0, round(8 * each.field.sz))
    return List(each.name, one, next(counts, ""))


def _protocol(header: type[Packet], ports: list[int]) -> Iterator[str]:
    """Yield the Lua of one header, and of the lists that may follow it."""
    own = header.__name__.lower().removesuffix("header")
    items, listed = items_of(header)
    lists = [listed] if listed else []
    lists += _following(header)
    size = max(item.offset + item.size for item in items)
    yield f'local {own} = Proto("ringleaf_{own}", "{header().name} (Ringleaf)")'
    yield f"local {own}_fields = {own}.fields"
    for item in items:
        yield f"{own}_fields.{item.name} = {_field(own, item.name, item)}"
    for number, each in enumerate(lists):
        yield f"{own}_fields.list{number} = {_field(own, f'{each.name}{number}', each.item)}"
    yield f"function {own}.dissector(buffer, pinfo, tree)"
    yield f"  if buffer:len() < {size} then return 0 end"
    yield f'  pinfo.cols.protocol = "{header().name}"'
    yield f"  local shown = tree:add({own}, buffer())"
    for item in items:
        yield f"  shown:add({own}_fields.{item.name}, buffer({item.offset}, {item.size}))"
    for number, each in enumerate(lists):
        yield from _loop(own, number, each, items, size)
    yield "  return buffer:len()"
    yield "end"
    for port in ports:
        yield f'DissectorTable.get("udp.port"):add({port}, {own})'
    yield ""


def _loop(own: str, number: int, each: List, items: list[LuaField], start: int) -> Iterator[str]:
    step = each.item.size
    counted = next((item for item in items if item.name == each.count), None)
    there = f"math.floor((buffer:len() - {start}) / {step})"
    if counted is None:
        count = there
    else:
        count = f"math.min(buffer({counted.offset}, {counted.size}):uint(), {there})"
    how = {"float": "as float32"}.get(each.item.kind, f"as {each.item.kind}")
    yield f"  local count{number} = {count}"
    yield f"  if count{number} > 0 then"
    yield (
        f"    local values{number} = shown:add(buffer({start}, count{number} * {step}), "
        f'"{each.name} {how}")'
    )
    yield f"    for n = 0, count{number} - 1 do"
    yield (
        f"      values{number}:add({own}_fields.list{number}, buffer({start} + n * {step}, {step}))"
    )
    yield "    end"
    yield "  end"


def _following(header: type[Packet]) -> list[List]:
    """Return the lists of the same system's other layers, which may follow the header."""
    lists = []
    for layer in vars(sys.modules[header.__module__]).values():
        if isinstance(layer, type) and issubclass(layer, Packet) and layer is not header:
            items, listed = items_of(layer)
            if listed is not None and not items:
                lists.append(listed)
    return lists


def _field(own: str, name: str, item: LuaField) -> str:
    """Return the `ProtoField` of a field."""
    names = ", ".join(f'[{value}] = "{text}"' for value, text in item.names.items())
    arguments = [f'"ringleaf_{own}.{name}"', f'"{item.name}"']
    if item.kind != "float":
        arguments += [f"base.{item.base}", f"{{{names}}}" if names else "nil"]
        arguments += [f"0x{item.mask:x}"] if item.mask else []
    return f"ProtoField.{item.kind}({', '.join(arguments)})"
