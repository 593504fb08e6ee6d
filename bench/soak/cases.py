"""Random cases: options as people write them, and disturbances while they run.

A case is one spec with several algorithms and sizes, so that one network is used many times. It is
determined by its number and the soak's seed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import networkx as nx

from bench.soak.fault_draws import KINDS, draw_faults, draw_losses
from bench.soak.members import (
    OTHER_CONTROLLERS,
    by_hosts,
    draw_systems,
    other_collectives,
)
from ringleaf.core.disciplines import names as disciplines
from ringleaf.core.faults import CORRUPT, RATE
from ringleaf.core.units import PS_PER_NS, PS_PER_US
from ringleaf.experiments.workloads.collective.kind import OPTIONS
from ringleaf.ina.window_registry import WINDOWS
from ringleaf.networks.faults import (
    Direction,
    Disturbance,
    LinkDamage,
    LinkLoss,
    LinkRate,
    Reroute,
    Restart,
)
from ringleaf.topologies.detours import detours
from ringleaf.topologies.registry import build
from ringleaf.topologies.switching.settings import CONTROLLERS as CIRCUITS

TOPOLOGIES = (
    "leafspine,leaves=1,spines=1,hosts=4",
    "leafspine,leaves=2,spines=1,hosts=2",
    "leafspine,leaves=2,spines=2,hosts=4,rate=25G,host_rate=100G",
    "leafspine,leaves=3,spines=2,hosts=3,host_rate=10G",
    "fattree,k=4",
    "torus2d,x=2,y=3",
    "torus2d,x=3,y=3",
    "torus3d,x=2,y=2,z=2",
    "leafspine,leaves=1,spines=0,hosts=2,node=3xh100,gpudirect=no",
    "leafspine,leaves=2,spines=1,hosts=1,node=dgx1",
    "leafspine,leaves=1,spines=0,hosts=2,node=4xpcie,nics=1",
    "bcube,n=2,k=1",
    "bcube,n=3,k=1",
    "hammingmesh,a=2,b=2,x=2,y=2",
    "fattree,k=4,edge=2,core=2",
    "jellyfish,switches=6,degree=3,hosts=1",
    "dragonfly,a=2,p=1,h=1",
    "slimfly,q=3,hosts=1",
    "debruijn,n=2,k=2,hosts=2",
    "dcell,n=2,k=1",
    "railonly,nodes=2,rails=3",
    "railoptimised,pods=2,nodes=1,rails=2,spines=1",
    "circuits,racks=4,hosts=2,optical=1",
    "circuits,racks=4,hosts=2,optical=2,core=2",
    "circuits,racks=6,hosts=1,optical=2,core=0",
)

TIMES = {
    "period": ("3us", "20us", "100us"),
    "dead": ("0", "2us", "25us", "1ms"),
    "drain": ("0", "1us", "empty"),
    "senders": ("run", "pause"),
}
"""Settings of circuits that are drawn."""

METHODS = (
    *("oktopk:5%", "topka:5%", "gtopk:5%", "scalecom:5%", "deepreduce:2%", "sparcml-q:5%"),
    *("hitopk:5%,node=2", "oktopk:20%,balanced=no", "deepreduce:10%,values=fitted"),
)

SIZES = (4, 8, 252, 256, 260, 1024, 4096, 5000, 20_000, 65_536)
"""Sizes in bytes per rank, around the edges of blocks and packets."""

EDGE_SIZES, DRAWN_SIZES = 2, 1
"""A case's number of sizes from `SIZES`, and of others: each is another run on the same network.

A network takes a sixth of a case's time to make, so more sizes find less than more cases do.
"""

MOST_ALGORITHMS = 3
"""The largest number of a case's algorithms."""

OWN_PROGRAM = ("hpcc",)
"""Congestion controllers for which switches run a program that aggregates nothing."""

ADAPTIVE = "ugal"
"""Routes for which they run another such program."""

LONGEST_PS = 300 * PS_PER_US  # after the start of a run, in which disturbances begin


@dataclass(frozen=True, slots=True)
class SoakCase:
    """One experiment of the soak.

    Attributes:
        number: Number of the case in its soak.
        given: Options, as on the command line.
        trouble: Failures of links and restarts of switches in every run of it.
    """

    number: int
    given: dict[str, str]
    trouble: Disturbances

    @property
    def command(self) -> str:
        """The command that runs its options without the trouble."""
        words = [
            f"{OPTIONS[name].flags.split()[0]} {shlex.quote(v)}" for name, v in self.given.items()
        ]
        return " ".join(("ringleaf run", *words))


@dataclass(frozen=True, slots=True)
class Disturbances:
    """The number of disturbances of each kind that a run gets.

    Attributes:
        outages: Number of links that are down for a while, in both directions.
        bursts: Number of links that lose half of the packets for a while, in one direction only.
        restarts: Number of switches that restart.
        reroutes: Number of links between switches that are down, and that routes lead around.
        slowdowns: Number of links that have a tenth of their rate, or less, for a while.
        lasting: Number of links between switches that go down and stay so, as routes lead around
            them, and others lead everywhere.
        mends: 1: switches that restart are noticed, too, so that trees are built again.
        damages: Number of links that damage a fifth of the packets for a while, in one direction.
    """

    outages: int = 0
    bursts: int = 0
    restarts: int = 0
    reroutes: int = 0
    slowdowns: int = 0
    lasting: int = 0
    mends: int = 0
    damages: int = 0

    def __bool__(self) -> bool:
        counts = self.outages, self.bursts, self.restarts, self.reroutes, self.slowdowns
        return sum(counts) + self.lasting + self.damages > 0

    def draw(
        self, links: Sequence[Direction], switches: Sequence[str], random: Random
    ) -> list[Disturbance]:
        """Return disturbances at random places and times; all but lasting ones end."""
        found: list[Disturbance] = []
        for _ in range(self.outages):
            a, b = random.choice(links)
            found += _for_a_while([(a, b), (b, a)], 1.0, random)
        for _ in range(self.bursts):
            found += _for_a_while([random.choice(links)], 0.5, random)
        known: list[_Known] = []
        for _ in range(self.restarts):
            found.append(Restart(random.randrange(LONGEST_PS), random.choice(switches)))
            if self.mends:
                known.append(_Known(found[-1].after_ps + random.randrange(LONGEST_PS)))
        inner = [each for each in links if set(each) <= set(switches)]
        for _ in range(self.reroutes if inner else 0):
            a, b = random.choice(inner)
            outage = _for_a_while([(a, b), (b, a)], 1.0, random)
            delay_ps = random.randrange(LONGEST_PS)
            start_ps, end_ps = outage[0].after_ps + delay_ps, outage[-1].after_ps + delay_ps
            known.append(_Known(start_ps, end_ps, (a, b)))
            found += outage
        for a, b in _spare(links, inner, self.lasting, random):
            start_ps = random.randrange(LONGEST_PS)
            found += [LinkLoss(start_ps, each, 1.0) for each in ((a, b), (b, a))]
            known.append(_Known(start_ps + random.randrange(LONGEST_PS), None, (a, b)))
        found += _reroutes(known)
        for _ in range(self.slowdowns):
            link, start_ps = random.choice(links), random.randrange(LONGEST_PS)
            end_ps = start_ps + random.randrange(LONGEST_PS)
            rate_bps = random.choice((10**8, 10**9, 10**10))
            found += [LinkRate(start_ps, link, rate_bps), LinkRate(end_ps, link, None)]
        for _ in range(self.damages):
            link, (start_ps, end_ps) = random.choice(links), _span(random)
            found += [LinkDamage(start_ps, link, 0.2), LinkDamage(end_ps, link, None)]
        return found


@dataclass(frozen=True, slots=True)
class _Known:
    """A span in which the controller of routes knows that a link is down; None: of none."""

    start_ps: int
    end_ps: int | None = None
    link: Direction | None = None


def _reroutes(known: Sequence[_Known]) -> Iterator[Reroute]:
    """Yield the routes, each of which leads around all links that are known to be down."""
    times = {each.start_ps for each in known} | {each.end_ps or 0 for each in known}
    for time_ps in sorted(times - {0}):
        down = frozenset(
            each.link
            for each in known
            if each.link is not None
            and each.start_ps <= time_ps
            and (each.end_ps is None or time_ps < each.end_ps)
        )
        yield Reroute(time_ps, down)


def _spare(
    links: Sequence[Direction], inner: Sequence[Direction], most: int, random: Random
) -> list[Direction]:
    """Return up to so many links between switches without which all nodes are still joined."""
    graph = nx.Graph(links)
    found: list[Direction] = []
    for each in random.sample(inner, len(inner)) if most else ():
        if len(found) < most and graph.has_edge(*each):
            graph.remove_edge(*each)
            if nx.is_connected(graph):
                found.append(each)
            else:
                graph.add_edge(*each)
    return found


def _span(random: Random) -> tuple[int, int]:
    start_ps = random.randrange(LONGEST_PS)
    return start_ps, start_ps + random.randrange(100 * PS_PER_NS, LONGEST_PS)


def _for_a_while(directions: Sequence[Direction], loss: float, random: Random) -> list[Disturbance]:
    start_ps, end_ps = _span(random)
    return [
        *(LinkLoss(start_ps, each, loss) for each in directions),
        *(LinkLoss(end_ps, each, None) for each in directions),
    ]


def draw(seed: int, number: int) -> SoakCase:
    """Return case `number` of a soak."""
    random = Random(f"{seed} {number}")
    given = {"topo": random.choice(TOPOLOGIES), "seed": str(random.randrange(1 << 20))}
    kind = random.choice(("hosts", "hosts", "switches", "switches", "others", "methods"))
    systems, compress = draw_systems(random, MOST_ALGORITHMS)
    if kind == "others":
        given["algo"] = random.choice(other_collectives())
    elif kind == "switches":
        given["algo"] = ",".join(systems)
    else:
        pool = by_hosts() if kind == "hosts" else METHODS
        given["algo"] = ",".join(random.sample(pool, random.randint(1, MOST_ALGORITHMS)))
    given["size"] = ",".join(map(str, _draw_sizes(random)))
    given |= draw_options(random)
    if kind == "switches":
        given = _fit_systems(given, compress, random)
    if kind == "methods":
        given = {name: value for name, value in given.items() if name not in ("dtype", "compress")}
    if kind not in ("others", "methods"):
        given |= _some(_SERVERS, random, share=0.3)
    if kind in ("hosts", "methods"):
        given |= _some(_BY_HOSTS, random, share=0.4)
    if kind == "switches" and "servers" in given:
        given = _with_solved_routes(given, random)
    given |= draw_circuits(given, random, aggregates=kind == "switches")
    trouble = draw_trouble(given, random)
    if kind != "switches":
        trouble = with_damage(trouble, given, random)
    if not trouble:
        given |= draw_typed_faults(given, random, aggregates=kind == "switches")
        given |= _draw_shrink(given, kind, random)
    return SoakCase(number, given | detection(trouble), trouble)


def _fit_systems(given: Mapping[str, str], compress: str, random: Random) -> dict[str, str]:
    """Return options that suit aggregation systems; integers' sums are compared exactly."""
    found = for_other_programs(given)
    if compress:
        found.pop("dtype", None)
        return found | {"compress": compress}
    if found.get("compress", INTEGERS_TOO) == INTEGERS_TOO and random.random() < 0.5:
        found["dtype"] = "int32"
    return found | _some(_WINDOWS, random, share=0.25)


def for_other_programs(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options without those for which switches run a program of their own."""
    own = {"cc": OWN_PROGRAM, "routes": (ADAPTIVE,)}
    return {name: value for name, value in given.items() if value not in own.get(name, ())}


def _draw_sizes(random: Random) -> list[int]:
    """Return sizes at edges and others, in random order, so that any may be a network's first."""
    anywhere = {4 * random.randint(1, 1 << random.randint(1, 13)) for _ in range(DRAWN_SIZES)}
    sizes = sorted(anywhere.union(random.sample(SIZES, EDGE_SIZES)))
    random.shuffle(sizes)
    return sizes


def draw_options(random: Random) -> dict[str, str]:
    """Return some options of a network and its hosts."""
    given = _some(_OPTIONS, random, share=0.25)
    if "pfc" in given:
        given = {name: value for name, value in given.items() if name not in ("queue", "trim")}
    if given.get("routes") == ADAPTIVE and given.get("cc") in OWN_PROGRAM:
        del given["cc"]
    if given.get("compress", INTEGERS_TOO) != INTEGERS_TOO:
        given.pop("dtype", None)
    given |= _draw_repath(given, random)
    return given | _some(_LOSSES, random, share=0.6) if random.random() < 0.5 else given


def _with_solved_routes(given: Mapping[str, str], random: Random) -> dict[str, str]:
    """Return options with routes that are solved, some of the time, which have no other paths."""
    solved = _some(_SOLVED, random, share=0.4)
    return {name: value for name, value in given.items() if not solved or name != "repath"} | solved


def _draw_repath(given: Mapping[str, str], random: Random) -> dict[str, str]:
    """Return after how many probes in vain connections take other paths, where ECMP has others."""
    if given.get("routes") != "ecmp" or random.random() < 0.3:
        return {}
    return {"repath": random.choice(("1", "2", "5"))}


def _draw_shrink(given: Mapping[str, str], kind: str, random: Random) -> dict[str, str]:
    """Return hosts that are lost, and when others go on without them, for a share of cases."""
    if kind == "methods" or "circuits" in given or random.random() < 0.85:
        return {}
    losses = draw_losses(given["topo"], random)
    return {"faults": losses, "shrink": random.choice(("0", "1us", "20us", "300us"))}


def draw_circuits(
    given: Mapping[str, str], random: Random, *, aggregates: bool = False
) -> dict[str, str]:
    """Return a controller of circuits and its times for a case that may have one, mostly."""
    suits = given["topo"].startswith("circuits") and given.get("routes", "ecmp") == "ecmp"
    suits = suits and "pfc" not in given
    has_core = not given["topo"].endswith("core=0")
    if not suits or (aggregates and not has_core) or random.random() < 0.2:
        return {}
    name = random.choice([name for name in CIRCUITS if has_core or not CIRCUITS[name].needs_core])
    times = _some(TIMES, random, share=0.7)
    if not has_core and not CIRCUITS[name].once:
        times |= {"drain": "empty", "senders": "pause"}
    return {"circuits": ",".join([name, *(f"{key}={value}" for key, value in times.items())])}


def draw_trouble(given: Mapping[str, str], random: Random) -> Disturbances:
    """Return the disturbances of each run with these options: mostly none."""
    if random.random() < 0.7:
        return Disturbances()
    outages, bursts, restarts = (random.choice((0, 0, 1, 2)) for _ in range(3))
    reroutes, slowdowns = (random.choice((0, 0, 1, 2)) for _ in range(2))
    if "circuits" in given:  # their controller sets rates and routes
        reroutes = slowdowns = 0
    if "pfc" in given:
        return Disturbances(outages, bursts, slowdowns=slowdowns)
    if may_reroute(given) and random.random() < 0.6:
        lasting = random.choice((0, 0, 1, 2))
        return Disturbances(outages, bursts, restarts, reroutes, slowdowns, lasting, mends=1)
    return Disturbances(outages, bursts, restarts, reroutes, slowdowns)


def draw_typed_faults(
    given: Mapping[str, str],
    random: Random,
    *,
    aggregates: bool,
    share: float = 0.3,
    more: Sequence[str] = (),
) -> dict[str, str]:
    """Return faults as typed for a share of cases, and how soon routes lead around them, or never.

    Args:
        given: The options of the case so far.
        random: The source of randomness.
        aggregates: Whether switches may add, so that nothing may be damaged.
        share: The share.
        more: Further kinds of faults.
    """
    if random.random() >= share:
        return {}
    unfit = {CORRUPT} if aggregates or "trim" in given else set()
    if "circuits" in given:  # their controller sets rates
        unfit.add(RATE)
    kinds = [each for each in (*KINDS, *more) if each not in unfit]
    restarts = "pfc" not in given  # a switch that restarts would lose its counts
    typed = draw_faults(given["topo"], random, kinds, lasting=True, restarts=restarts)
    found = {"faults": typed}
    if may_reroute(given) and random.random() < 0.6:
        found["reroute"] = random.choice(("0", "1us", "20us", "200us"))
    if "routes" not in given and random.random() < 0.3:
        found["routes"] = "ecmp"
        found |= _draw_repath(found, random)
    return found


def with_damage(trouble: Disturbances, given: Mapping[str, str], random: Random) -> Disturbances:
    """Return the disturbances of a case of hosts alone, mostly with links that damage packets."""
    if not trouble or "trim" in given or random.random() < 0.3:
        return trouble
    return replace(trouble, damages=random.choice((1, 2)))


def detection(trouble: Disturbances) -> dict[str, str]:
    """Return the option with which aggregation systems keep what trees that are built again need.

    When they are is in the trouble itself.
    """
    return {"reroute": "20us"} if trouble.mends else {}


def may_reroute(given: Mapping[str, str]) -> bool:
    """Return whether routes may be computed again with these options."""
    graph = build(given["topo"])
    usual = given.get("routes", "ecmp") == "ecmp" and "circuits" not in given
    return usual and graph.graph["routing"] == "shortest" and not detours(graph)


INTEGERS_TOO = "topk:5%"
"""A compressor for integers; the others that are drawn are for floats only."""

_OPTIONS = {
    "dtype": ("int32",),
    "lanes": ("64",),
    "slots": ("1", "4", "16"),
    "trees": ("1", "2"),
    "ecn": ("1", "8"),
    "mtu": ("256", "1024"),
    "window": ("1", "2", "8"),
    "routes": ("ecmp", "ksp:4", "valiant", ADAPTIVE),
    "cc": OTHER_CONTROLLERS,
    "queue": ("16K", "64K"),
    "trim": ("1K", "64K"),
    "discipline": tuple(sorted(set(disciplines()) - {"strict"})),
    "pfc": ("64K:48K", "8K:8K", "1:1", "8K:4K:2K"),  # the last one has too little headroom
    "delay": ("100ns", "5us"),
    "rate": ("10G", "400G"),
    "density": ("1%", "30%"),
    "compress": (
        INTEGERS_TOO,
        "dgc:2%",
        "onebit",
        "signsgd",
        "qsgd",
        "qsgd:4,shared",
        "terngrad",
        "natural",
        "threelc:1.5",
        "powersgd:1",
        "atomo:1",
        "rotation",
        "efsign",
        "egc:5%",
        "gaussiank:5%",
        "mstopk:5%",
        "onebit-adam",
        "randomk:5%",
        "sidco:5%",
        "threshold:0.5",
    ),
    "switch_delay": ("500ns",),
    "host_delay": ("700ns",),
}
_SERVERS = {"servers": ("1", "2")}
_WINDOWS = {"ina_cc": tuple(WINDOWS)}
_BY_HOSTS = {"rank_order": ("topology", "random"), "queue_pairs": ("2", "5")}
_SOLVED = {"routes": ("grid", "goat")}
_LOSSES = {
    "loss": ("0.1%", "2%", "10%"),
    "duplicate": ("1%", "10%"),
    "reorder": ("1%", "10%"),
}


def _some(
    options: Mapping[str, tuple[str, ...]], random: Random, *, share: float
) -> dict[str, str]:
    return {
        name: random.choice(values) for name, values in options.items() if random.random() < share
    }


def simpler(case: SoakCase) -> list[SoakCase]:
    """Return cases that are a little smaller, the most promising first."""
    found = []
    for name, separator in (("algo", ","), ("size", ",")):
        parts = case.given[name].split(separator)
        if len(parts) > 1:
            found += [replace(case, given=case.given | {name: part}) for part in parts]
    found += [replace(case, trouble=each) for each in simpler_trouble(case.trouble)]
    found += [replace(case, given=each) for each in simpler_options(case.given)]
    return found


def simpler_trouble(trouble: Disturbances) -> list[Disturbances]:
    """Return fewer disturbances, the fewest first."""
    fewer = (Disturbances(), *(replace(trouble, **{name: 0}) for name in Disturbances.__slots__))
    return [each for each in dict.fromkeys(fewer) if each != trouble]


_NEEDS = {"routes": "repath"}
"""Options without which others are refused."""


def simpler_options(given: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the options with one left out, or on a small topology."""
    found = [
        {key: value for key, value in given.items() if key not in (name, _NEEDS.get(name))}
        for name in given
        if name not in ("topo", "algo", "size", "seed")
    ]
    faults = given.get("faults", "").split(", ")
    found += [{**given, "faults": each} for each in faults if len(faults) > 1]
    small = TOPOLOGIES[1]
    return (
        found
        if given["topo"] == small or "circuits" in given
        else [*found, {**given, "topo": small}]
    )
