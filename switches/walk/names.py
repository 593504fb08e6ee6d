"""The fields' names in P4 source.

p4c's JSON has `ipv4.dst` for `hdr.ipv4.dst`, and flattens structs and the variables of
controls: `metadata_t._group_base0` was `meta.group.base`, `nexthop_0` was `nexthop`. A name
that the source does not confirm stays as it is in the JSON.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from ringleaf.switches.generate.storage import ENGINE
from ringleaf.switches.source import PSA, STANDARD, VALID, FieldSource

_PATH = re.compile(r"\b[A-Za-z_]\w*(?:\[\w+\])?(?:\.[A-Za-z_]\w*(?:\[\w+\])?)+")


class Names:
    """The names in the text of a program's P4 files."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._paths = Counter(
            tuple(re.sub(r"\[\w+\]", "", path).split(".")) for path in _PATH.findall(text)
        )
        self.field = cache(self._field)
        self.header = cache(self._header)

    def _field(self, field: FieldSource) -> str:
        if field.header == ENGINE:
            return field.name.replace("_", " ")
        if field.header == "scalars":
            return self._scalar(field.name)
        header = self.header(field.header)
        return f"{header}.isValid()" if field.name == VALID else f"{header}.{field.name}"

    def _header(self, name: str) -> str:
        if name == STANDARD or name in PSA.structs:
            return name
        plain = re.sub(r"\[\d+\]", "", name).split(".")
        roots = Counter[str]()
        for path, count in self._paths.items():
            if list(path[1 : 1 + len(plain)]) == plain:
                roots[path[0]] += count
        return f"{roots.most_common(1)[0][0]}.{name}" if roots else name

    def _scalar(self, name: str) -> str:
        if "." in name:
            return self._member(name)
        return self._variable(name)

    def _member(self, name: str) -> str:
        """Return a member of a struct, whose name p4c has joined by underscores and numbered."""
        struct, _, flat = name.partition(".")
        for end in range(len(flat), 0, -1):
            if end < len(flat) and not flat[end].isdigit():
                break
            for path in self._paths:
                joined = "_".join(path[1:])
                if flat[:end] in (joined, f"_{joined}"):
                    return ".".join(path)
        return f"{struct}.{flat.lstrip('_')}"

    def _variable(self, name: str) -> str:
        """Return a local variable without p4c's prefix (controls) and suffix (a number)."""
        for candidate in (name, re.sub(r"_\d+$", "", name)):
            parts = candidate.split("_")
            for start in range(len(parts)):
                short = "_".join(parts[start:])
                if short.isidentifier() and re.search(
                    rf"[\w>]\s+{re.escape(short)}\s*[;=]", self._text
                ):
                    return short
        return name
