"""The last check of a generated module before it is executed: it has only what the generator makes.

A program comes from outside, and text is made of it. Names of the program are not part of the text
(`labels.py`); this is the second barrier, in case the first one can be bypassed. The
module must begin with our own prelude, to the letter; then constants; then two functions of plain
arithmetic, branches, loops and calls of the prelude's functions. Nothing else is let through: no
attribute but those listed, no string, no import, no name that is not known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from types import CodeType
from typing import Any

from ringleaf.errors import ConfigError
from ringleaf.switches.engine.hashing import CRCS
from ringleaf.switches.generate.prelude import HEADER

MOST_LETTERS = 50_000_000
"""The most letters of a module; our largest has 60,000, and one this long compiles for minutes."""

PARAMETERS = ("arena", "at", "packet", "now_ps")
HANDLERS = ("ingress", "egress")

_ATTRIBUTES = {("arena", name) for name in ("words", "bytes", "fields", "lanes", "memory")} | {
    ("head", "size")
}
_BUILT_IN = {"min", "max", "range", "U", "I"}
_OF_MODULES = {"crc_steps", "crc_tables"}  # called once, by the module itself
_CONSTANT = re.compile(r"u_[0-9a-f]{1,16}")
_VARIABLE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_TABLE = re.compile(rf"({'|'.join(CRCS)})_(steps|[0-9]{{1,3}})")


def compile_checked(text: str, file: str, where: str) -> CodeType:
    """Return a generated module as code that is safe to execute.

    Args:
        text: The module.
        file: The name of its file in tracebacks.
        where: The name of the program in errors.

    Raises:
        ConfigError: If it holds anything that the generator never makes, or is too deep or too
            long for Python.
    """
    if len(text) > MOST_LETTERS:
        raise ConfigError(
            f"{where}: its code has at most {MOST_LETTERS} letters, got {len(text)};"
            " the program is too large"
        )
    try:
        tree = ast.parse(text, file)
        _Checker(text, where).module(tree)
        return compile(tree, file, "exec", dont_inherit=True)
    except (SyntaxError, RecursionError, MemoryError, OverflowError) as exc:
        raise ConfigError(
            f"{where}: the program is nested too deeply, or too large, for Python to compile,"
            f" got {type(exc).__name__}: {exc}"
        ) from exc


class _Checker:
    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._where = where
        prelude = ast.parse(HEADER).body
        imported = {
            alias.asname or alias.name
            for node in prelude
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        self._known = {name for name in imported if name.isupper()}  # constants
        self._calls = (imported - self._known - _OF_MODULES - {"handler"}) | _BUILT_IN
        self._reserved = imported | _BUILT_IN | {"np", *HANDLERS}
        self._skip = len(prelude)

    def module(self, tree: ast.Module) -> None:
        """Check that a module is our prelude, constants and the two handlers, and nothing else."""
        if not self._text.startswith(HEADER):
            raise self._refuse("a module that does not begin as ours do", tree)
        functions = []
        for node in tree.body[self._skip :]:
            if isinstance(node, ast.FunctionDef):
                functions.append(node)
            elif functions or not self._is_constant(node):
                raise self._refuse("a statement outside of handlers", node)
        if tuple(function.name for function in functions) != HANDLERS:
            raise self._refuse("handlers by other names", tree)
        for function in functions:
            self._function(function)

    def _is_constant(self, node: ast.stmt) -> bool:
        """Return whether a statement gives a constant of ours a name, which is then known."""
        match node:
            case ast.Assign([ast.Name(name)], ast.Call(callee, arguments, [])):
                pass
            case _:
                return False
        match callee, arguments:
            case ast.Attribute(ast.Name("np"), "uint64"), [ast.Constant(int())]:
                right = _CONSTANT.fullmatch(name)
            case ast.Name("crc_steps"), [ast.Constant(algorithm)]:
                right = _TABLE.fullmatch(name) if algorithm in CRCS else None
            case ast.Name("crc_tables"), [ast.Constant(algorithm), ast.Constant(int())]:
                right = _TABLE.fullmatch(name) if algorithm in CRCS else None
            case _:
                return False
        self._known.add(name)
        return right is not None

    def _function(self, function: ast.FunctionDef) -> None:
        arguments = [argument.arg for argument in function.args.args]
        decorated = [ast.unparse(decorator) for decorator in function.decorator_list]
        plain = ast.arguments([], function.args.args, None, [], [], None, [])
        same = ast.dump(plain) == ast.dump(function.args)
        annotated = any(argument.annotation for argument in function.args.args)
        if decorated != ["handler"] or tuple(arguments) != PARAMETERS or not same or annotated:
            raise self._refuse("a function that is no handler", function)
        nodes = [node for statement in function.body for node in ast.walk(statement)]
        variables = set(PARAMETERS)
        for node in nodes:
            if type(node) is ast.Name and type(node.ctx) is ast.Store:
                self._variable(node)
                variables.add(node.id)
        readable = variables | self._known | self._calls
        for node in nodes:
            if type(node) not in _LOOKS:
                raise self._refuse(f"a {type(node).__name__}", node)
            look = _LOOKS[type(node)]
            if look is not None:
                look(self, node, readable)

    def _variable(self, node: ast.Name) -> None:
        taken = node.id in self._reserved or node.id in self._known or node.id in PARAMETERS
        if taken or not _VARIABLE.fullmatch(node.id):
            raise self._refuse(f"a variable of that name ({node.id!r})", node)

    def _name(self, node: ast.Name, readable: set[str]) -> None:
        if type(node.ctx) is ast.Load and node.id not in readable:
            raise self._refuse(f"a name that is not known ({node.id!r})", node)

    def _value(self, node: ast.Constant, _: set[str]) -> None:
        if type(node.value) not in (int, bool):
            raise self._refuse(f"a {type(node.value).__name__}", node)

    def _attribute(self, node: ast.Attribute, _: set[str]) -> None:
        base = node.value.id if isinstance(node.value, ast.Name) else ""
        if (base, node.attr) not in _ATTRIBUTES or type(node.ctx) is not ast.Load:
            raise self._refuse(f"an attribute ({node.attr!r})", node)

    def _call(self, node: ast.Call, _: set[str]) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in self._calls or node.keywords:
            raise self._refuse("a call of anything but the prelude's functions", node)

    def _loop(self, node: ast.For, _: set[str]) -> None:
        ranged = isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "range"
        if not ranged or type(node.target) is not ast.Name or node.orelse:
            raise self._refuse("a loop over anything but a range", node)

    def _refuse(self, what: str, node: ast.AST) -> ConfigError:
        line = getattr(node, "lineno", 1)
        return ConfigError(
            f"{self._where}: generated code never holds {what}, got line {line}:"
            f" {self._text.split(chr(10))[line - 1].strip()[:80]!r}; it is not executed"
        )


_Look = Callable[[_Checker, Any, set[str]], None]

# The nodes that handlers may have, and the further checks of each.
_LOOKS: dict[type[ast.AST], _Look | None] = {
    ast.Name: _Checker._name,
    ast.Constant: _Checker._value,
    ast.Attribute: _Checker._attribute,
    ast.Call: _Checker._call,
    ast.For: _Checker._loop,
    **dict.fromkeys((ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Pass, ast.Break)),
    **dict.fromkeys((ast.If, ast.While, ast.IfExp, ast.BoolOp, ast.UnaryOp, ast.BinOp)),
    **dict.fromkeys((ast.Compare, ast.Subscript, ast.Tuple, ast.Load, ast.Store)),
    **dict.fromkeys((ast.And, ast.Or, ast.Not, ast.Invert, ast.USub)),
    **dict.fromkeys((ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)),
    **dict.fromkeys((ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor)),
    **dict.fromkeys((ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)),
}
