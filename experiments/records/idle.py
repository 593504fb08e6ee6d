"""Options that change nothing in a run, and why, or are rounded: a line of its header says so.

They are no errors: a sweep may have them for others of its runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ringleaf.collectives.registry import SYSTEMS
from ringleaf.core.faults import DOWN
from ringleaf.core.marking import NEVER
from ringleaf.experiments.spec.choices import FIXED, UGAL, VALIANT, VIRTUAL
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.hosts.congestion.registry import CONTROLLERS
from ringleaf.hosts.schedulers.common.registry import SCHEDULERS
from ringleaf.ina.registry import find_system
from ringleaf.topologies.own_terms import own_terms
from ringleaf.topologies.registry import parse

IN_SWITCHES = ("slots", "lanes", "ina_cc", "trees", "entries", "memory")
OF_SYSTEMS = (
    ("ina_cc", "has_windows", "has windows of one size"),
    ("trees", "has_trees", "can't have several trees"),
    ("lanes", "has_lanes", "has packets of one size"),
    ("memory", "moves", "keeps its part of switches' memory"),
    ("entries", "has_entries", "takes no entries of switches"),
)
"""Options that only some systems look at, the attribute of these, and what is so of others."""

BY_HOSTS = ("queue_pairs", "rank_order", "window", "cc")  # rank orders are those of schedules
OF_FAULTS = ("reroute_ps", "shrink_ps")
OF_FAILURES = ("failures_times", "repair_ps")
OF_CHECKPOINTS = ("checkpoint_cost_ps", "checkpoint_interval_ps")
CLOS = ("fattree", "leafspine")
"""Families whose ways by another rack come by the same switch again."""

OF_LINKS = {"rate": "rate_bps", "delay": "delay_ps"}
OF_SPARSE = ("cluster", "overlap")
OF_DRAWN = ("flows", "interval")
SIZES = "flow_sizes"


def idle(spec: NetworkSpec, algos: Sequence[str] = ()) -> Iterator[str]:
    """Yield a line on options that were asked for and have no part in a run, if there are any.

    A second one is on systems whose windows have no part in it.

    Args:
        spec: The options.
        algos: The algorithms of a run whose options do not name them; (): they do.
    """
    names = spec.names()
    phrases = [
        f"{', '.join(names[field] for field in fields)} ({why})"
        for fields, why in _idle(spec, algos or _algorithms(spec))
    ]
    phrases += [*_weights(spec), *_further_sizes(spec)]
    phrases += _times_of_circuits(spec)
    if phrases:
        yield f"without effect here: {'; '.join(phrases)}"
    yield from _unmarked(spec)


def _unmarked(spec: NetworkSpec) -> Iterator[str]:
    """Yield a line on systems whose windows go by marks, which BMv2's switches don't make."""
    names = [name for name in _algorithms(spec) if name in SYSTEMS]
    names = [name for name in dict.fromkeys(names) if find_system(name).has_windows]
    if names and spec.switch == "bmv2":
        yield (
            f"{', '.join(names)}: windows grow and never shrink, as BMv2's queues are in the "
            "kernel, and so it marks nothing"
        )


def rounded(spec: NetworkSpec) -> Iterator[str]:
    """Yield a line on systems that take other numbers of slots than what was asked for, if any."""
    slots = getattr(spec, "slots", None)
    if slots is None:
        return
    adding = [find_system(name) for name in _algorithms(spec) if name in SYSTEMS]
    taken = {system.name: system.slots_of(slots, spec.lanes) for system in adding}
    others = [f"{name} takes {count}" for name, count in taken.items() if count != slots]
    if others:
        yield f"slots={slots}: {', '.join(others)}"


def _idle(spec: NetworkSpec, algos: Sequence[str]) -> Iterator[tuple[list[str], str]]:
    """Yield fields that have no effect, and the reason of each group."""
    for fields, why in (
        *_by_algorithms(spec, algos),
        *_by_schedulers(spec),
        (OF_SPARSE if getattr(spec, "density", 1) == 1 else (), "density=100%"),
        *_by_faults(spec),
        *_by_ways(spec),
        (_of_links(spec), "all links have their own"),
        (() if _is_random(spec) else OF_DRAWN, "flows are not random"),
        (_replaced_sizes(spec), f"{getattr(spec, 'pattern', '')} has sizes of its own"),
        (() if spec.is_live else ("stall_ps",), f"net={spec.net}"),
        (() if _simulates_packets(spec) else ("threads",), f"net={spec.net}"),
    ):
        asked = [name for name in fields if name in spec.model_fields_set]
        if asked:
            yield asked, why


def _by_schedulers(spec: NetworkSpec) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what all of a run's schedulers decide themselves."""
    if names := getattr(spec, "schedulers", ()):
        from ringleaf.hosts.schedulers.common.hooks import ChoosesHosts, Cuts  # only jobs need it

        members = [SCHEDULERS[name] for name in names]
        if all(isinstance(each, Cuts) for each in members):
            yield ("fuse_bytes",), f"{names[0]} makes groups of its own"
        if all(isinstance(each, ChoosesHosts) for each in members):
            yield ("placement",), f"{names[0]} has hosts of its own choice"


def _weights(spec: NetworkSpec) -> Iterator[str]:
    """Yield a phrase on jobs' weights, if jobs have some and no scheduler looks at them."""
    if any("weight" in job.model_fields_set for job in getattr(spec, "jobs", ())):
        from ringleaf.hosts.schedulers.common.hooks import Weighs

        names: tuple[str, ...] = getattr(spec, "schedulers", ())
        if not any(isinstance(SCHEDULERS[name], Weighs) for name in names):
            yield f"weight of jobs ({names[0]} has no weights)"


def _replaced_sizes(spec: NetworkSpec) -> tuple[str, ...]:
    """Return the sizes of flows, if the pattern's own ones are drawn in place of a list."""
    if not getattr(spec, "pattern", "") or isinstance(getattr(spec, SIZES), str):
        return ()
    from ringleaf.hosts.workload.flow_sizes import DISTRIBUTIONS  # only flows need it

    return (SIZES,) if getattr(spec, "pattern", "") in DISTRIBUTIONS else ()


def _further_sizes(spec: NetworkSpec) -> Iterator[str]:
    """Yield a phrase on sizes of flows of which a ring takes the first one."""
    if getattr(spec, "pattern", "") == "ring" and SIZES in spec.model_fields_set:
        first, *others = getattr(spec, SIZES)
        if set(others) - {first} and not isinstance(getattr(spec, SIZES), str):
            yield f"{SIZES} but the first (all messages of a ring have one size)"


def _times_of_circuits(spec: NetworkSpec) -> Iterator[str]:
    """Yield a phrase on times of changes of circuits that never change."""
    if spec.circuits and (names := spec.circuits.idle):
        yield f"{', '.join(names)} of circuits ({spec.circuits.name}: set up once)"


def _by_faults(spec: NetworkSpec) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield fields on what follows from faults that a run has not."""
    if not any(each.kind == DOWN for each in spec.faults):
        yield OF_FAULTS, "nothing goes down" if spec.faults else "no faults"
    if not getattr(spec, "failures", ""):
        yield OF_FAILURES, "no failures are drawn"
    if names := getattr(spec, "recovery", ()):
        from ringleaf.hosts.recoveries.common.registry import RECOVERIES  # only these need it

        if not any(RECOVERIES[name].saves for name in names):
            yield OF_CHECKPOINTS, f"no checkpoints with {names[0]}"


def _by_ways(spec: NetworkSpec) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the routes where no way by a drawn switch passes each node once."""
    if spec.routes in (VALIANT, UGAL):
        topology = parse(spec.topo)
        if topology.family in CLOS and topology.inside is None:  # NICs of machines have others
            yield ("routes",), "a way by another rack passes a node twice"


def _of_links(spec: NetworkSpec) -> list[str]:
    """Return the rate and delay of links that were asked for and no link takes."""
    asked = [name for name in OF_LINKS.values() if name in spec.model_fields_set]
    if not asked or spec.inject_bps is not None:  # which writes its rate into the topology's text
        return []
    return [OF_LINKS[name] for name in own_terms(spec.topo)]


def _simulates_packets(spec: NetworkSpec) -> bool:
    """Return whether threads have packets to simulate; a live run's prediction takes one thread."""
    return spec.net == VIRTUAL or getattr(spec, "check_packets", False)


def _is_random(spec: NetworkSpec) -> bool:
    """Return whether a run has flows that start at random."""
    if not getattr(spec, "pattern", ""):
        return False
    from ringleaf.hosts.workload.flows import AT_RANDOM  # only flows need it

    return getattr(spec, "pattern", "") in AT_RANDOM


def _by_algorithms(
    spec: NetworkSpec, algos: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield fields that none of a run's algorithms looks at."""
    adding = [name for name in algos if name in SYSTEMS]
    systems = [find_system(name) for name in adding]
    if algos and not adding:
        yield IN_SWITCHES, "no algorithm adds in switches"
    for field, attribute, why in OF_SYSTEMS:
        if systems and not any(getattr(system, attribute) for system in systems):
            yield (field,), f"{adding[0]} {why}"
    has_windows = any(system.has_windows for system in systems)
    if adding and adding == [*algos] and (hasattr(spec, "queue_pairs") or hasattr(spec, "jobs")):
        yield _by_hosts(spec, has_windows=has_windows), "all algorithms add in switches"
    if spec.marking != NEVER:
        yield from _marking(spec, has_windows=has_windows)


def _by_hosts(spec: NetworkSpec, *, has_windows: bool) -> tuple[str, ...]:
    """Return the fields of hosts that send to one another.

    A congestion control has switches mark packets, unless they are told how, and systems with
    windows look at marks.
    """
    if has_windows and spec.marking is None and spec.ecn != NEVER:
        return tuple(name for name in BY_HOSTS if name != "cc")
    return BY_HOSTS


def _marking(spec: NetworkSpec, *, has_windows: bool) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the switches' marking if nobody looks at it, or if they never mark."""
    if spec.switch == "bmv2":
        yield ("marking",), "BMv2's queues are in the kernel"
        return
    reads_marks = spec.cc != FIXED and CONTROLLERS[spec.cc].marking != NEVER
    if not reads_marks and not has_windows:
        yield ("marking",), f"marks mean nothing to cc={spec.cc}"


def _algorithms(spec: NetworkSpec) -> list[str]:
    """Return the algorithms of an experiment; of jobs, those by which any of them reduces.

    What NICs compute is one, which doesn't add in switches.
    """
    algos: tuple[str, ...] = getattr(spec, "algos", ())
    if offload := getattr(spec, "offload", ""):
        return [offload]
    jobs = getattr(spec, "jobs", ())
    if not jobs:
        return [*algos]
    return list(dict.fromkeys(job.algo or algo for algo in algos for job in jobs))
