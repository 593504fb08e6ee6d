"""The choice of an algorithm for each collective, by its size and the size of its group.

    allreduce>=64K:switchml, allreduce@2:halvingdoubling, ring

Rules are separated by commas, and the first that fits decides. A rule is `COLLECTIVE`, maybe a
size (`>=64K`, `<1M` or both, of the whole tensor), maybe the number of ranks (`@4`), and the
algorithm behind a colon. A name alone is the choice for all other allreduces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.units import parse_size
from ringleaf.errors import ConfigError, choose

COLLECTIVES: Mapping[str, Collective] = {
    "allreduce": Collective.ALLREDUCE,
    "reduce": Collective.REDUCE,
    "broadcast": Collective.BROADCAST,
    "reducescatter": Collective.REDUCE_SCATTER,
    "allgather": Collective.ALL_GATHER,
    "alltoall": Collective.ALL_TO_ALL,
}
"""The collectives that have a choice, by the names that rules have for them."""

USUAL: Mapping[Collective, str] = {
    Collective.ALLREDUCE: "ring",
    Collective.REDUCE: "reduce",
    Collective.BROADCAST: "broadcast",
    Collective.REDUCE_SCATTER: "reducescatter",
    Collective.ALL_GATHER: "allgather",
    Collective.ALL_TO_ALL: "alltoall",
}
"""The algorithm of each collective where no rule fits, or the one that does can't do the call.

They are those of hosts, which take any type of elements and any operation.
"""

_INCLUDED = (Collective.REDUCE, Collective.REDUCE_SCATTER)
"""Collectives whose results are a part of an allreduce's, so any allreduce can do them."""

_RULE = re.compile(
    r"(?P<name>[^<>@]*)(?:>=(?P<least>[^<>@]*))?(?:<(?P<below>[^<>@]*))?(?:@(?P<ranks>[^<>@]*))?"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        collective: The collective that it is for.
        algorithm: The name of the algorithm that it chooses.
        least_bytes: The smallest size that it is for.
        below_bytes: The size from which on it is not; None: there is none.
        ranks: The size of groups that it is for; None: any.
    """

    collective: Collective
    algorithm: str
    least_bytes: int = 0
    below_bytes: int | None = None
    ranks: int | None = None

    def fits(self, collective: Collective, size_bytes: int, ranks: int) -> bool:
        """Return whether it is for such a call."""
        return (
            collective is self.collective
            and self.least_bytes <= size_bytes
            and (self.below_bytes is None or size_bytes < self.below_bytes)
            and self.ranks in (None, ranks)
        )

    def covers(self, other: Rule) -> bool:
        """Return whether it is for all calls that another rule is for."""
        return (
            other.collective is self.collective
            and self.least_bytes <= other.least_bytes
            and (self.below_bytes or inf) >= (other.below_bytes or inf)
            and self.ranks in (None, other.ranks)
        )


@dataclass(frozen=True, slots=True)
class RuleList:
    """All rules, in order."""

    rules: tuple[Rule, ...]

    def choose(self, collective: Collective, size_bytes: int, ranks: int) -> str:
        """Return the name of the algorithm for a call."""
        for rule in self.rules:
            if rule.fits(collective, size_bytes, ranks):
                return rule.algorithm
        return USUAL[collective]

    @property
    def names(self) -> list[str]:
        """The algorithms that rules choose."""
        return list(dict.fromkeys(rule.algorithm for rule in self.rules))

    def plain(self) -> str:
        """Return the rules as text, which reads as the same rules."""
        return ", ".join(map(_as_text, self.rules))


def parse_rules(text: str, where: str = "algo") -> RuleList:
    """Return the rules that a text states.

    Raises:
        ConfigError: If one is not understood, or its algorithm can't do its collective.
    """
    rules: list[Rule] = []
    for part in (each.strip() for each in text.split(",")):
        if not part:
            raise ConfigError(f"{where}: a rule must not be empty, got {text!r}")
        rule = _parse_rule(part, where)
        wider = next((other for other in rules if other.covers(rule)), None)
        if wider is not None:
            raise ConfigError(
                f"{where}: a rule must fit some calls, got {part!r} behind {_as_text(wider)!r}, "
                "which fits them all; put the general one last"
            )
        rules.append(rule)
    return RuleList(tuple(rules))


def _parse_rule(part: str, where: str) -> Rule:
    if ":" not in part:
        if part in COLLECTIVES and part not in ALGORITHMS:
            raise ConfigError(
                f"{where}: must name an algorithm, got {part!r}; write {part}:ALGORITHM"
            )
        return _checked(Rule(Collective.ALLREDUCE, part), where)
    condition, _, algorithm = part.partition(":")
    match = _RULE.fullmatch(condition.strip())
    if match is None:
        raise ConfigError(
            f"{where}: not understood, got {part!r}; write it like allreduce>=64K@8:switchml"
        )
    name = choose(where, "collective", match["name"].strip(), COLLECTIVES)
    least, below = match["least"], match["below"]
    rule = Rule(
        COLLECTIVES[name],
        algorithm.strip(),
        0 if least is None else parse_size(least, where),
        None if below is None else parse_size(below, where),
        _ranks(match["ranks"], where),
    )
    if rule.below_bytes is not None and rule.below_bytes <= rule.least_bytes:
        raise ConfigError(
            f"{where}: a rule must fit some calls, got {part!r}; the size behind < is the larger "
            "one, as in allreduce>=4K<64K:tree"
        )
    return _checked(rule, where)


def _ranks(text: str | None, where: str) -> int | None:
    if text is None:
        return None
    if not text.strip().isdecimal() or len(text) > 6:
        raise ConfigError(f"{where}: ranks must be a whole number, got {text!r}; like @8")
    if int(text) < 1:
        raise ConfigError(f"{where}: ranks must be 1 or more, got {text!r}; like @8")
    return int(text)


def _checked(rule: Rule, where: str) -> Rule:
    """Return a rule whose algorithm can do its collective, or an allreduce that includes it."""
    algorithm = ALGORITHMS.find(rule.algorithm, where)
    if algorithm.method is not None:
        raise ConfigError(
            f"{where}: must be an algorithm with a schedule, got {rule.algorithm!r}; take "
            "another one, and a compressor"
        )
    able = algorithm.collective
    collective = rule.collective
    if able is not collective and not (able is Collective.ALLREDUCE and collective in _INCLUDED):
        raise ConfigError(
            f"{where}: must be an algorithm for {collective.value}, got {rule.algorithm!r}, which "
            f"is for {able.value}"
        )
    return rule


def _as_text(rule: Rule) -> str:
    name = next(name for name, each in COLLECTIVES.items() if each is rule.collective)
    least = f">={rule.least_bytes}" if rule.least_bytes else ""
    below = "" if rule.below_bytes is None else f"<{rule.below_bytes}"
    ranks = "" if rule.ranks is None else f"@{rule.ranks}"
    return f"{name}{least}{below}{ranks}:{rule.algorithm}"
