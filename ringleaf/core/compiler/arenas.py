"""How compiled code sees an `Arena`: one pointer, and flat arrays without bounds.

Numba passes an array by value, as seven words, and treats a negative index as one that counts from
the end. So a call of a handler pushed 35 words, and each access to an arena had two instructions
more. Here an arena is the address of a table of its arrays' addresses, and an array of it is an
address. Offsets are trusted. A slice of such an array does not compile: see `window`.

Uncompiled, arenas and arrays are as they are.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing.templates import AttributeTemplate, infer_getattr, signature
from numba.extending import (
    lower_builtin,
    lower_getattr_generic,
    models,
    register_model,
    type_callable,
)


class ArenaArray(types.Type):  # type: ignore[misc]
    """Numba's type of an arena's array.

    Args:
        dtype: Numba's type of its items.
    """

    def __init__(self, dtype: types.Type) -> None:
        self.dtype = dtype
        super().__init__(name=f"ringleaf.ArenaArray({dtype})")


class ArenaType(types.Type):  # type: ignore[misc]
    """Numba's type of an `Arena`."""

    def __init__(self) -> None:
        super().__init__(name="ringleaf.Arena")


ARENA = ArenaType()

_ARRAYS = {
    "words": ArenaArray(types.int64),
    "fields": ArenaArray(types.uint64),
    "lanes": ArenaArray(types.uint32),
    "bytes": ArenaArray(types.uint8),
    "memory": ArenaArray(types.uint8),
    "own": ArenaArray(types.int64),
}


@register_model(ArenaArray)
class _ArrayModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: ArenaArray) -> None:
        item = manager.lookup(kind.dtype).get_data_type()
        super().__init__(manager, kind, item.as_pointer())


@register_model(ArenaType)
class _ArenaModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: ArenaType) -> None:
        super().__init__(manager, kind, ir.IntType(64).as_pointer())


@infer_getattr
class _ArenaAttributes(AttributeTemplate):  # type: ignore[misc]
    key = ArenaType

    def generic_resolve(self, _arena: ArenaType, name: str) -> ArenaArray | None:
        """Return the type of an arena's array; None: it has no such attribute."""
        return _ARRAYS.get(name)


@lower_getattr_generic(ArenaType)
def _lower_attribute(context: Any, builder: Any, _kind: Any, table: Any, name: str) -> Any:
    """Load an array's address, which stays as it is for as long as a compiled function runs."""
    place = context.get_constant(types.intp, list(_ARRAYS).index(name))
    address = builder.load(builder.gep(table, [place]))
    address.set_metadata("invariant.load", builder.module.add_metadata([]))
    return builder.inttoptr(address, context.get_value_type(_ARRAYS[name]))


@type_callable(operator.getitem)
def _type_getitem(_context: Any) -> Any:
    def typer(array: types.Type, index: types.Type) -> Any:
        if isinstance(array, ArenaArray) and isinstance(index, types.Integer):
            return array.dtype
        return None

    return typer


@type_callable(operator.setitem)
def _type_setitem(_context: Any) -> Any:
    def typer(array: types.Type, index: types.Type, _value: types.Type) -> Any:
        if isinstance(array, ArenaArray) and isinstance(index, types.Integer):
            return signature(types.none, array, index, array.dtype)
        return None

    return typer


def _item(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    index = context.cast(builder, args[1], signature.args[1], types.intp)
    return builder.gep(args[0], [index])


@lower_builtin(operator.getitem, ArenaArray, types.Integer)
def _lower_getitem(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.load(_item(context, builder, signature, args))


@lower_builtin(operator.setitem, ArenaArray, types.Integer, types.Any)
def _lower_setitem(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    builder.store(args[2], _item(context, builder, signature, args))
    return context.get_dummy_value()


def data_of(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """Return a pointer to the first item of a `ArenaArray` or an array of Numba's."""
    if isinstance(kind, ArenaArray):
        return array
    return context.make_array(kind)(context, builder, array).data
