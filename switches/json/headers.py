"""Header types and instances, stacks and unions in BMv2 JSON."""

from __future__ import annotations

from pathlib import Path

from ringleaf.switches.json.expressions import Json, where_of
from ringleaf.switches.source import STACKS, HeaderField, HeaderSource, Instances, refusal

COUNT_BITS = 32  # of a stack's count, which BMv2 calls `next`


class HeaderReader:
    """Reads a program's header types and instances."""

    def __init__(self, path: Path, data: Json) -> None:
        self._path = path
        self._data = data

    def read(self) -> Instances:
        """Read all headers, stacks and unions.

        Raises:
            ConfigError: If a header is not whole bytes.
        """
        data = self._data
        types = {item["name"]: self._fields(item) for item in data["header_types"]}
        headers = {item["id"]: self._header(item, types) for item in data["headers"]}
        names = {number: header.name for number, header in headers.items()}
        unions, union_stacks = data["header_unions"], data["header_union_stacks"]
        union_names = {item["id"]: item["name"] for item in unions}
        union_types = {
            item["name"]: tuple(name for name, _ in item["headers"])
            for item in data["header_union_types"]
        }
        stacks = {
            item["name"]: tuple(names[number] for number in item["header_ids"])
            for item in data["header_stacks"]
        }
        stacks_of_unions = {
            item["name"]: tuple(union_names[number] for number in item["header_union_ids"])
            for item in union_stacks
        }
        return Instances(
            headers={header.name: header for header in headers.values()}
            | _counts([*stacks, *stacks_of_unions]),
            stacks=stacks,
            unions={
                item["name"]: tuple(names[number] for number in item["header_ids"])
                for item in unions
            },
            union_stacks=stacks_of_unions,
            members={item["name"]: union_types[item["union_type"]] for item in unions},
        )

    def _header(self, item: Json, types: dict[str, tuple[HeaderField, ...]]) -> HeaderSource:
        header = HeaderSource(item["name"], types[item["header_type"]], item["metadata"])
        if not header.metadata and sum(f.width for f in header.fields) % 8:
            raise self._refuse("header must be whole bytes", header.name, item)
        return header

    def _fields(self, item: Json) -> tuple[HeaderField, ...]:
        fields = []
        offset = 0
        for name, width, *signed in item["fields"]:
            if width == "*":
                rest = sum(other[1] for other in item["fields"] if other[1] != "*")
                longest = 8 * item["max_length"] - rest
                if longest < 0:
                    raise self._refuse("a header longer than it may be", item["name"], item)
                fields.append(HeaderField(name, longest, False, offset, varbit=True))
            else:
                fields.append(HeaderField(name, width, bool(signed and signed[0]), offset))
                offset += width
        if sum(field.varbit for field in fields) > 1:
            raise self._refuse("a header with two varbit fields", item["name"], item)
        return tuple(fields)

    def _refuse(self, what: str, got: object, item: Json) -> Exception:
        return refusal(self._path, what, got, where_of(item))


def _counts(stacks: list[str]) -> dict[str, HeaderSource]:
    """Return the header of the stacks' counts; none where there are no stacks."""
    fields = [HeaderField(name, COUNT_BITS, False, COUNT_BITS * i) for i, name in enumerate(stacks)]
    return {STACKS: HeaderSource(STACKS, tuple(fields), True)} if fields else {}
