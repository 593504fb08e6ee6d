"""Make machine code of a function, by Numba."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils, event, typeinfer
from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUContext
from numba.core.errors import NumbaError, NumbaExperimentalFeatureWarning
from numba.core.registry import cpu_target
from numba.extending import intrinsic, overload, register_jitable, typeof_impl

from ringleaf.core import compiling, native_types
from ringleaf.core.compiled import (
    Compiled,
    External,
    call_back,
    call_handler,
    compiled_as,
    copy_items,
    helpers,
    replacements,
)
from ringleaf.core.compiler import (  # noqa: F401 - they tell Numba
    atomics,
    numba_blas,
    operators,
    stacks,
    views,
)
from ringleaf.core.compiler.arenas import ARENA, data_of
from ringleaf.core.compiler.pipeline import FewPasses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

warnings.filterwarnings("ignore", category=NumbaExperimentalFeatureWarning)
numba_blas.load()
compiling.listen(event)

CompileError = NumbaError
"""The error of a function that does not compile."""

# Our arrays outlive every compiled call, so views of them need no reference counts (`_nrt`):
# those cost more than the work itself. In exchange no compiled function may return an array
# (to a compiled caller it may, inside a NamedTuple), nor assign an array to a slice: there is
# `copy_items`. `error_model` drops the check for division by zero. All is called by its address,
# so there are no wrappers, which took a third of the time to compile.
_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
    "pipeline_class": FewPasses,
}


def ready() -> None:
    """Tell Numba of all helpers and replacements that have been marked.

    It reads its own, too, so that a process that is forked to compile need not.
    """
    while helpers:
        register_jitable(**_OPTIONS)(helpers.pop())
    while replacements:
        function, maker = replacements.pop()
        overload(function, jit_options=_OPTIONS, strict=False)(maker)
    for context in (cpu_target.typing_context, cpu_target.target_context):
        context.refresh()


def compile_object(function: Compiled) -> tuple[str, bytes]:
    """Return the name of a function's code, and an object file of it.

    Raises:
        CompileError: If it does not compile.
    """
    ready()
    with global_compiler_lock, operators.remembered(), _without_executables() as optimise:
        [result] = _dispatcher(function).overloads.values()
        library = result.library
        library._ensure_finalized()
        optimise(library)
        code = library._codegen._tm.emit_object(library._final_module)
    return result.fndesc.llvm_func_name, code


@contextmanager
def _without_executables() -> Iterator[Callable[[Any], None]]:
    """Have Numba make no machine code of helpers meanwhile; yield what optimises a whole function.

    Numba optimises each helper, and makes machine code of it that Python could call. Ours are
    parts of other functions, of which only the last one is needed: that is a third of the time.
    """
    optimise = CPUCodeLibrary._optimize_final_module
    before = CPUContext.get_executable, JITCodeLibrary._finalize_specific
    CPUCodeLibrary._optimize_final_module = lambda library: None
    JITCodeLibrary._finalize_specific = lambda library: None
    CPUContext.get_executable = lambda *_: [].append  # a function of its own, as Numba's key
    try:
        yield optimise
    finally:
        CPUCodeLibrary._optimize_final_module = optimise
        CPUContext.get_executable, JITCodeLibrary._finalize_specific = before


@cache
def _dispatcher(function: Compiled) -> Any:
    """Return Numba's object for a function, which is compiled for its own types only."""
    numba.config.DISABLE_JIT = 0  # which Numba reads again if the environment has changed
    dispatcher: Any = numba.njit(**_OPTIONS)(function.function)
    with typeinfer.register_dispatcher(dispatcher):
        dispatcher.compile(_signature(function.signature))
    dispatcher.disable_compile()
    return dispatcher


def _signature(signature: native_types.Signature) -> Any:
    return _type(signature.result)(*map(_type, signature.arguments))


def _type(kind: native_types.Type) -> Any:
    """Return Numba's type."""
    if kind is native_types.ARENA:
        return ARENA
    if isinstance(kind, native_types.Array):
        return types.Array(_type(kind.dtype), kind.ndim, kind.layout, readonly=kind.readonly)
    return getattr(types, kind.name)


@typeof_impl.register(Compiled)
def _typeof_compiled(function: Compiled, _context: Any) -> Any:
    """Let one compiled function call another, of which it then has a copy."""
    return types.Dispatcher(_dispatcher(function))


@typeof_impl.register(External)
def _typeof_external(function: External, _context: Any) -> Any:
    return types.ExternalFunction(function.name, _signature(function.signature))


@intrinsic
def _call_handler(
    _typing: Any, address: types.Type, _arena: Any, at: Any, packet: Any, now_ps: Any
) -> Any:
    """Call a compiled function by its address, as Numba's functions call one another."""
    arguments = (ARENA, types.int64, types.int64, types.int64)

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        convention = context.call_conv
        kind = convention.get_function_type(types.int64, arguments)
        function = builder.inttoptr(args[0], kind.as_pointer())
        status, result = convention.call_function(
            builder, function, types.int64, arguments, args[1:]
        )
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return result

    return types.int64(types.int64, *arguments), generate


@compiled_as(call_handler)
def _compiled_call_handler(
    address: Any, arena: Any, at: Any, packet: Any, now_ps: Any
) -> Callable[..., Any]:
    return lambda address, arena, at, packet, now_ps: _call_handler(
        address, arena, at, packet, now_ps
    )


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


@compiled_as(copy_items)
def _compiled_copy_items(
    target: Any, target_at: Any, source: Any, source_at: Any, count: Any
) -> Callable[..., None]:
    return lambda target, target_at, source, source_at, count: _copy_memory(
        target, target_at, source, source_at, count
    )


@intrinsic
def _call_at(_typing: Any, address: types.Type, number: types.Type) -> Any:
    """Call a C function of an integer, which returns one, by its address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = context.get_value_type(types.int64)
        pointer = builder.inttoptr(args[0], ir.FunctionType(word, [word]).as_pointer())
        return builder.call(pointer, [args[1]])

    return types.int64(types.int64, types.int64), generate


@compiled_as(call_back)
def _compiled_call_back(address: Any, number: Any) -> Callable[[Any, Any], Any]:
    return lambda address, number: _call_at(address, number)
