"""The passes that Numba runs on our functions: few, as most of its time is its own Python.

Numba first gives each assignment of a variable a version of its own (SSA), by a walk through all
statements for each variable: a third of the time for a large P4 program. LLVM does that again, and
better. All that it brings us is that a variable may change its type, which ours do not.
A function that the few passes can't compile, or whose variables have several types, is compiled
by all of Numba's passes, whose errors say what is wrong.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from numba.core import ir, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import AnalysisPass, FunctionPass, PassManager, register_pass
from numba.core.errors import NumbaError, TypingError
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering, NoPythonBackend, NopythonTypeInference
from numba.core.types.misc import unliteral
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    RewriteSemanticConstants,
    TranslateByteCode,
)

_for_all_passes: set[Any] = set()  # the functions that the few can't compile


class FewPasses(CompilerBase):  # type: ignore[misc]
    """Compile with few passes, or else with all."""

    def define_pipelines(self) -> list[PassManager]:
        """Return the passes to try."""
        if self.state.func_id.func in _for_all_passes:
            return [DefaultPassBuilder.define_nopython_pipeline(self.state)]
        return [_few_passes()]

    def _compile_core(self) -> Any:
        """Compile; a function is tried with few passes only once, so errors are soon told."""
        state = self.state
        function, before = state.func_id.func, (state.return_type, state.library)
        if function not in _for_all_passes:
            try:
                return super()._compile_core()
            except NumbaError:
                _for_all_passes.add(function)
                state.func_ir = state.status.fail_reason = None
                state.return_type, state.library = before
        return super()._compile_core()


def _few_passes() -> PassManager:
    passes = PassManager("few passes")
    for each in (
        TranslateByteCode,
        FixupArgs,
        IRProcessing,
        RewriteSemanticConstants,
        DeadBranchPrune,
        GenericRewrites,
        _PlainConstants,
        NopythonTypeInference,
        _OneTypeEach,
        _Lowering,
        NoPythonBackend,
    ):
        passes.add_pass(each, each.__name__)
    passes.finalize()
    return passes


def _assigned_again(state: Any) -> list[Any]:
    """Return the assignments of variables that have more than one."""
    blocks = state.func_ir.blocks.values()
    assigned = [each for block in blocks for each in block.find_insts(ir.Assign)]
    counts = Counter(each.target.name for each in assigned)
    return [each for each in assigned if counts[each.target.name] > 1]


@register_pass(mutates_CFG=False, analysis_only=False)
class _PlainConstants(FunctionPass):  # type: ignore[misc]
    """Make numbers of modules' constants that variables begin with.

    Numba would take the first value of such a variable for the only one of its type.
    """

    _name = "ringleaf_plain_constants"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Replace integers that are found by name."""
        for each in _assigned_again(state):
            value = each.value
            if isinstance(value, (ir.Global, ir.FreeVar)) and type(value.value) is int:
                each.value = ir.Const(value.value, value.loc, use_literal_type=False)
        return True


@register_pass(mutates_CFG=False, analysis_only=True)
class _OneTypeEach(AnalysisPass):  # type: ignore[misc]
    """Refuse a function that assigns values of several types to a variable.

    Numba would take a type that holds all, which is a float for `int64` and `uint64`.
    """

    _name = "ringleaf_one_type_each"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Look at all variables that are assigned more than once."""
        for each in _assigned_again(state):
            name = each.target.name
            if not _is_of(state, each.value, state.typemap[name]):
                raise TypingError(f"{name} has values of several types", loc=each.loc)
        return False


def _is_of(state: Any, value: Any, kind: types.Type) -> bool:
    """Whether a value has a type; no if that can't be told."""
    typed = _type_of(state, value)
    return typed is not None and unliteral(typed) == unliteral(kind)


def _type_of(state: Any, value: Any) -> Any:
    """Return Numba's type of a value; None: that can't be told."""
    if isinstance(value, ir.Var):
        return state.typemap[value.name]
    if isinstance(value, ir.Arg):
        return state.args[value.index]
    if isinstance(value, (ir.Const, ir.Global, ir.FreeVar)):
        return state.typingctx.resolve_value_type(value.value)
    if value in state.calltypes:
        return state.calltypes[value].return_type
    return None


class _Lower(Lower):  # type: ignore[misc]
    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        """Store a variable's value; what it had before need not be released."""
        self._alloca_var(name, self.typeof(name))
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(BaseNativeLowering):  # type: ignore[misc]
    _name = "ringleaf_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        """Return what makes LLVM's code of Numba's."""
        return _Lower
