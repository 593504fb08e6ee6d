"""The values in fields of headers that are not there; P4 leaves them open.

BMv2 marks the headers of a new packet invalid, no more (`PHV::reset`), so their fields hold what
an earlier packet left. The same goes for the new packets that clones, resubmitted and recirculated
ones become, and for the headers that a copy (multicast, clone of egress) has no valid original of
(`PHV::copy_headers`). An ingress clone is even parsed before its metadata are reset. In ours all
of this is zero; in a module with leftovers it is not, which shows packets that depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ringleaf.switches.engine.layout import EGRESS_CLONE, INSTANCE_TYPE, REPLICATION
from ringleaf.switches.generate.code import FunctionCode
from ringleaf.switches.generate.storage import POSITION, VARBITS, Storage
from ringleaf.switches.source import STACKS, VALID, FieldSource, ProgramSource


class Leftovers:
    """First values of one module's fields; `kind` is `Variant.leftovers`."""

    def __init__(self, source: ProgramSource, storage: Storage, kind: int) -> None:
        self._source = source
        self._storage = storage
        self._kind = kind
        self._numbers: dict[FieldSource, int] = {}

    def first(self, field: FieldSource, *, with_metadata: bool = False) -> int:
        """Return the first value of the first word of a field."""
        if not self._kind or not self._is_open(field, with_metadata):
            return 0
        width = min(self._storage.shape(field).width, 64)
        return self._number(field) & (1 << width) - 1

    def fill_lanes(self, code: FunctionCode) -> None:
        """Write code that fills the lanes of all headers."""
        if self._kind:
            self._fill(code, {field.header for field in self._storage.known()})

    def spoil_copies(self, code: FunctionCode, kept: Iterable[FieldSource]) -> None:
        """Write code that fills a copy's headers that are not there, at the start of egress."""
        if not self._kind:
            return
        fields = sorted(kept, key=lambda item: (item.header, item.name))
        kinds = (
            f"fields[{INSTANCE_TYPE}] == {code.u(kind)}" for kind in (REPLICATION, EGRESS_CLONE)
        )
        with code.lines.optional_block(f"if {' or '.join(kinds)}:"):
            for flag in (item for item in fields if item.name == VALID):
                absent = f"if {code.read(flag)} == {code.u(0)}:"
                with code.lines.optional_block(absent):
                    for field in (item for item in fields if item.header == flag.header):
                        if self._is_open(field, False) and not self._storage.lane(field):
                            name, *_ = self._storage.names(field)
                            code.add(f"{name} = {code.u(self.first(field))}")
                    self._fill(code, {flag.header})

    def _fill(self, code: FunctionCode, headers: set[str]) -> None:
        value = "1" if self._kind == 1 else "lane % 250 + 2"  # the narrowest lanes have 8 bits
        for first, last in _stretches(self._lanes_of(headers)):
            with code.block(f"for lane in range({first}, {last + 1}):"):
                code.add(f"lanes[lane] = {value}")

    def _lanes_of(self, headers: set[str]) -> list[int]:
        known = (field for field in self._storage.known() if field.header in headers)
        lanes = (self._storage.lane(field) for field in known if self._is_open(field, False))
        return sorted(lane.index for lane in lanes if lane is not None)

    def _number(self, field: FieldSource) -> int:
        if self._kind == 1:
            return 1
        return self._numbers.setdefault(field, len(self._numbers) + 1)

    def _is_open(self, field: FieldSource, with_metadata: bool) -> bool:
        header = self._source.headers.get(field.header)
        if header is None or field.header == STACKS:
            return False
        return (with_metadata or not header.metadata) and field.name not in (
            VALID,
            POSITION,
            VARBITS,
        )


def _stretches(numbers: list[int]) -> list[tuple[int, int]]:
    """Return the first and the last of each stretch of consecutive numbers."""
    stretches: list[tuple[int, int]] = []
    for number in numbers:
        if stretches and number == stretches[-1][1] + 1:
            stretches[-1] = stretches[-1][0], number
        else:
            stretches.append((number, number))
    return stretches
