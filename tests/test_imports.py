"""The packages import one another only as docs/architecture.md says, and never in a circle."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parent.parent


def read_table(page: str) -> dict[str, set[str]]:
    """Package -> the packages of ours that it may import, as the page's table has them."""
    allowed: dict[str, set[str]] = {}
    for row in re.finditer(r"^\| `(\w+)` \|[^|]*\| ([^|]*) \|$", page, re.MULTILINE):
        package, rule = row.groups()
        if rule in ("the above", "all"):
            allowed[package] = set(allowed)
        else:
            allowed[package] = set(re.findall(r"`(\w+)`", rule))
    return allowed


ALLOWED = read_table((ROOT / "docs" / "architecture.md").read_text())


def modules() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for package in ALLOWED:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imported(tree: ast.AST, *, when_loaded: bool) -> Iterator[str]:
    """Names of modules that a file imports; `when_loaded` leaves out what functions and
    type checkers import.

    `from package import module` is an import of the module, not of what else the package has.
    """
    for node in ast.iter_child_nodes(tree):
        if when_loaded and (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        ):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: import by the full name"
            assert node.module is not None
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from sorted(names & MODULES.keys())
            if names - MODULES.keys():
                yield node.module
        yield from imported(node, when_loaded=when_loaded)


def test_the_table_names_every_package() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"}

    assert set(ALLOWED) == packages


@pytest.mark.parametrize("package", ALLOWED)
def test_a_package_imports_only_what_it_may(package: str) -> None:
    wrong = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        if module.split(".")[0] == package
        for name in imported(ast.parse(path.read_text()), when_loaded=False)
        if name.split(".")[0] in set(ALLOWED) - ALLOWED[package] - {package}
    ]

    assert wrong == []


def test_no_module_imports_itself_through_others() -> None:
    graph = nx.DiGraph(
        (module, name)
        for module, path in MODULES.items()
        for name in imported(ast.parse(path.read_text()), when_loaded=True)
        if name in MODULES and name != module
    )

    assert [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1] == []


def test_a_forbidden_import_would_be_found() -> None:
    tree = ast.parse("def f():\n    from experiments import cli\n")

    assert "experiments.cli" in set(imported(tree, when_loaded=False))
    assert set(imported(tree, when_loaded=True)) == set()
