"""The packages import one another only as docs/architecture.md says, and never in a circle."""

import ast
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

import networkx as nx
import pytest

from bench.code import circles

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


LEAVES = FACE = "ringleaf"
INSTRUMENTS = {"bench", "studies"}
ALLOWED = read_table((ROOT / "docs" / "architecture.md").read_text())


def modules() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for package in ALLOWED:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            parts = parts if parts[0] == LEAVES else (LEAVES, *parts)
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def package_of(module: str) -> str:
    """Return the package of a module of ours; of what is in none of the others, `ringleaf`."""
    _, *names = module.split(".")
    return names[0] if names and names[0] in ALLOWED else LEAVES


MODULES = modules()


def imported(tree: ast.AST, *, when_loaded: bool) -> Iterator[str]:
    """Names of modules that a file imports; `when_loaded` leaves out what functions and
    type checkers import.

    `from package import module` is an import of the module, not of what else the package has.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):  # no statement is in one
            continue
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


@cache
def _all_imports(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what `imported` finds in a file, which is parsed once; and what when it is loaded."""
    tree = ast.parse(path.read_text())
    every = tuple(imported(tree, when_loaded=False))
    return every, tuple(imported(tree, when_loaded=True)) if every else ()


def imports_of(path: Path, *, when_loaded: bool) -> tuple[str, ...]:
    """Return what `imported` finds in a file."""
    return _all_imports(path)[when_loaded]


def test_the_table_names_every_package() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}

    assert set(ALLOWED) | INSTRUMENTS == packages


def test_nobody_needs_the_instruments() -> None:
    """They measure Ringleaf, and are in the repository alone."""
    wrong = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        for name in imports_of(path, when_loaded=False)
        if name.split(".")[0] in INSTRUMENTS
    ]

    assert wrong == []


def test_command_lines_are_put_together_by_typer() -> None:
    """The daemon starts with each live network, and sooner; the other takes others' options."""
    others = re.compile(r"^ *(?:import|from) (?:argparse|optparse|getopt|click)\b", re.MULTILINE)
    more = {*INSTRUMENTS, "tests", ".ci", "p4", "docs", "examples"}
    paths = [*MODULES.values(), *(path for each in more for path in (ROOT / each).rglob("*.py"))]
    found = {str(path.relative_to(ROOT)) for path in paths if others.search(path.read_text())}

    assert found == {"networks/live/daemon.py", "tests/interrupting.py"}


def test_the_package_has_a_link_to_every_folder() -> None:
    links = {
        path.name: os.readlink(path) for path in (ROOT / LEAVES).iterdir() if path.is_symlink()
    }

    assert links == {name: f"../{name}" for name in {*ALLOWED, "p4"} - {LEAVES}}


def test_nothing_is_imported_by_a_second_name() -> None:
    second = {*ALLOWED, "tests"} - {LEAVES}
    sources = [*MODULES.values(), *(ROOT / "tests").rglob("*.py"), ROOT / "p4" / "compile.py"]
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources
        for name in imports_of(path, when_loaded=False)
        if name.split(".")[0] in second
    ]

    assert wrong == []


@pytest.mark.parametrize("package", ALLOWED)
def test_a_package_imports_only_what_it_may(package: str) -> None:
    """`ringleaf` itself is the face of it all: it has experiments when somebody asks for them."""
    wrong = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        if package_of(module) == package and module != FACE
        for name in imports_of(path, when_loaded=False)
        if name.split(".")[0] == LEAVES
        and package_of(name) in set(ALLOWED) - ALLOWED[package] - {package}
    ]

    assert wrong == []


def test_the_face_imports_nothing_when_loaded() -> None:
    tree = ast.parse(MODULES[FACE].read_text())
    assert [n for n in imported(tree, when_loaded=True) if n.split(".")[0] == LEAVES] == []


def test_no_module_imports_itself_through_others() -> None:
    """Imports in functions count, too; those for type checkers do not."""
    files = {PurePosixPath(path.relative_to(ROOT)): path.read_text() for path in MODULES.values()}
    assert len(files) > 1000
    assert circles(files, late=True) == []


def test_a_circle_by_an_import_in_a_function_is_found() -> None:
    late = "def f():\n    from ringleaf.b import g\n"
    typed = "if TYPE_CHECKING:\n    from ringleaf.a import f\n"
    files = {PurePosixPath("a.py"): late, PurePosixPath("b.py"): "from ringleaf.a import f\n"}
    assert circles(files, late=True) == [["ringleaf.a", "ringleaf.b"]]
    assert circles(files, late=False) == []
    assert circles({**files, PurePosixPath("b.py"): typed}, late=True) == []


def room_of(module: str) -> str:
    """Return the folder of a module that lies in one inside a package; else the module itself."""
    _, *names = module.split(".")
    is_folder = MODULES[module].name == "__init__.py"
    return ".".join(names if is_folder or len(names) < 3 else names[:-1])


def test_no_room_inside_a_package_imports_itself_through_others() -> None:
    graph = nx.DiGraph(
        (room_of(module), room_of(name))
        for module, path in MODULES.items()
        for name in imports_of(path, when_loaded=True)
        if name in MODULES and room_of(name) != room_of(module)
    )

    assert [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1] == []


def test_a_forbidden_import_would_be_found() -> None:
    tree = ast.parse("def f():\n    from ringleaf.experiments.commands import cli\n")

    assert "ringleaf.experiments.commands.cli" in set(imported(tree, when_loaded=False))
    assert set(imported(tree, when_loaded=True)) == set()


def test_no_system_is_known_to_networks_or_to_what_systems_share() -> None:
    """A system of another package must find there all that ours do."""
    systems = {path.parent.name for path in (ROOT / "ina").glob("*/system.py")}
    wrong = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        if package_of(module) == "networks" or path.parent == ROOT / "ina"
        for name in imports_of(path, when_loaded=False)
        if name.startswith("ringleaf.ina.") and name.split(".")[2] in systems
    ]

    assert "atp" in systems
    assert wrong == []
