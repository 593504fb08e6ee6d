"""How many servers send at full rate: `python -m studies.capacity`.

Servers send to one another by random permutations, and traffic is split over all ways as it is best
(a maximum concurrent flow, by a linear program): a topology has full capacity if all can send at
the rate of their links. A Jellyfish of as many switches with as many ports as a fat-tree is asked
with a quarter more servers than that has, and with another quarter, or half, more.

Source:
    Singla, Hong, Popa and Godfrey, "Jellyfish: Networking Data Centers Randomly", NSDI 2012,
    section 4.1, which finds up to 25 % more servers at full capacity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random
from statistics import mean
from typing import Annotated

import networkx as nx
import typer

from bench.options import Topologies
from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.topologies.gradients.places import empty_program
from ringleaf.topologies.graph import attachment, directions, hosts, link, switches
from ringleaf.topologies.registry import build

TOPOLOGIES = (
    "fattree,k=4",
    "jellyfish,switches=20,degree=3,hosts=1",
    "fattree,k=8",
    "jellyfish,switches=80,degree=6,hosts=2",
    "jellyfish,switches=80,degree=5,hosts=3",
)
"""Fat-trees, and Jellyfishes of their switches and ports with 5/4 and 15/8 times the servers."""

DRAWS = 3

Demand = Mapping[tuple[str, str], float]
"""What switches have for others, in the rate of a server's link."""

_HEADER = f"#{'least':>7}{'mean':>8}{'servers':>9}{'switches':>10}{'ports':>7}  topology"


def share(graph: nx.Graph[str], demand: Demand) -> float:
    """Return the largest part of all demands that links between switches carry at once.

    Flows of one switch are one: what they have for others may be split, and add up on a link to
    its rate at most.

    Args:
        graph: The topology, whose servers' links have one rate.
        demand: More than 0 each, and none of a switch for itself.

    Raises:
        ConfigError: If SciPy is not installed.
    """
    unit = link(graph, *_first(graph)).rate_bps
    among = set(switches(graph))
    ways = {(a, b): each.rate_bps / unit for a, b, each in directions(graph) if {a, b} <= among}
    program = empty_program()
    part = program.add(-1.0)
    loads: dict[tuple[str, str], dict[int, float]] = {way: {} for way in ways}
    for source in sorted({each for each, _ in demand}):
        kept: dict[str, dict[int, float]] = {switch: {} for switch in among - {source}}
        for way in ways:
            variable = program.add()
            loads[way][variable] = 1.0
            for switch, sign in zip(way, (1.0, -1.0), strict=True):
                if switch != source:
                    kept[switch][variable] = sign
        for switch, row in kept.items():  # it lets through what comes, less what is for it
            program.limit({**row, part: demand.get((source, switch), 0.0)}, 0.0)
    for way, row in loads.items():
        program.limit(row, ways[way])
    return float(program.solve("capacity", "highs-ipm")[part])


def served(graph: nx.Graph[str], demand: Demand) -> float:
    """Return the share of their links' rate that all servers send at: all of it at most.

    Servers of one switch meet no link between switches.
    """
    return min(1.0, share(graph, demand)) if demand else 1.0


def permutation(graph: nx.Graph[str], rng: Random) -> Demand:
    """Draw which server each server sends to, never itself, and return what switches have.

    Raises:
        ConfigError: If there is one server only.
    """
    servers = hosts(graph)
    if len(servers) < 2:
        name = graph.graph["name"]
        raise ConfigError(f"topo: servers need another one, got {name!r}; take a larger topology")
    targets = rng.sample(servers, len(servers))
    while any(a == b for a, b in zip(servers, targets, strict=True)):
        targets = rng.sample(servers, len(servers))
    pairs = zip(servers, targets, strict=True)
    counted = Counter((attachment(graph, a), attachment(graph, b)) for a, b in pairs)
    return {(a, b): float(count) for (a, b), count in counted.items() if a != b}


def _first(graph: nx.Graph[str]) -> tuple[str, str]:
    host = hosts(graph)[0]
    return host, attachment(graph, host)


def capacity_command(
    topo: Topologies = None,
    draws: Annotated[int, typer.Option(min=1, help="Random permutations.")] = DRAWS,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the permutations.")] = 1,
    debug: Debug = False,
) -> None:
    """Print the share of their rate at which all servers send, of each topology."""
    drawn = format_count(draws, "random permutation")
    say(f"# share of their links' rate that all servers send at, of {drawn}")
    say(_HEADER)
    for name in topo or TOPOLOGIES:
        graph, rng = build(name), Random(seed)
        shares = [served(graph, permutation(graph, rng)) for _ in range(draws)]
        count = len(switches(graph))
        ports = max(graph.degree(switch) for switch in switches(graph))
        figures = f"{min(shares):8.2f}{mean(shares):8.2f}{len(hosts(graph)):9}{count:10}{ports:7}"
        say(f"{figures}  {name}")


if __name__ == "__main__":
    alone("python -m studies.capacity", capacity_command)
