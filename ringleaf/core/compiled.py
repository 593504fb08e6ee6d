"""How Ringleaf compiles per-packet code: one signature, one cache, and off by one switch.

`NUMBA_DISABLE_JIT=1` runs the same functions as plain Python.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, event, typeinfer
from numba.core.errors import NumbaExperimentalFeatureWarning
from numba.extending import intrinsic, overload, register_jitable

from ringleaf.core import compiling, numba_blas
from ringleaf.core.callbacks import FUNCTION
from ringleaf.core.machine_code import MachineCode
from ringleaf.core.native import ARENA, data_of
from ringleaf.core.private import cache_folder
from ringleaf.core.shipped import PACKAGE
from ringleaf.core.sources import digest

warnings.filterwarnings("ignore", category=NumbaExperimentalFeatureWarning)
numba_blas.load()
compiling.listen(event)

_COMPILED_FOLDERS = ("", "switches", "hosts", "ina", "networks")


if not os.environ.get("NUMBA_CACHE_DIR"):
    numba.config.CACHE_DIR = str(cache_folder() / "numba" / digest(PACKAGE, _COMPILED_FOLDERS))

HANDLER = types.int64(ARENA, types.int64, types.int64, types.int64)
"""`handler(arena, at, packet, now_ps) -> int`: what the event loop calls on every component."""

_HANDLER_TYPE = types.FunctionType(HANDLER)

F = TypeVar("F", bound=Callable[..., Any])


# Our arrays outlive every compiled call, so views of them need no reference counts (`_nrt`):
# those cost more than the work itself. In exchange no compiled function may return an array
# (to a compiled caller it may, inside a NamedTuple), nor assign an array to a slice: there is
# `copy_items`. `error_model` drops the check for division by zero. Nothing of ours is called by
# C code, and wrappers for that took a tenth of the time to compile.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
_HELPER_OPTIONS = _OPTIONS | {"no_cpython_wrapper": True}


def inline(function: F) -> F:
    """Mark a helper: part of any compiled caller, plain Python to Python."""
    result: F = register_jitable(**_HELPER_OPTIONS)(function)
    return result


def compiled(signature: Any, **more: Any) -> Callable[[F], F]:
    """Compile a function that Python calls, now or from the cache; `more` is for Numba."""

    def decorate(function: F) -> F:
        if numba.config.DISABLE_JIT:
            return function
        dispatcher: Any = numba.njit(**_OPTIONS, **more)(function)
        dispatcher._cache = MachineCode(function)  # as Numba's `cache=True` sets its own
        with typeinfer.register_dispatcher(dispatcher):
            dispatcher.compile(signature)
        dispatcher.disable_compile()
        return dispatcher

    return decorate


def handler(function: F) -> F:
    """Compile a function that is called through its address, now or from the cache.

    Python's other threads run meanwhile: a program's loop may take long, or never end.
    """
    return compiled(HANDLER, nogil=True)(function)


@inline
def signed(value: Any) -> int:
    """Return an integer as `int64`; `int` would leave a `uint64` unsigned, and sums be floats."""
    return np.int64(value)  # type: ignore[return-value]


_plain_handlers: list[Callable[..., int]] = []  # uncompiled, an address is an index of this


def address_of(function: Callable[..., int]) -> int:
    """Return what `handler_at` takes: arenas hold integers, and passing functions costs 1 ms."""
    if numba.config.DISABLE_JIT:
        _plain_handlers.append(function)
        return len(_plain_handlers) - 1
    result = function.overloads[HANDLER.args]  # type: ignore[attr-defined]
    return int(result.library.get_pointer_to_function(result.fndesc.llvm_func_name))


@intrinsic
def _function_at(_typing: Any, address: types.Type) -> Any:
    """Make a first-class function of a compiled function's address, as Numba's own casts do."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = cgutils.create_struct_proxy(signature.return_type)(context, builder)
        function.jit_addr = builder.inttoptr(args[0], context.get_value_type(types.voidptr))
        return function._getvalue()

    return _HANDLER_TYPE(types.int64), generate


@intrinsic
def _copy_memory(
    _typing: Any, target: Any, target_at: Any, source: Any, source_at: Any, count: Any
) -> Any:
    """Copy with LLVM's memcpy: a loop within one array is not vectorised, and 6 times slower."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointers = []
        for kind, array, at in ((target, *args[0:2]), (source, *args[2:4])):
            pointers.append(builder.gep(data_of(context, builder, kind, array), [at]))
        size = context.get_abi_sizeof(context.get_data_type(target.dtype))
        cgutils.raw_memcpy(builder, *pointers, args[4], size)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


def compiled_as(function: Callable[..., Any]) -> Callable[[F], F]:
    """Mark the maker of what compiled code calls instead of `function` (Numba's `overload`)."""
    decorator: Callable[[F], F] = overload(function, jit_options=_HELPER_OPTIONS, strict=False)
    return decorator


def copy_items(target: Any, target_at: int, source: Any, source_at: int, count: int) -> None:
    """Copy `count` items of one type; the ranges must not overlap."""
    target[target_at : target_at + count] = source[source_at : source_at + count]


@compiled_as(copy_items)
def _compiled_copy_items(
    target: Any, target_at: Any, source: Any, source_at: Any, count: Any
) -> Callable[..., None]:
    return lambda target, target_at, source, source_at, count: _copy_memory(
        target, target_at, source, source_at, count
    )


def handler_at(address: int) -> Callable[..., int]:
    """Return the handler whose address this is."""
    return _plain_handlers[address]


@compiled_as(handler_at)
def _compiled_handler_at(address: Any) -> Callable[[Any], Any]:
    return lambda address: _function_at(address)


@intrinsic
def _call_at(_typing: Any, address: types.Type, number: types.Type) -> Any:
    """Call a C function of an integer, which returns one, by its address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = context.get_value_type(types.int64)
        pointer = builder.inttoptr(args[0], ir.FunctionType(word, [word]).as_pointer())
        return builder.call(pointer, [args[1]])

    return types.int64(types.int64, types.int64), generate


def call_back(address: int, number: int) -> int:
    """Call the function of a `Callback`, whose address this is."""
    result: int = FUNCTION(int(address))(int(number))
    return result


@compiled_as(call_back)
def _compiled_call_back(address: Any, number: Any) -> Callable[[Any, Any], Any]:
    return lambda address, number: _call_at(address, number)
