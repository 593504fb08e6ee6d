"""Names say what they are: public classes' are unique, modules' and variables' no empty words."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OURS = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"]

_EMPTY = (
    "ahead alike alone apart beside carry common doing found given held inside in_turn kept "
    "helpers later leftovers misc now older other others ours stock straight stuff things told "
    "utils why whole wide"
)
SAY_NOTHING = set(re.findall(r"\w+", _EMPTY))
"""Words that do not say what a module has."""

ASIDE = {"bench", "studies"}
HOW_IT_CAME = {"found", "given", "held", "made", "said", "told", "wanted"}
"""Words that say how a value came to be there, not what it is: a row, a figure, a path."""


def test_modules_are_not_called_by_words_that_say_nothing() -> None:
    modules = [path for folder in OURS for path in folder.rglob("*.py")]
    assert len(modules) > 1000
    assert [path for path in modules if path.stem in SAY_NOTHING] == []


def test_public_classes_have_unique_names() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in (path for folder in OURS for path in sorted(folder.rglob("*.py"))):
        where = path.relative_to(ROOT).as_posix()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(where)
    assert len(places) > 1000
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def _variables(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and name of each variable and parameter; fields of dataclasses are none."""
    tree = ast.parse(text)
    fields = {
        statement.target
        for owner in ast.walk(tree)
        if isinstance(owner, ast.ClassDef)
        for statement in owner.body
        if isinstance(statement, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Name(name, ast.Store()) if node not in fields:
                yield node.lineno, name
            case ast.arg(name):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(str(name)):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)):
                yield node.lineno, name


def test_all_kinds_of_variables_are_seen() -> None:
    text = """
class Row:
    field: int
    def method(parameter):
        [each for each in parameter if (walrus := each)]
        lambda inner: inner
        match parameter:
            case [captured, *rest]: local: int = 1
        try: pass
        except ValueError as error: pass
"""
    names = "parameter each walrus inner captured rest local error"
    assert {name for _, name in _variables(text)} == set(names.split())


def test_variables_say_what_they_hold() -> None:
    paths = [path for folder in OURS if folder.name not in ASIDE for path in folder.rglob("*.py")]
    assert len(paths) > 1000
    word = re.compile(rf"\b({'|'.join(HOW_IT_CAME)})\b")
    assert [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in paths
        if word.search(text := path.read_text())  # most files need not be parsed
        for line, name in _variables(text)
        if name in HOW_IT_CAME
    ] == []
