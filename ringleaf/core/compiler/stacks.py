"""Short arrays on the stack, as compiled code has them (`ringleaf.core.stack`)."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, type_callable
from numba.np.arrayobj import make_array, populate_array

from ringleaf.core.stack import off_stack, on_stack

_WORDS = types.Array(types.uint64, 1, "C")


@type_callable(on_stack)
def _type_on_stack(_context: Any) -> Any:
    return lambda words: _WORDS if isinstance(words, types.UniTuple) else None


@lower_builtin(on_stack, types.UniTuple)
def _lower_on_stack(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    place = cgutils.alloca_once(builder, args[0].type)  # once, even if this is in a loop
    builder.store(args[0], place)
    view = make_array(_WORDS)(context, builder)
    count = context.get_constant(types.intp, signature.args[0].count)
    item = context.get_constant(types.intp, 8)
    populate_array(
        view,
        data=builder.bitcast(place, context.get_value_type(types.uint64).as_pointer()),
        shape=cgutils.pack_array(builder, [count]),
        strides=cgutils.pack_array(builder, [item]),
        itemsize=item,
        meminfo=None,
        parent=None,
    )
    return view._getvalue()


@type_callable(off_stack)
def _type_off_stack(_context: Any) -> Any:
    return lambda words, like: like


@lower_builtin(off_stack, types.Array, types.UniTuple)
def _lower_off_stack(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind, like = signature.args
    data = make_array(kind)(context, builder, args[0]).data
    return builder.load(builder.bitcast(data, context.get_value_type(like).as_pointer()))
