"""Sketches: what people tell a search about a network, as TACCL has them, in a YAML file.

    links: near                  # all | near | direct | pairs of ranks: [[0, 1], [1, 0]]
    more: [[0, 8], [8, 0]]       # pairs of ranks, beside these
    without: [[0, 4]]            # pairs of ranks that are not used
    switches: [0, 1]             # numbers of the switches that may be passed; default: all
    symmetry: [[1, 4], [4, 16]]  # auto | none | [offset, size]: rank r is like r + offset in its
                                 # block of `size` ranks
    chunks: 2                    # for each rank
    longer: 0                    # hops that a chunk may go beyond a shortest way
    prefer: few                  # few | many | any links, where times are equal
    weight: 0.01                 # of that preference, in times of a chunk on the fastest link

All keys may be left out. `near` is what `unwound` makes of ways that meet at switches: few peers
for each rank; `direct` are ways that pass no switch between those of the two ranks, as NVLinks.
Each of these, of `all` and of others takes an even share of wires where ways meet. `auto` takes all
offsets under which the network is the same.

Source:
    Shah et al., "TACCL: Guiding Collective Algorithm Synthesis using Communication Sketches", NSDI
    2023; github.com/microsoft/taccl 426bd1e: `internode_conn`, `symmetry_offsets`, `input_chunkup`,
    `uc-min` and `uc-max` are `more`, `symmetry`, `chunks` and `prefer`. The file's form is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringleaf.collectives.synthesis.unwound import parted, unwound
from ringleaf.collectives.wires import Pair, RankNetwork
from ringleaf.core.units import format_count
from ringleaf.core.yaml_file import read_yaml
from ringleaf.errors import ConfigError, choose

ALL, NEAR, DIRECT = KINDS = ("all", "near", "direct")
AUTO, NONE = "auto", "none"
FEW, MANY, ANY = PREFERENCES = ("few", "many", "any")
MOST_CHUNKS, MOST_LONGER = 64, 8
ENDS = 2  # switches of the two ranks

Offsets = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Sketch:
    """A sketch; see the module's description.

    Attributes:
        links: `all`, `near`, `direct`, or pairs of ranks.
        more: Further pairs.
        without: Pairs that are not used.
        switches: Switches that may be passed; None: all.
        symmetry: `auto`, or offsets and block sizes; none of them: no symmetry.
        chunks: Chunks for each rank; None: the search's choice.
        longer: Hops that a chunk may go beyond a shortest way.
        prefer: `few`, `many` or `any`.
        weight: Of the preference.
    """

    links: str | tuple[Pair, ...] = NEAR
    more: tuple[Pair, ...] = ()
    without: tuple[Pair, ...] = ()
    switches: tuple[int, ...] | None = None
    symmetry: str | Offsets = AUTO
    chunks: int | None = None
    longer: int = 0
    prefer: str = FEW
    weight: float = 0.01

    def networks(self, wires: RankNetwork, seed: int) -> list[RankNetwork]:
        """Return the networks to search on: ways that are allowed, each with wires of its own.

        Raises:
            ConfigError: If the sketch names ranks or switches that there are not, or leaves ranks
                without a way to others.
        """
        wires = self._allowed(wires)
        if self.links == NEAR:
            networks = unwound(wires, seed)
            if self.more:
                networks = [
                    parted(wires, dict.fromkeys([*each.ways, *self.more])) for each in networks
                ]
        else:
            networks = [parted(wires, self._pairs(wires))]
        for each in networks:
            _check_joined(each)
        return networks

    def _pairs(self, wires: RankNetwork) -> list[Pair]:
        if not isinstance(self.links, str):
            chosen = [pair for pair in self.links if pair in wires.ways]
        elif self.links == ALL:
            chosen = [*wires.ways]
        else:
            chosen = [pair for pair in wires.ways if len(wires.through.get(pair, ())) <= ENDS]
        return list(dict.fromkeys([*chosen, *(pair for pair in self.more if pair in wires.ways)]))

    def _allowed(self, wires: RankNetwork) -> RankNetwork:
        named = (*self.without, *self.more, *(() if isinstance(self.links, str) else self.links))
        for pair in named:
            if pair not in wires.ways:
                raise ConfigError(
                    f"sketch: must name pairs of ranks that have a way of their own, got "
                    f"{list(pair)} among {format_count(wires.ranks, 'rank')}"
                )
        known = {switch for way in wires.through.values() for switch in way} | {*wires.sites}
        for switch in self.switches or ():
            if switch not in known:
                raise ConfigError(f"sketch: switches: no way passes switch {switch}, got it")
        ways = {
            pair: way
            for pair, way in wires.ways.items()
            if pair not in self.without
            and (self.switches is None or {*wires.through.get(pair, ())} <= {*self.switches})
        }
        return RankNetwork(wires.ranks, wires.wires, ways, wires.sites, wires.through)

    def turns(self, wires: RankNetwork) -> list[list[int]]:
        """Return symmetries of a network: for each, the rank that each rank is like.

        Raises:
            ConfigError: If the network is not the same under an offset that was given.
        """
        is_auto = isinstance(self.symmetry, str)
        turns: list[list[int]] = []
        for offset, size in (
            _offsets(wires.ranks) if isinstance(self.symmetry, str) else self.symmetry
        ):
            if wires.ranks % size:
                raise ConfigError(
                    f"sketch: symmetry: blocks must divide {format_count(wires.ranks, 'rank')}, "
                    f"got {size}"
                )
            turn = [r // size * size + (r % size + offset) % size for r in range(wires.ranks)]
            if _is_same(wires, turn) and _all_move([*turns, turn]):
                turns.append(turn)
            elif not is_auto:
                raise ConfigError(
                    "sketch: symmetry: the network must be the same with all ranks moved, got "
                    f"[{offset}, {size}]; take auto or none"
                )
        return turns


def _offsets(ranks: int) -> Iterator[tuple[int, int]]:
    """Yield offsets that divide a block, and blocks that divide the ranks, the largest first."""
    for offset in range(1, ranks // 2 + 1):
        for size in range(ranks, offset, -1):
            if ranks % size == 0 and size % offset == 0:
                yield offset, size


def _all_move(turns: list[list[int]]) -> bool:
    """Return whether no turn, one after another, brings a rank to itself and others elsewhere.

    Else a chunk would have to come to a rank on two ways that are the same.
    """
    still = tuple(range(len(turns[0])))
    reached, frontier = {still}, [still]
    while frontier:
        each = frontier.pop()
        for turn in turns:
            after = tuple(turn[rank] for rank in each)
            if after not in reached:
                if len(reached) >= len(still) or any(
                    a == b for a, b in zip(after, still, strict=True)
                ):
                    return False
                reached.add(after)
                frontier.append(after)
    return True


def _is_same(wires: RankNetwork, turn: list[int]) -> bool:
    """Return whether each way is like the one between the ranks that its ends are like."""

    def like(pair: Pair) -> tuple[int, int]:
        return wires.rates_bps[pair], wires.delays_ps[pair]

    return all(
        (turn[a], turn[b]) in wires.ways and like((turn[a], turn[b])) == like((a, b))
        for a, b in wires.ways
    )


def _check_joined(wires: RankNetwork) -> None:
    for ways in (wires.ways, wires.mirrored.ways):
        reached, frontier = {0}, [0]
        while frontier:
            src = frontier.pop()
            new = [b for a, b in ways if a == src and b not in reached]
            reached.update(new)
            frontier += new
        if len(reached) < wires.ranks:
            lost = min({*range(wires.ranks)} - reached)
            raise ConfigError(
                f"sketch: must leave ways between all ranks, got none between rank 0 and rank "
                f"{lost}; allow more links or switches"
            )


def read_sketch(path: Path) -> Sketch:
    """Return the sketch of a file.

    Raises:
        ConfigError: If it can't be read, or is not understood; the message names file and key.
    """
    plain = read_yaml(path, "sketch")
    where = f"sketch {path}"
    if plain is None:
        return Sketch()
    if not isinstance(plain, dict):
        raise ConfigError(f"{where}: must be keys and values, got {plain!r}")
    for key in plain:
        choose(where, "key", str(key), list(_KEYS))
    read = {key: _KEYS[key](f"{where}: {key}", value) for key, value in plain.items()}
    return Sketch(**read)


def _links(where: str, value: Any) -> str | tuple[Pair, ...]:
    if isinstance(value, str):
        return choose(where, "value", value, KINDS)
    pairs = _pairs(where, value)
    if not pairs:
        raise ConfigError(
            f"{where}: must be {ALL}, {NEAR}, {DIRECT} or pairs of ranks, got {value!r}"
        )
    return pairs


def _pairs(where: str, value: Any) -> tuple[Pair, ...]:
    is_list = isinstance(value, list)
    if not is_list or not all(_is_pair(each) and each[0] != each[1] for each in value):
        raise ConfigError(f"{where}: must be pairs of different ranks, [0, 1], got {value!r}")
    return tuple((a, b) for a, b in value)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_count, value))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 20


def _switches(where: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not value or not all(map(_is_count, value)):
        raise ConfigError(f"{where}: must be numbers of switches, [0, 1], got {value!r}")
    return tuple(value)


def _symmetry(where: str, value: Any) -> str | Offsets:
    if isinstance(value, str):
        return AUTO if choose(where, "value", value, (AUTO, NONE)) == AUTO else ()
    pairs: list[Any] = value if isinstance(value, list) else [None]
    if not all(_is_pair(each) and 0 < each[0] < each[1] for each in pairs):
        raise ConfigError(
            f"{where}: must be {AUTO}, {NONE} or [offset, size] with 0 < offset < size, got "
            f"{value!r}"
        )
    return tuple((a, b) for a, b in pairs)


def _whole(where: str, value: Any, least: int, most: int) -> int:
    if not _is_count(value) or not least <= value <= most:
        raise ConfigError(f"{where}: must be a whole number from {least} to {most}, got {value!r}")
    return int(value)


def _weight(where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfigError(f"{where}: must be a number from 0 to 1, got {value!r}")
    return float(value)


_KEYS: dict[str, Callable[[str, Any], Any]] = {
    "links": _links,
    "more": _pairs,
    "without": _pairs,
    "switches": _switches,
    "symmetry": _symmetry,
    "chunks": lambda where, value: _whole(where, value, 1, MOST_CHUNKS),
    "longer": lambda where, value: _whole(where, value, 0, MOST_LONGER),
    "prefer": lambda where, value: choose(where, "value", str(value), PREFERENCES),
    "weight": _weight,
}
