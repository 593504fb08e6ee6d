"""Atomic words and sleep, as compiled code has them (`ringleaf.core.atomic`)."""

from __future__ import annotations

import platform
import sys
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import signature
from numba.extending import lower_builtin, type_callable

from ringleaf.core.atomic import add_atomically, load_atomically, sleep_while, wake_sleepers
from ringleaf.core.compiler.arenas import ArenaArray

_NUMBERS = {"x86_64": 202, "aarch64": 98}
_FUTEX = _NUMBERS.get(platform.machine()) if sys.platform == "linux" else None
"""The number of Linux's system call `futex`, for words of little-endian machines."""

_WAIT = 128  # FUTEX_WAIT, of one process
_WAKE = 129
_LONGEST_NS = 10_000_000


@type_callable(add_atomically)
def _type_add(_context: Any) -> Any:
    return lambda words, at, value: signature(types.int64, words, types.intp, types.int64)


@lower_builtin(add_atomically, ArenaArray, types.Integer, types.Integer)
def _lower_add(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
    return builder.atomic_rmw("add", builder.gep(args[0], [args[1]]), args[2], "seq_cst")


@type_callable(load_atomically)
def _type_load(_context: Any) -> Any:
    return lambda words, at: signature(types.int64, words, types.intp)


@lower_builtin(load_atomically, ArenaArray, types.Integer)
def _lower_load(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
    return builder.load_atomic(builder.gep(args[0], [args[1]]), "seq_cst", 8)


@type_callable(sleep_while)
def _type_sleep_while(_context: Any) -> Any:
    return lambda words, at, value: signature(types.none, words, types.intp, types.int64)


@lower_builtin(sleep_while, ArenaArray, types.Integer, types.Integer)
def _lower_sleep_while(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
    """Wait in the kernel, which compares the word's lower half: enough, it has changed or not."""
    number = ir.IntType(64)
    timeout = cgutils.alloca_once(builder, ir.ArrayType(number, 2))
    builder.store(ir.Constant(ir.ArrayType(number, 2), [0, _LONGEST_NS]), timeout)
    value = builder.and_(args[2], ir.Constant(number, 0xFFFFFFFF))
    _call_futex(builder, args, _WAIT, value, builder.ptrtoint(timeout, number))
    return context.get_dummy_value()


@type_callable(wake_sleepers)
def _type_wake_sleepers(_context: Any) -> Any:
    return lambda words, at: signature(types.none, words, types.intp)


@lower_builtin(wake_sleepers, ArenaArray, types.Integer)
def _lower_wake_sleepers(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
    number = ir.IntType(64)
    _call_futex(builder, args, _WAKE, ir.Constant(number, 0x7FFFFFFF), ir.Constant(number, 0))
    return context.get_dummy_value()


def _call_futex(builder: Any, args: Any, operation: int, value: Any, timeout: Any) -> None:
    """Make Linux's system call for a word; elsewhere, only give way."""
    number = ir.IntType(64)
    if _FUTEX is None:
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return
    kind = ir.FunctionType(number, [number], var_arg=True)
    call = cgutils.get_or_insert_function(builder.module, kind, "syscall")
    place = builder.ptrtoint(builder.gep(args[0], [args[1]]), number)
    builder.call(
        call,
        [ir.Constant(number, _FUTEX), place, ir.Constant(number, operation), value, timeout],
    )
