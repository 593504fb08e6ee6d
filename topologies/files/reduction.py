"""Networks of parts, such as a server's inside, reduced to hosts, switches and links.

Parts through which nothing passes are left out, those with two links and no choice become part of
the link, and links side by side become one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ringleaf.core.units import exact_rate, exact_time, parse_fraction, parse_rate, parse_time
from ringleaf.topologies.files.attributes import BACK, USUAL
from ringleaf.topologies.files.rows import FileRow, LinkRow

Terms = Mapping[str, str]
"""Attributes of one direction, without an ending."""


@dataclass(frozen=True, slots=True)
class ReducedLink:
    """A link between two parts; `order` is its place among the links."""

    a: str
    b: str
    there: Terms
    back: Terms
    line: int
    order: int

    def leaving(self, node: str) -> ReducedLink:
        """Return the same link, beginning at one of its ends."""
        if node == self.a:
            return self
        return ReducedLink(self.b, self.a, self.back, self.there, self.line, self.order)


@dataclass(slots=True)
class Parts:
    """A network of parts, which is reduced in place; `edges` has the links of each part."""

    edges: dict[str, list[ReducedLink]] = field(default_factory=dict)

    @classmethod
    def of(cls, names: Iterable[str], edges: Iterable[ReducedLink]) -> Parts:
        """Return the network of some parts; links of a part with itself are left out."""
        parts = cls({name: [] for name in names})
        for each in edges:
            parts._add(each)
        return parts

    def reduce(self, kept: Iterable[str], passive: Iterable[str]) -> None:
        """Leave out ends that are not `kept`, and make `passive` parts with two links part of them.

        Passive parts with more links stay.
        """
        keep, through = set(kept), set(passive)
        waiting = [name for name in self.edges if name not in keep]
        while waiting:
            name = waiting.pop()
            mine = self.edges.get(name)
            if mine is None:
                continue
            if len(mine) < 2:
                waiting += [each.b for each in self._remove(name) if each.b not in keep]
            elif len(mine) == 2 and name in through:
                first, second = self._remove(name)
                self._add(_chained(first.leaving(first.b), second))
                waiting += [end for end in (first.b, second.b) if end not in keep]

    def links(self) -> tuple[LinkRow, ...]:
        """Return the links in their order, those side by side with their rates added.

        Those of which a rate is not known stay links of their own.
        """
        together: dict[frozenset[str], list[ReducedLink]] = {}
        whole = sorted(
            (each for name, mine in self.edges.items() for each in mine if each.a == name),
            key=lambda each: each.order,
        )
        for each in whole:
            together.setdefault(frozenset((each.a, each.b)), []).append(each)
        rows = []
        for edges in together.values():
            is_known = all("rate" in way for each in edges for way in (each.there, each.back))
            rows += [_row(edges)] if is_known else [_row([each]) for each in edges]
        return tuple(rows)

    def _add(self, edge: ReducedLink) -> None:
        if edge.a != edge.b:
            self.edges[edge.a].append(edge)
            self.edges[edge.b].append(edge)

    def _remove(self, name: str) -> list[ReducedLink]:
        """Remove a part; return its links, which begin there."""
        mine = self.edges.pop(name)
        for each in mine:
            other = each.leaving(name).b
            self.edges[other] = [edge for edge in self.edges[other] if edge is not each]
        return [each.leaving(name) for each in mine]


def _chained(first: ReducedLink, second: ReducedLink) -> ReducedLink:
    """Return the link that two links are, one after the other."""
    line, order = max((each.order, each.line) for each in (first, second))[::-1]
    return ReducedLink(
        first.a,
        second.b,
        _in_line(first.there, second.there),
        _in_line(second.back, first.back),
        line,
        order,
    )


def _in_line(first: Terms, second: Terms) -> Terms:
    """Return the terms of two links, one after the other; those of an unknown one don't count."""
    both = [each for each in (first, second) if each]
    if len(both) < 2:
        return both[0] if both else {}
    terms = {**second, **first}  # the queue is that of the first sender
    rates = [parse_rate(each["rate"]) for each in both if "rate" in each]
    if rates:
        terms["rate"] = exact_rate(min(rates))
    delays = [parse_time(each["delay"]) for each in both if "delay" in each]
    if delays:
        terms["delay"] = exact_time(sum(delays))
    losses = [parse_fraction(each["loss"]) for each in both if "loss" in each]
    if len(losses) == 2:
        terms["loss"] = repr(1 - (1 - losses[0]) * (1 - losses[1]))
    return terms


def _row(edges: list[ReducedLink]) -> LinkRow:
    """Return links side by side, whose rates are known, as one."""
    first = edges[0]
    same = [each.leaving(first.a) for each in edges]
    there = _side_by_side([each.there for each in same])
    back = _side_by_side([each.back for each in same])
    names = [name for name in {**there, **back} if there.get(name) != back.get(name)]
    differing = {f"{name}{BACK}": back.get(name, USUAL) for name in names}
    return LinkRow(first.a, first.b, FileRow(first.line, {**there, **differing}))


def _side_by_side(terms: list[Terms]) -> dict[str, str]:
    if len(terms) == 1:
        return dict(terms[0])
    rates = [parse_rate(each["rate"]) for each in terms]
    return {**terms[0], "rate": exact_rate(sum(rates))}
