"""Headers, and how they make up stacks and unions."""

from __future__ import annotations

from dataclasses import dataclass

from ringleaf.switches.source.names import VALID


@dataclass(frozen=True, slots=True)
class HeaderField:
    """A field of a header, with its width, sign and place."""

    name: str
    width: int  # bits, of a varbit field at most
    signed: bool
    offset: int  # bits from the start of the header, without a varbit field before it
    varbit: bool = False


@dataclass(frozen=True, slots=True)
class HeaderSource:
    """A header instance, or a struct of metadata, which is never on the wire."""

    name: str
    fields: tuple[HeaderField, ...]
    metadata: bool

    @property
    def size_bytes(self) -> int:
        """Its greatest length in bytes."""
        return sum(item.width for item in self.fields) // 8

    @property
    def varbit(self) -> HeaderField | None:
        """Its varbit field; BMv2 allows for one."""
        return next((item for item in self.fields if item.varbit), None)

    @property
    def fixed_bytes(self) -> int:
        """Its length in bytes while its varbit field is empty."""
        return self.size_bytes - (self.varbit.width // 8 if self.varbit else 0)


@dataclass(frozen=True, slots=True)
class Instances:
    """A program's headers, and how they make up stacks and unions, all by name."""

    headers: dict[str, HeaderSource]
    stacks: dict[str, tuple[str, ...]]  # headers, from the first
    unions: dict[str, tuple[str, ...]]  # headers, of which one at most is valid
    union_stacks: dict[str, tuple[str, ...]]  # unions, from the first
    members: dict[str, tuple[str, ...]]  # per union, the names of its headers in its type

    def field_of(self, header: str, name: str) -> HeaderField:
        """Return a field's declaration; a header's hidden `$valid$` has one bit."""
        for item in self.headers[header].fields:
            if item.name == name:
                return item
        if name != VALID:
            raise KeyError(f"{header}.{name}")
        return HeaderField(VALID, 1, False, 0)

    def union_of(self, header: str) -> tuple[str, ...]:
        """Return the headers of the union that a header is in; itself alone if in none."""
        for union in self.unions.values():
            if header in union:
                return union
        return (header,)

    def elements(self, stack: str) -> tuple[tuple[str, ...], ...]:
        """Return the headers of each element of a stack, of headers or of unions."""
        if stack in self.stacks:
            return tuple((header,) for header in self.stacks[stack])
        return tuple(self.unions[union] for union in self.union_stacks[stack])
