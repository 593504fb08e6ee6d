"""JSON and YAML as plain values, whose mappings know the line on which they begin."""

from __future__ import annotations

import json
import json.decoder
import json.scanner
from bisect import bisect_right
from collections import Counter
from typing import Any

from ringleaf.core.yaml_file import parse_yaml
from ringleaf.errors import ConfigError

_read_object: Any = json.decoder.JSONObject  # type: ignore[attr-defined]  # not in typeshed
_make_scanner: Any = json.scanner.py_make_scanner  # type: ignore[attr-defined]


class Located(dict[str, Any]):
    """A mapping of a file, and its line, from 1."""

    line = 0


class _Decoder(json.JSONDecoder):
    """A decoder that notes the line of each object; the standard library's uses these hooks."""

    def __init__(self, text: str, where: str) -> None:
        super().__init__(object_pairs_hook=list)
        self._where = where
        self._starts = [i + 1 for i, letter in enumerate(text) if letter == "\n"]
        self.parse_object = self._parse_object
        self.scan_once = _make_scanner(self)

    def _parse_object(self, place: tuple[str, int], *rest: Any) -> tuple[Located, int]:
        pairs, end = _read_object(place, *rest)
        mapping = Located(pairs)
        mapping.line = 1 + bisect_right(self._starts, place[1] - 1)
        if len(mapping) < len(pairs):  # of two values, Python takes the last
            [(name, _)] = Counter(name for name, _ in pairs).most_common(1)
            raise ConfigError(
                f"{self._where} line {mapping.line}: a name must be there once, got {name!r:.80} "
                "twice; leave out one"
            )
        return mapping, end


def read_json(text: str, where: str) -> Any:
    """Return what a text holds.

    Raises:
        ConfigError: If it is no JSON, too deep, or has a name twice in one object.
    """
    try:
        return _Decoder(text, where).decode(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{where} line {error.lineno}: not JSON: {error.msg}") from error
    except (RecursionError, ValueError) as error:
        raise ConfigError(f"{where}: not JSON that can be read: {error}") from error


def read_yaml(text: str, where: str) -> Any:
    """Return what a text holds, all scalars as texts.

    Raises:
        ConfigError: If it is no YAML, too large or too deep.
    """
    return parse_yaml(text.encode(), where, lambda loader, node: _plain(node, {}))


def _plain(node: Any, known: dict[int, Any]) -> Any:
    """Return the values of a YAML node; `known` has those that aliases may mean again."""
    if id(node) not in known:
        if node.id == "mapping":
            mapping = Located((str(_plain(key, known)), _plain(v, known)) for key, v in node.value)
            mapping.line = node.start_mark.line + 1
            known[id(node)] = mapping
        elif node.id == "sequence":
            known[id(node)] = [_plain(each, known) for each in node.value]
        else:
            known[id(node)] = None if node.tag.endswith(":null") else node.value
    return known[id(node)]
