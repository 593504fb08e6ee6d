"""Views and copies without checks, as compiled code has them (`ringleaf.core.views`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, type_callable
from numba.np.arrayobj import make_array, populate_array

from ringleaf.core.compiler.arenas import ArenaArray, data_of
from ringleaf.core.views import (
    as_floats,
    float32_at,
    int8_at,
    int64_at,
    look_up_bytes,
    number_at,
    prefetch,
    put_number,
    span,
    swap_items,
    uint32_at,
    window,
)

VECTOR_ITEMS = 16  # 32-bit items that are swapped at once: one AVX-512 register, or several smaller


def _data(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """Return a pointer to an array's item."""
    return builder.gep(data_of(context, builder, kind, array), [at])


@type_callable(window)
def _type_window(_context: Any) -> Any:
    return lambda array, start, count: types.Array(array.dtype, 1, "C")


@lower_builtin(window, types.Array, types.Integer, types.Integer)
@lower_builtin(window, ArenaArray, types.Integer, types.Integer)
def _lower_window(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    data = _data(context, builder, signature.args[0], args[0], args[1])
    return _view(context, builder, signature.return_type, data, args[2])


@type_callable(span)
def _type_span(_context: Any) -> Any:
    return lambda array, start, count: ArenaArray(array.dtype)


@lower_builtin(span, types.Array, types.Integer, types.Integer)
@lower_builtin(span, ArenaArray, types.Integer, types.Integer)
def _lower_span(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return _data(context, builder, signature.args[0], args[0], args[1])


def _view(context: Any, builder: Any, kind: Any, data: Any, count: Any) -> Any:
    """Return a view of `count` items from a pointer on."""
    view = make_array(kind)(context, builder)
    item_type = context.get_data_type(kind.dtype)
    item = context.get_constant(types.intp, context.get_abi_sizeof(item_type))
    populate_array(
        view,
        data=builder.bitcast(data, item_type.as_pointer()),
        shape=cgutils.pack_array(builder, [count]),
        strides=cgutils.pack_array(builder, [item]),
        itemsize=item,
        meminfo=None,
        parent=None,
    )
    return view._getvalue()


def _reinterpret(function: Any, item: Any) -> None:
    """Let compiled code have a view of other items than an array's own."""

    def type_of(_context: Any) -> Any:
        return lambda array, start, count: types.Array(item, 1, "C")

    def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _data(context, builder, signature.args[0], args[0], args[1])
        return _view(context, builder, signature.return_type, data, args[2])

    type_callable(function)(type_of)
    for kind in (types.Array, ArenaArray):
        lower_builtin(function, kind, types.Integer, types.Integer)(lower)


_reinterpret(int64_at, types.int64)


_reinterpret(uint32_at, types.uint32)


_reinterpret(float32_at, types.float32)


_reinterpret(int8_at, types.int8)


@type_callable(as_floats)
def _type_as_floats(_context: Any) -> Any:
    return lambda words: ArenaArray(types.float64)


@lower_builtin(as_floats, ArenaArray)
def _lower_as_floats(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.bitcast(args[0], context.get_value_type(signature.return_type))


class _OfBytes(AbstractTemplate):  # type: ignore[misc]
    """A function whose last argument is a literal: it is so many instructions, and no loop."""

    prefer_literal = True
    result: types.Type
    own: tuple[types.Type, ...]
    """The types of the arguments between the first and the last."""

    def generic(self, args: Any, _kws: Any) -> Any:
        """Return the signature; None: these are no such arguments."""
        if len(args) != len(self.own) + 2 or not isinstance(args[-1], types.IntegerLiteral):
            return None
        return signature(self.result, args[0], *self.own, args[-1])


@infer_global(number_at)
class _NumberAt(_OfBytes):
    result, own = types.uint64, (types.intp,)


@infer_global(put_number)
class _PutNumber(_OfBytes):
    result, own = types.none, (types.intp, types.uint64)


@infer_global(look_up_bytes)
class _LookUpBytes(_OfBytes):
    result, own = types.uint64, (types.intp, types.uint64)


_WORD = ir.IntType(64)


def _parts(builder: Any, first: Any, count: int) -> Iterator[tuple[Any, int]]:
    """Give pointers to integers of 4, 2 or 1 bytes (or 8) that are `count` bytes together.

    With each comes by how many bits it lies above the number's lowest bit.
    """
    at = 0
    for size in (8, 4, 2, 1):
        if count & size:
            place = builder.gep(first, [ir.Constant(_WORD, at)])
            at += size
            yield builder.bitcast(place, ir.IntType(8 * size).as_pointer()), 8 * (count - at)


def _turned(builder: Any, value: Any) -> Any:
    """Reverse the bytes of an integer."""
    return builder.bswap(value) if value.type.width > 8 else value


@lower_builtin(number_at, types.Any, types.Integer, types.IntegerLiteral)
def _lower_number_at(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    first = _data(context, builder, signature.args[0], args[0], args[1])
    number = ir.Constant(_WORD, 0)
    for place, shift in _parts(builder, first, signature.args[2].literal_value):
        part = _turned(builder, builder.load(place, align=1))
        if part.type != _WORD:
            part = builder.shl(builder.zext(part, _WORD), ir.Constant(_WORD, shift))
        number = builder.or_(number, part)
    return number


@lower_builtin(put_number, types.Any, types.Integer, types.Integer, types.IntegerLiteral)
def _lower_put_number(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    first = _data(context, builder, signature.args[0], args[0], args[1])
    for place, shift in _parts(builder, first, signature.args[3].literal_value):
        part = args[2]
        if place.type.pointee != _WORD:
            part = builder.lshr(part, ir.Constant(_WORD, shift))
            part = builder.trunc(part, place.type.pointee)
        builder.store(_turned(builder, part), place, align=1)
    return context.get_dummy_value()


@lower_builtin(look_up_bytes, types.Any, types.Integer, types.Integer, types.IntegerLiteral)
def _lower_look_up_bytes(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    start = builder.mul(args[1], ir.Constant(_WORD, 256))
    first = _data(context, builder, signature.args[0], args[0], start)
    folded = ir.Constant(_WORD, 0)
    count = signature.args[3].literal_value
    for i in range(count):
        shift = ir.Constant(_WORD, 8 * (count - 1 - i))
        byte = builder.and_(builder.lshr(args[2], shift), ir.Constant(_WORD, 0xFF))
        place = builder.add(byte, ir.Constant(_WORD, 256 * i))
        item = builder.load(builder.gep(first, [place]))
        folded = builder.xor(folded, item if item.type == _WORD else builder.zext(item, _WORD))
    return folded


@type_callable(prefetch)
def _type_prefetch(_context: Any) -> Any:
    return lambda array, at: types.none


@lower_builtin(prefetch, types.Any, types.Integer)
def _lower_prefetch(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    place = builder.bitcast(_data(context, builder, signature.args[0], *args), byte)
    to_write, all_caches, data = (ir.Constant(number, each) for each in (1, 3, 1))
    builder.call(function, [place, to_write, all_caches, data])
    return context.get_dummy_value()


@type_callable(swap_items)
def _type_swap_items(_context: Any) -> Any:
    return lambda target, to, source, start, count: types.none


@lower_builtin(swap_items, types.Any, types.Integer, types.Any, types.Integer, types.Integer)
def _lower_swap_items(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    target, _, source, *_ = signature.args
    into = _data(context, builder, target, args[0], args[1])
    origin = _data(context, builder, source, args[2], args[3])
    whole = builder.lshr(args[4], ir.Constant(args[4].type, VECTOR_ITEMS.bit_length() - 1))
    with cgutils.for_range(builder, whole) as loop:
        _swap_at(builder, into, origin, loop.index, VECTOR_ITEMS)
    first = builder.mul(whole, ir.Constant(whole.type, VECTOR_ITEMS))
    with cgutils.for_range(builder, builder.sub(args[4], first)) as loop:
        _swap_at(builder, into, origin, builder.add(first, loop.index), 1)
    return context.get_dummy_value()


def _swap_at(builder: Any, into: Any, origin: Any, index: Any, items: int) -> None:
    """Write one load, shuffle and store of `items` items; `index` counts such groups."""
    byte, number = ir.IntType(8), ir.IntType(32)
    vector = ir.VectorType(byte, 4 * items)
    order = [4 * (i // 4) + 3 - i % 4 for i in range(4 * items)]
    mask = ir.Constant(ir.VectorType(number, 4 * items), order)
    at = builder.mul(index, ir.Constant(index.type, 4 * items))

    def pointer(base: Any) -> Any:
        bytes_ = builder.bitcast(base, byte.as_pointer())
        return builder.bitcast(builder.gep(bytes_, [at]), vector.as_pointer())

    value = builder.load(pointer(origin), align=1)
    swapped = builder.shuffle_vector(value, ir.Constant(vector, ir.Undefined), mask)
    builder.store(swapped, pointer(into), align=1)
