"""Draw changes of one line by rule: operators, comparisons, constants, and dropped statements.

cosmic-ray and mutmut have more operators, but one test command for all (cosmic-ray), or functions
that are replaced by trampolines, which Numba does not compile (mutmut). Kinds that are mostly
without effect are not drawn: texts of errors, annotations, decorators, and options such as
`strict=`. Single changes without effect are listed in `equivalent.yaml`, with the reason.
"""

from __future__ import annotations

import ast
import random
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml
from plan import ROOT, Mutant

EQUIVALENT = Path(__file__).with_name("equivalent.yaml")
PACKAGES = (
    "bench", "collectives", "experiments", "hosts", "ina", "networks", "ringleaf", "studies",
    "switches", "topologies",
)  # fmt: skip
SEPARATE = ("hosts/rc", "switches/generate", "networks/virtual")
"""Folders that are counted by themselves: no change in them may survive."""

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
OPERATORS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "+"), ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.BitXor: ("^", "|"),
}  # fmt: skip
WITHOUT_EFFECT = frozenset(
    {"strict", "dtype", "stacklevel", "exist_ok", "cache", "inline", "flush"}
)
"""Keywords whose values tests need not notice."""
ONLY_SAY = re.compile(r"(Error|Warning|warn|say|debug|prefetch|fetch\w*|assert_never|copy)$")
"""Names of calls that are messages or hints to the processor, or an object's own copy."""
ONLY_HINTS = re.compile(r"(fetch\w*|look_ahead)$")
"""Names of functions that have the processor fetch what it will need, and change nothing."""


@dataclass(frozen=True, slots=True)
class Span:
    """Part of a line, columns counted in bytes as `ast` does, and the text in its place."""

    line: int
    begin: int
    end: int
    text: str


def package_of(file: str) -> str:
    """Return where a file's changes are counted."""
    found = next((folder for folder in SEPARATE if file.startswith(f"{folder}/")), None)
    return found or file.partition("/")[0]


def drawn_from(file: str, root: Path = ROOT) -> list[Mutant]:
    """Return all changes of a file, but for those without effect."""
    text = (root / file).read_text()
    lines = text.splitlines()
    listed = _equivalent()
    mutants = []
    module = ast.parse(text)
    for span in _Finder(lines, _zeros_of(module, root)).spans(module):
        old = lines[span.line - 1]
        raw = old.encode()
        new = (raw[: span.begin] + span.text.encode() + raw[span.end :]).decode()
        if new != old and (file, old.strip(), new.strip()) not in listed:
            name = f"{file}:{span.line}:{span.begin}"
            mutants.append(Mutant(name, file, "", old, new, (), False, span.line))
    return mutants


def _equivalent() -> set[tuple[str, str, str]]:
    entries = yaml.safe_load(EQUIVALENT.read_text()) or []
    return {(entry["file"], entry["from"], entry["to"]) for entry in entries if entry["why"]}


def _zeros_of(module: ast.Module, root: Path) -> frozenset[str]:
    """Return the names, as a module writes them, of numbers that are 0, its own or imported ones.

    They are mostly a block's first word, and to subtract one is as good as to add it.
    """
    zeros = _own_zeros(module)
    for node in module.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            there = _zeros_in(root, node.module)
            zeros |= {each.asname or each.name for each in node.names if each.name in there}
        elif isinstance(node, ast.Import):
            zeros |= {
                f"{each.asname}.{name}"
                for each in node.names
                for name in _zeros_in(root, each.name)
                if each.asname
            }
    return frozenset(zeros)


@cache
def _zeros_in(root: Path, name: str) -> frozenset[str]:
    path = root / f"{name.removeprefix('ringleaf.').replace('.', '/')}.py"
    path = path if path.exists() else root / "ringleaf" / path.relative_to(root)
    return frozenset(_own_zeros(ast.parse(path.read_text()))) if path.exists() else frozenset()


def _own_zeros(module: ast.Module) -> set[str]:
    zeros = set()
    for node in module.body:
        match node:
            case ast.Assign([ast.Name(name)], ast.Constant(0)):
                zeros.add(name)
    return zeros


class _Finder:
    """Finds the places of a module that can be changed, in the order of its text.

    Args:
        lines: The text.
        zeros: Names of numbers that are 0.
    """

    def __init__(self, lines: list[str], zeros: frozenset[str]) -> None:
        self._raw = [line.encode() for line in lines]
        self._zeros = zeros
        self._unread: set[ast.AST] = set()  # what handlers return that tell nothing

    def spans(self, node: ast.AST) -> Iterator[Span]:
        yield from self._own(node)
        if isinstance(node, ast.FunctionDef) and _tells_nothing(node):
            self._unread.update(each for each in ast.walk(node) if isinstance(each, ast.Return))
        for child in _children(node):
            if child not in self._unread:
                yield from self.spans(child)

    def _own(self, node: ast.AST) -> Iterator[Span]:
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from self._between(
                node.left, node.comparators[0], *COMPARISONS[type(node.ops[0])]
            )
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            if isinstance(node.op, ast.Add | ast.Sub) and ast.unparse(node.right) in self._zeros:
                return
            yield from self._between(node.left, node.right, *OPERATORS[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            yield from self._between(node.values[0], node.values[1], *words)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield Span(node.lineno, node.col_offset, node.operand.col_offset, "")
        elif isinstance(node, ast.Constant):
            yield from self._constant(node)
        elif isinstance(node, ast.Call):
            yield from self._extreme(node)
        elif isinstance(node, ast.stmt):
            yield from self._statement(node)

    def _between(self, left: ast.expr, right: ast.expr, old: str, new: str) -> Iterator[Span]:
        """Yield the operator between two operands, if it stands on one line with both."""
        if left.end_lineno != right.lineno:
            return
        assert left.end_col_offset is not None
        gap = self._raw[right.lineno - 1][left.end_col_offset : right.col_offset].decode()
        at = gap.find(old)
        if at >= 0:
            begin = left.end_col_offset + at
            yield Span(right.lineno, begin, begin + len(old), new)

    def _constant(self, node: ast.Constant) -> Iterator[Span]:
        if isinstance(node.value, bool):
            new = str(not node.value)
        elif isinstance(node.value, int):
            new = str(node.value + 1)
        elif isinstance(node.value, float):
            new = repr(node.value * 2 if node.value else 1.0)
        else:
            return
        assert node.end_col_offset is not None
        yield Span(node.lineno, node.col_offset, node.end_col_offset, new)

    def _extreme(self, node: ast.Call) -> Iterator[Span]:
        if isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            new = "max" if node.func.id == "min" else "min"
            yield Span(node.lineno, node.col_offset, node.col_offset + 3, new)

    def _statement(self, node: ast.stmt) -> Iterator[Span]:
        """Yield a statement of one line that does something and binds no name."""
        if node.lineno != node.end_lineno or node.end_col_offset is None:
            return
        is_set = isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name)
        is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        if is_call or is_set or isinstance(node, ast.AugAssign):
            yield Span(node.lineno, node.col_offset, node.end_col_offset, "pass")
        if isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
            yield from self._between(node.target, node.value, *OPERATORS[type(node.op)])


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node in which changes would be noticed."""
    for name, value in ast.iter_fields(node):
        if name == "comparators" and _asks_for_a_place(node):
            continue
        if name == "value" and _sets_a_flag(node):
            continue
        if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.UnaryOp) and _is_reshape(node):
                continue
            if isinstance(child, ast.AST) and not _is_without_effect(child):
                yield child


def _asks_for_a_place(node: ast.AST) -> bool:
    """Return whether a place in the arena is compared with 0: those there are begin far from it."""
    match node:
        case ast.Compare(left, [ast.Gt() | ast.Eq() | ast.NotEq()], [ast.Constant(0)]):
            return re.search(r"(_AT|_at)\]?$", ast.unparse(left)) is not None
    return False


def _is_reshape(node: ast.AST) -> bool:
    """Return whether an array is given another shape: any number below 0 says that one is open."""
    match node:
        case ast.Call(ast.Attribute(attr="reshape")):
            return True
    return False


def _sets_a_flag(node: ast.AST) -> bool:
    """Return whether a word that is 0 or not, by its name, is set: any other number will do."""
    match node:
        case ast.Assign([ast.Subscript(slice=place)], ast.Constant(1)):
            return re.search(r"\bIS_[A-Z_]+$", ast.unparse(place)) is not None
    return False


def _tells_nothing(node: ast.FunctionDef) -> bool:
    """Return whether a handler, which must return a number, always returns 0: nobody reads it."""
    is_handler = any(ast.unparse(each) == "handler" for each in node.decorator_list)
    returns = [each for each in ast.walk(node) if isinstance(each, ast.Return)]
    return is_handler and all(_is_zero(each.value) for each in returns)


def _is_zero(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _is_without_effect(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef) and ONLY_HINTS.match(node.name):
        return True
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.keyword):
        return node.arg in WITHOUT_EFFECT
    if isinstance(node, ast.Expr):
        return _is_without_effect(node.value)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id.endswith("_WORDS")  # a row may be longer than it is used
    return isinstance(node, ast.Call) and ONLY_SAY.search(ast.unparse(node.func)) is not None


def sources(root: Path = ROOT) -> list[str]:
    """Return the files of ours that may be changed."""
    found = [
        path.relative_to(root).as_posix()
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
        if not any(part.is_symlink() for part in path.parents if part != root)
    ]
    return [file for file in found if (root / file).stat().st_size > 100]


def touched(since: str, root: Path = ROOT) -> set[str]:
    """Return the files that differ from a revision, committed or not."""
    command = ["git", "diff", "--name-only", since, "--", *PACKAGES]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    return {name for name in listed.stdout.split() if (root / name).exists()}


def sample(files: Sequence[str], count: int, seed: int, root: Path = ROOT) -> list[Mutant]:
    """Draw changes of files, each as likely as any other, no two of a line; fewer if there are."""
    mutants = [mutant for file in files for mutant in drawn_from(file, root)]
    random.Random(seed).shuffle(mutants)
    of_lines = {(mutant.file, mutant.line): mutant for mutant in reversed(mutants)}
    kept = set(of_lines.values())
    return [mutant for mutant in mutants if mutant in kept][:count]
