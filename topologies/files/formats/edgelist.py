"""A plain edge list, to be typed: a line per link, with attributes if it needs any.

# what a file says of itself has no name, a node has one, a link two
hierarchy=2x2
gpu0 role=host rank=0
gpu0 leaf0 rate=100G delay=1us
leaf0 spine0 rate=400G rate_back=200G loss=0.1% buffer=1MiB
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Mapping

from ringleaf.errors import ConfigError, TopologyError
from ringleaf.topologies.files.format import TopologyFormat
from ringleaf.topologies.files.rows import (
    FileRow,
    LinkRow,
    NetworkRows,
    NodeRow,
    as_text,
)

LONGEST_DATA = 4096
_INSIDE = re.compile(r"""'[^']*'|"[^"]*"|(?<=[^\s\\])#""")
"""A `#` inside a word, or words in quotes, in which it is no comment anyway."""
_MARK = (
    r"\A(?:\s*#[^\n]*\n)*[^\s{\[<]\S*[ \t]+\S+[ \t]+"
    r"\{(?:['\"\d][^\n]*)?\}[ \t\r]*(?:\n|\Z)"
)
"""NetworkX's lists, which end each line with data; ours are known by their ending alone."""


def read(text: str, where: str) -> NetworkRows:
    """Return nodes in the order in which they are first named, and links.

    Raises:
        ConfigError: If a line has more than two names, or an attribute twice, or none has two.
    """
    is_ours = True
    about: dict[str, str] = {}
    nodes: dict[str, FileRow] = {}
    links = []
    for line, content in enumerate(text.splitlines(), start=1):
        content, data = _without_data(content, f"{where} line {line}")
        names, values = _split(content, f"{where} line {line}")
        is_ours = is_ours and not data
        values |= data
        for name in names:
            nodes.setdefault(name, FileRow(line, {}))
        if len(names) == 2:
            links.append(LinkRow(names[0], names[1], FileRow(line, values)))
        elif names:
            nodes[names[0]] = FileRow(line, {**nodes[names[0]].values, **values})
        else:
            about |= values
    if not links and (name := next((each for each in nodes if "," in each), "")):
        raise ConfigError(
            f"{where} line {nodes[name].line}: must have blanks between two names, "
            f"got {name!r:.60}; write them in place of commas"
        )
    rows = tuple(NodeRow(name, row) for name, row in nodes.items())
    return NetworkRows(
        rows, tuple(links), FileRow(1, about), strict=is_ours, may_repeat=not is_ours
    )


def _without_data(content: str, where: str) -> tuple[str, dict[str, str]]:
    """Return a line without the data in braces that NetworkX ends it with, and the data."""
    match = re.fullmatch(r"([^{]*)(\{.*\})\s*", content)
    if match is None:
        return content, {}
    try:
        data = ast.literal_eval(_literal(match[2][:LONGEST_DATA]))
        return match[1], {str(name): as_text(value) for name, value in data.items()}
    except (ValueError, SyntaxError, TypeError, AttributeError, MemoryError, RecursionError) as e:
        raise ConfigError(
            f"{where}: must be data like {{'rate': '10G'}}, got {match[2]!r:.60}"
        ) from e


def _literal(data: str) -> str:
    """Return data with NumPy's numbers and those that are none as Python's literals."""
    data = re.sub(r"\bnp\.\w{1,20}\(([^()]*)\)", r"\1", data)
    return re.sub(r"(?<=: )(?:nan|-?inf)(?=[,}])", r"'\g<0>'", data)


def _split(content: str, where: str) -> tuple[list[str], dict[str, str]]:
    """Return the names and the attributes of a line."""
    try:
        words = _words(content)
    except ValueError as error:
        raise ConfigError(f"{where}: not understood: {error}, got {content!r:.60}") from error
    names: list[str] = []
    values: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            names.append(word)
        elif key in values:
            raise ConfigError(f"{where}: {key} is there twice, got {content.strip()!r:.60}")
        else:
            values[key] = value
    if len(names) > 2:
        raise ConfigError(
            f"{where}: must have two names and attributes like rate=100G, "
            f"got {content.strip()!r:.60}"
        )
    return names, values


def _words(content: str) -> list[str]:
    """Return the words of a line without its comment; quotes keep blanks in a word.

    As in a shell, a comment begins with a word: `gpu#0` has none.
    """
    if any(letter in content for letter in "\"'\\#"):
        inside = _INSIDE.sub(lambda match: "\\#" if match[0] == "#" else match[0], content)
        return shlex.split(inside, comments=True)
    return content.split()  # many times as fast


def write(rows: NetworkRows) -> str:
    """Return the text of a file.

    Raises:
        TopologyError: If a name would be taken for something else.
    """
    for node in rows.nodes:
        if "=" in node.name or node.name == "{}":
            raise TopologyError(f"edges: a node's name can't have '=', got {node.name!r}")
    lines = [_line([], rows.about.values)] if rows.about.values else []
    lines += [_line([each.name], each.row.values) for each in rows.nodes]
    lines += [_line([each.a, each.b], each.row.values) for each in rows.links]
    return "".join(f"{line}\n" for line in lines)


def _line(names: list[str], values: Mapping[str, str]) -> str:
    words = [*names, *(f"{name}={value}" for name, value in values.items())]
    return " ".join(shlex.quote(word) if _is_odd(word) else word for word in words)


def _is_odd(word: str) -> bool:
    return any(letter in word for letter in " \t\"'\\#")


FORMAT = TopologyFormat("a plain edge list", (".edges", ".edgelist"), _MARK, read, write)
