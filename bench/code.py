"""`python -m bench.code [COMMIT...]`: measure the code: sizes, types, comments, circles, names."""

from __future__ import annotations

import ast
import io
import tarfile
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from subprocess import run
from typing import Annotated

import networkx as nx
import numpy as np
import typer

from bench.environment import ROOT
from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import Debug, say

APART = (".ci", "bench", "studies", "tests", "docs", "examples")
"""Folders that are no part of the product."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match, ast.AsyncFor, ast.AsyncWith)


@dataclass
class CodeMeasures:
    """Counts of one or more modules.

    Attributes:
        files: Lines of each file.
        functions: Lines of each function.
        parameters: Parameters of each function, without `self`.
        nesting: The deepest nesting of blocks in each function.
        typed: For each function, whether all its parameters and its result are annotated.
        told: For each public definition, whether it has a docstring.
        comments: The number of comments.
        classes: The files of each public class at the top of a module.
    """

    files: list[int] = field(default_factory=list)
    functions: list[int] = field(default_factory=list)
    parameters: list[int] = field(default_factory=list)
    nesting: list[int] = field(default_factory=list)
    typed: list[bool] = field(default_factory=list)
    told: list[bool] = field(default_factory=list)
    comments: int = 0
    classes: Counter[str] = field(default_factory=Counter)

    def add(self, text: str) -> None:
        """Count a module."""
        tree = ast.parse(text)
        self.files.append(text.count("\n"))
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        self.comments += sum(each.type == tokenize.COMMENT for each in tokens)
        for node in ast.walk(tree):
            if isinstance(node, _Function):
                self._add_function(node)
            if isinstance(node, _Function | ast.ClassDef) and not node.name.startswith("_"):
                self.told.append(ast.get_docstring(node) is not None)
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                self.classes[node.name] += 1

    def _add_function(self, node: _Function) -> None:
        given = node.args
        names = [*given.posonlyargs, *given.args, *given.kwonlyargs]
        own = [each for each in names if each.arg not in ("self", "cls")]
        self.functions.append((node.end_lineno or node.lineno) - node.lineno + 1)
        self.parameters.append(len(own))
        self.nesting.append(_depth(node))
        self.typed.append(all(each.annotation for each in own) and node.returns is not None)

    def lines(self) -> Iterator[str]:
        """Yield the measures, each with what is counted."""
        total = sum(self.files)
        twice = sum(count > 1 for count in self.classes.values())
        yield f"python: {total:,} lines in {len(self.files):,} files"
        yield f"lines of a file: {_spread(self.files)}"
        yield f"lines of a function: {_spread(self.functions)}"
        yield f"parameters of a function: {_spread(self.parameters)}"
        yield f"nesting in a function: {_spread(self.nesting)}"
        yield f"typed functions: {np.mean(self.typed):.1%}"
        yield f"public definitions with docstrings: {np.mean(self.told):.1%}"
        yield f"comments per 100 lines: {100 * self.comments / total:.1f}"
        yield f"public class names that stand twice: {twice}"


def code_command(
    commits: Annotated[
        list[str] | None, typer.Argument(help="Commits; default: the files as they are now.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Measure the code, and each room's lines and tests."""
    for commit in commits or [""]:
        files = _files_of(commit) if commit else _files_now()
        say(f"# {commit or 'the files now'}")
        product = {path: text for path, text in files.items() if path.parts[0] not in APART}
        measures = CodeMeasures()
        for text in product.values():
            measures.add(text)
        for line in measures.lines():
            say(f"  {line}")
        for late in (False, True):
            kind = "with imports in functions" if late else "when loaded"
            found = circles(product, late=late)
            say(f"  circles of modules, {kind}: {len(found)}: {_largest(found)}")
        for room, (own, tests) in sorted(rooms(files).items()):
            say(f"  {room:34} {own:7,} lines, {tests:7,} of tests, {tests / max(own, 1):.2f}")


def circles(files: Mapping[PurePosixPath, str], *, late: bool) -> list[list[str]]:
    """Return the circles of modules that import one another.

    Args:
        files: Texts by path.
        late: Whether imports in functions count; those for type checkers never do.
    """
    names = {_module(path): path for path in files}
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name, path in names.items():
        for other in _imported(ast.parse(files[path]), late=late):
            if other in names and other != name:
                graph.add_edge(name, other)
    return [sorted(each) for each in nx.strongly_connected_components(graph) if len(each) > 1]


def rooms(files: Mapping[PurePosixPath, str]) -> dict[str, tuple[int, int]]:
    """Return the lines of each folder of the top two levels, and of its tests."""
    own: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for path, text in files.items():
        of_tests = path.parts[0] == "tests"
        folders = path.parts[1:-1] if of_tests else path.parts[:-1]
        (tests if of_tests else own)["/".join(folders[:2]) or "."] += text.count("\n")
    return {room: (lines, tests[room]) for room, lines in own.items() if room != "."}


def _depth(node: ast.AST) -> int:
    """Return how deep blocks are nested inside a node; an `elif` is no deeper than its `if`."""
    inner = [each for each in ast.iter_child_nodes(node) if not isinstance(each, _Function)]
    return max((_is_deeper(node, each) + _depth(each) for each in inner), default=0)


def _is_deeper(node: ast.AST, inner: ast.AST) -> bool:
    is_elif = isinstance(node, ast.If) and isinstance(inner, ast.If) and node.orelse == [inner]
    return isinstance(inner, _BLOCKS) and not is_elif


def _spread(values: Sequence[int]) -> str:
    middle, most = np.percentile(values, [50, 90])
    return f"median {middle:.0f}, 90 % {most:.0f}, most {max(values)}"


def _largest(found: Sequence[Sequence[str]]) -> str:
    return ", ".join(f"{each[0]} and {len(each) - 1} more" for each in found[:4]) or "none"


def _module(path: PurePosixPath) -> str:
    parts = path.with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(parts if parts[:1] == ("ringleaf",) else ("ringleaf", *parts))


def _imported(tree: ast.AST, *, late: bool) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, _Function) and not late:
            continue
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)
        yield from _imported(node, late=late)


def _files_now() -> dict[PurePosixPath, str]:
    done = run(("git", "-C", ROOT, "ls-files", "-z", "*.py"), capture_output=True, check=True)
    names = filter(None, done.stdout.decode().split("\0"))
    paths = {PurePosixPath(name): ROOT / name for name in names}
    return {name: path.read_text() for name, path in paths.items() if path.is_file()}


def _files_of(commit: str) -> dict[PurePosixPath, str]:
    command = ("git", "-C", ROOT, "archive", "--format=tar", "--", commit)
    done = run(command, capture_output=True, check=False)
    if done.returncode or commit.startswith("-"):
        raise ConfigError(f"code: no such commit, got {commit!r}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        members = [each for each in archive if each.isfile() and Path(each.name).suffix == ".py"]
        files = ((each.name, archive.extractfile(each)) for each in members)
        return {PurePosixPath(name): file.read().decode() for name, file in files if file}


if __name__ == "__main__":
    alone("python -m bench.code", code_command)
