"""Sentences in a run's header: its clock, nodes' time, what hardware does otherwise, injection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ringleaf.core.faults import DOWN
from ringleaf.core.units import PS_PER_NS, format_count, format_rate, format_size, format_time
from ringleaf.experiments.spec.choices import FLOW, MININET, ROUTES
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.networks.options import NetworkOptions

MOST_FAULTS = 3  # that a header tells, each in its words


def is_live(spec: NetworkSpec) -> bool:
    """Return whether an experiment has a live network."""
    return spec.is_live


def conduct(spec: NetworkSpec, *, lossy: bool = False) -> str:
    """Return a phrase on the clock that times are of, and on what links lose.

    Args:
        spec: The options.
        lossy: Whether some links have losses of their own.
    """
    slower = f", rates divided by {spec.scale}" if spec.scale > 1 else ""
    clock = "simulated (virtual) time, packet by packet"
    if spec.net == FLOW:
        clock = "simulated (virtual) time, messages as flows (docs/flow.md)"
    if is_live(spec):
        clock = f"wall-clock time on Mininet, {spec.switch} switches"
    troubles = [
        f"{name} {100 * getattr(spec, name):g} %"
        for name in ("loss", "duplicate", "reorder")
        if getattr(spec, name)
    ]
    if lossy:
        troubles.append("losses of links' own")
    troubles += faults_of(spec)
    circuits = f"; circuits by {spec.circuits}" if spec.circuits else ""
    return f"{clock}{slower}; {', '.join(troubles) or 'no losses'}{circuits}"


def faults_of(spec: NetworkSpec) -> list[str]:
    """Return phrases on faults of the network, and on whether routes lead around them."""
    if not spec.faults:
        return []
    phrases = [str(each) for each in spec.faults[:MOST_FAULTS]]
    if len(spec.faults) > MOST_FAULTS:
        phrases.append(f"{format_count(len(spec.faults) - MOST_FAULTS, 'more fault')}")
    goes_down = any(each.kind == DOWN for each in spec.faults)
    reroute_ps = spec.reroute_ps if goes_down else None
    phrases.append("routes stay" if reroute_ps is None else f"new routes {_time(reroute_ps)} later")
    shrink_ps: int | None = getattr(spec, "shrink_ps", None)
    if shrink_ps is not None and goes_down:
        phrases.append(f"ranks go on without lost hosts {_time(shrink_ps)} later")
    return phrases


def inside_nodes_of(spec: NetworkSpec) -> str:
    """Return a sentence on the time that an experiment's switches and hosts take."""
    if is_live(spec):
        return "switches and hosts take what this machine needs"
    return inside_nodes(spec.switch_delay_ps, spec.host_delay_ps, spec.message_overhead_ps)


def inside_nodes(switch_delay_ps: int, host_delay_ps: int, message_overhead_ps: int) -> str:
    """Return a sentence on the time that switches and hosts take, also if that is none."""
    if not switch_delay_ps and not host_delay_ps and not message_overhead_ps:
        return "switches and hosts take no time (SWITCH_DELAY=0, HOST_DELAY=0, MESSAGE_OVERHEAD=0)"
    return (
        f"each packet: SWITCH_DELAY {_time(switch_delay_ps)}, HOST_DELAY {_time(host_delay_ps)}; "
        f"each message: MESSAGE_OVERHEAD {_time(message_overhead_ps)}"
    )


def unlike_hardware(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line on defaults that hardware seldom has; docs/limits.md explains them.

    Args:
        options: Options of a network by their names in `NetworkSpec`.
    """
    if options["net"] == MININET:
        return
    defaults = []
    if options["routes"] == ROUTES[0] and not options["control"]:
        defaults.append("routes dealt (ROUTES)")
    if options["queue_bytes"] is None and options["pfc"] is None:
        defaults.append(f"queues of {format_size(NetworkOptions().queue_bytes)} (QUEUE)")
    if not options.get("jitter"):  # jobs alone have it
        defaults.append("lockstep")
    if defaults:
        yield f"unlike hardware (docs/limits.md): {', '.join(defaults)}"


def about_capture(path: Path | None) -> Iterator[str]:
    """Yield lines on how long a capture is, and on what of it is not sent, or sent twice."""
    if path is None:
        return
    from ringleaf.networks.traces.pcap_read import read_records  # is compiled

    packets = read_records(path)
    span_ps = int(packets.stamps_ns[-1] - packets.stamps_ns[0]) * PS_PER_NS if len(packets) else 0
    count = format_count(len(packets), "packet")
    span = f" in {_time(span_ps)}" if span_ps else ""
    yield f"hosts also send the packets of {path}: {count}{span}"
    if packets.end:
        yield f"{path}: {packets.end}; {format_count(len(packets), 'packet')} sent"
    if packets.empty:
        yield f"{path}: left out: {format_count(packets.empty, 'record')} without a byte"
    if packets.interfaces > 1:
        count = format_count(packets.interfaces, "interface")
        yield (
            f"{path}: packets of {count}: one that passed several is sent "
            "as often; take one interface, or leave out copies"
        )


def _time(time_ps: int) -> str:
    return format_time(time_ps) if time_ps else "0"


def injection(least_bps: int, most_bps: int) -> str:
    """Return a phrase on the rate that a host can inject, given the hosts' least and most."""
    least, most = format_rate(least_bps), format_rate(most_bps)
    return f"a host injects up to {most if least == most else f'{least} to {most}'}"
