"""Rates of failures, as counts by kind over a time, or of nodes per day, and failures drawn.

Its file is YAML:

    title: what was counted
    source: who has counted
    hosts: 16384
    days: 54
    kinds:
      - {kind: GPU, count: 148}
      - {kind: software, count: 54, comes_back: yes}
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

from ringleaf.core.shipped import PACKAGE
from ringleaf.core.units import PS_PER_S, parse_number
from ringleaf.core.yaml_file import read_yaml
from ringleaf.errors import ConfigError, choose

RATES = PACKAGE / "hosts" / "recoveries" / "rates"

NODE_HOSTS = 8
"""Hosts of a node, where a rate is that of nodes: a host is a GPU with its NIC."""

_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class FailureKind:
    """A kind of failure: what fails, how often, and whether the host is there after a restart."""

    kind: str
    count: float
    comes_back: bool = False


class DrawnFailure(NamedTuple):
    """A failure of a host at a time."""

    at_ps: int
    host: int
    kind: FailureKind


@dataclass(frozen=True, slots=True)
class FailureRates:
    """Counts of failures by kind.

    Attributes:
        title: What was counted.
        source: Who has counted; "": it is an assumption.
        host_days: Hosts, times days.
        kinds: The kinds, with their counts.
    """

    title: str
    source: str
    host_days: float
    kinds: tuple[FailureKind, ...]

    @property
    def total(self) -> float:
        """The number of failures that were counted."""
        return sum(each.count for each in self.kinds)

    def mttf_s(self, hosts: int, times: float = 1.0) -> float:
        """Return the mean time to a failure of any of these hosts, 1 / (hosts * rate).

        Args:
            hosts: Their number.
            times: How many times as often they fail.
        """
        return _DAY_S * self.host_days / (self.total * hosts * times)

    def draw(self, hosts: int, seed: int, times: float = 1.0) -> Iterator[DrawnFailure]:
        """Yield failures in the order of time, without end: a Poisson process.

        Args:
            hosts: The number of hosts, all of which fail as often.
            seed: The same one gives the same failures.
            times: How many times as often they fail as was counted.
        """
        chance = Random(f"failures {seed}")
        mean_s, now_s = self.mttf_s(hosts, times), 0.0
        counts = [each.count for each in self.kinds]
        while True:
            now_s += chance.expovariate(1 / mean_s)
            [kind] = chance.choices(self.kinds, counts)
            yield DrawnFailure(round(now_s * PS_PER_S), chance.randrange(hosts), kind)


def rate_names() -> list[str]:
    """Return the names of the rates that come along."""
    return sorted(path.stem for path in RATES.glob("*.yaml"))


def find_rates(name: str, where: str) -> FailureRates:
    """Return the rates of a name, a file or a number: failures per 1,000 nodes and day.

    Raises:
        ConfigError: If there is none, or the file does not make sense.
    """
    if name.endswith((".yaml", ".yml")):
        return read_rates(Path(name))
    if name in rate_names():
        return read_rates(RATES / f"{name}.yaml")
    if not name[:1].isdecimal():
        choose(where, "rates", name, rate_names(), "*.yaml, or a number per 1,000 node-days")
    count = parse_number(name, where)
    if not count > 0:
        raise ConfigError(f"{where}: must be above 0, got {name!r}; like 5")
    title = f"{count:g} per 1,000 node-days of {NODE_HOSTS} hosts"
    return FailureRates(title, "", 1000.0 * NODE_HOSTS, (FailureKind("host", count),))


def read_rates(path: Path) -> FailureRates:
    """Return the rates of a file.

    Raises:
        ConfigError: If it can't be read, or does not make sense.
    """
    data = read_yaml(path, "rates")
    try:
        kinds = tuple(FailureKind(**each) for each in data["kinds"])
        rates = FailureRates(
            str(data["title"]), str(data["source"]), data["hosts"] * data["days"], kinds
        )
        if not (rates.host_days > 0 and all(each.count > 0 for each in kinds) and kinds):
            raise ValueError("counts must be above 0")
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"rates {path}: must have title, source, hosts, days and kinds with counts, got "
            f"{type(error).__name__}: {error}"
        ) from error
    return rates
