"""YAML from files that anybody may have written: plain values, and not too much of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ringleaf.core.inputs import read_input
from ringleaf.errors import ConfigError

MOST_BYTES = 1 << 20  # which take seconds to read
MOST_VALUES = 500_000  # aliases written out: nine lines of YAML can be a billion values
DEEPEST = 50
MOST_DIGITS = 100  # of a whole number: Python can't write one of thousands, hexadecimal ones too

_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_OF_ANOTHER_BASE = re.compile(r"[-+]?(?:0[\d_]+|.*:.*)", re.ASCII)
_MERGE = "<<"

Construct = Callable[[Any, Any], Any]


def _construct(loader: Any, node: Any) -> Any:
    return loader.construct_document(node)


def read_yaml(path: Path, what: str) -> Any:
    """Return what a file holds.

    Args:
        path: Of the file.
        what: What errors call it: "spec".

    Raises:
        ConfigError: If it can't be read, is not YAML, or is too large or too deep.
    """
    where = f"{what} {path}"
    try:
        data = read_input(path, MOST_BYTES, where)
    except (OSError, ValueError) as error:  # the latter of a name with a zero in it
        problem = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{what}: can't read, got {str(path)!r}: {problem}") from error
    return parse_yaml(data, where)


def parse_yaml(data: bytes, where: str, construct: Construct = _construct) -> Any:
    """Return what YAML holds, as `construct` makes it of the loader and its root node.

    Raises:
        ConfigError: If it is not YAML, or is too large or too deep.
    """
    import yaml

    if len(data) > MOST_BYTES:
        raise ConfigError(f"{where}: must have at most {MOST_BYTES} bytes, got more")
    try:
        text = data.decode()
        # libyaml's, where PyYAML was built with it: many times as fast
        kind = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        _check_depth(yaml.parse(text, Loader=kind), where)
        loader = kind(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _check_size(node, where)
        return construct(loader, node)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise ConfigError(f"{where}: not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise _too_much(where) from error


def _check_depth(events: Iterable[Any], where: str) -> None:
    """See to it that composing nodes doesn't go too deep, as libyaml does not survive it."""
    depth = 0
    for event in events:
        name = type(event).__name__
        depth += name.endswith("StartEvent") - name.endswith("EndEvent")
        if depth > DEEPEST + 3:  # a stream and a document are around all
            raise _too_much(where)


def _check_size(node: Any, where: str) -> None:
    if _size(node, {}, 0, where) > MOST_VALUES:
        raise _too_much(where)


def _size(node: Any, known: dict[int, int | None], depth: int, where: str) -> int:
    """Return how many values a node has, written out; aliases are nodes that are met again."""
    if depth > DEEPEST:
        raise _too_much(where)
    if not isinstance(node.value, list):
        if node.tag in _NUMBERS:
            _check_number(node.value, where)
        return 1
    if id(node) in known:
        size = known[id(node)]
        if size is None:
            raise ConfigError(f"{where}: a value can't hold itself, got an alias that does")
        return size
    known[id(node)] = None
    _check_names(node.value, where)
    parts = [part for item in node.value for part in (item if isinstance(item, tuple) else (item,))]
    size = 1 + sum(_size(part, known, depth + 1, where) for part in parts)
    known[id(node)] = size
    return size


def _check_number(text: str, where: str) -> None:
    """See to it that a number is what people take it for: YAML has 010 as 8, and 1:30 as 90."""
    if len(text) > MOST_DIGITS:
        raise ConfigError(f"{where}: a number has at most {MOST_DIGITS} digits, got {len(text)}")
    if _OF_ANOTHER_BASE.fullmatch(text):
        raise ConfigError(
            f"{where}: a number has no 0 before it and no colon, got {text}, which YAML takes for "
            f"one of base {60 if ':' in text else 8}; write it without, or in quotes"
        )


def _check_names(items: list[Any], where: str) -> None:
    """See to it that a mapping has each name once: of two values, YAML would take the last."""
    names = Counter(
        each[0].value for each in items if isinstance(each, tuple) and _is_name(each[0])
    )
    for name, times in names.items():
        if times > 1:
            raise ConfigError(
                f"{where}: a name must be there once, got {name!r:.80} twice; leave out one"
            )


def _is_name(node: Any) -> bool:
    return isinstance(node.value, str) and node.value != _MERGE


def _too_much(where: str) -> ConfigError:
    return ConfigError(f"{where}: at most {MOST_VALUES} values, {DEEPEST} deep, got more")
