"""Options that don't go together, and their refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringleaf.core.faults import SLOW, check_recorded
from ringleaf.core.live_limits import (
    check_discipline,
    check_faults,
    check_live,
    check_pausing,
    check_queues,
    check_ways,
)
from ringleaf.core.units import exact_rate, format_count
from ringleaf.errors import ConfigError
from ringleaf.experiments.programs.names import is_path
from ringleaf.experiments.spec.choices import FIXED, FLOW, MININET, SOLVED, SWITCHES, UGAL, VIRTUAL
from ringleaf.hosts.congestion.registry import CONTROLLERS
from ringleaf.ina.systems import FORWARD
from ringleaf.networks.flow.scope import check_flow

if TYPE_CHECKING:
    from ringleaf.experiments.spec.network import NetworkSpec


def check_together(spec: NetworkSpec, where: str) -> None:
    """Check what one option alone can't be checked for.

    Args:
        spec: The options, each of which is as it may be.
        where: The beginning of messages.

    Raises:
        ConfigError: At the first that does not go with another.
    """
    for check in _CHECKS:
        check(spec, where)


def _check_links(spec: NetworkSpec, where: str) -> None:
    """Check that links have one rate, and queues room for a packet."""
    if spec.inject_bps is not None and "rate_bps" in spec.model_fields_set:
        got = exact_rate(spec.inject_bps)
        raise ConfigError(f"{where}inject: can't go with rate, got {got}; give either")
    if spec.queue_bytes is not None and spec.queue_bytes < spec.mtu_bytes:
        raise ConfigError(
            f"{where}queue: must hold a packet of mtu {spec.mtu_bytes}, "
            f"got {format_count(spec.queue_bytes, 'byte')}; like 64K"
        )


def _check_control(spec: NetworkSpec, where: str) -> None:
    """Check that entries are for a program that is not ours."""
    if spec.control and not is_path(spec.program):
        raise ConfigError(
            f"{where}control: is for a program of yours, got {spec.control!r} and program "
            f"{spec.program!r}"
        )


def _check_carrier(spec: NetworkSpec, where: str) -> None:
    """Check that the network can carry the workload, as asked for."""
    if spec.net not in spec.networks:
        raise ConfigError(
            f"{where}net: can't carry this workload, got {spec.net!r}; "
            f"take net={' or '.join(spec.networks)}"
        )
    values = {name: getattr(spec, name) for name in type(spec).model_fields}
    if spec.is_live:
        _check_switch(spec, where)
        check_live(values, where, spec.virtual)
    elif spec.switch != SWITCHES[0]:
        raise ConfigError(f"{where}switch: needs net={MININET}, got {spec.switch!r}")
    slow = next((str(each) for each in spec.network_faults if each.kind == SLOW), None)
    if slow is not None:
        raise ConfigError(
            f"{where}faults: slow is for workloads that compute, got {slow!r}; take "
            "ringleaf workload run"
        )
    if spec.net == FLOW:
        check_flow(values | {"faults": spec.network_faults}, where)


def _check_switch(spec: NetworkSpec, where: str) -> None:
    """Check that live switches of this kind have what is asked for."""
    check_discipline(spec.switch, spec.discipline, where)
    check_pausing(spec.switch, spec.pfc, where, captured=spec.pcap)
    check_faults(spec.switch, spec.faults, where)
    if spec.circuits is not None:
        spec.circuits.check_live(spec.switch, where, captured=spec.pcap)
    if spec.cc != FIXED:
        check_queues(spec.switch, spec.cc, where, reads=CONTROLLERS[spec.cc].reads_queues)


def _check_traces(spec: NetworkSpec, where: str) -> None:
    """Check that traces can hold what faults change."""
    if spec.record is not None:
        reroutes = spec.reroute_ps is not None
        check_recorded(spec.network_faults, reroutes=reroutes, where=where)


def _check_pausing(spec: NetworkSpec, where: str) -> None:
    """Check that all that is asked for beside PFC has a part in it."""
    for name in ("queue_bytes", "trim_bytes", "record") if spec.pfc is not None else ():
        if getattr(spec, name) is not None:
            got = str(getattr(spec, name))
            raise ConfigError(
                f"{where}pfc: can't go with {name.removesuffix('_bytes')}, got {got}; give either"
            )


def _check_circuits(spec: NetworkSpec, where: str) -> None:
    """Check that nothing else is asked for that a controller of circuits has no part in."""
    if spec.circuits is None:
        return
    got = f"got {spec.circuits.name}"
    if spec.topo.partition(",")[0].strip() != "circuits":
        raise ConfigError(f"{where}circuits: is for topo=circuits, {got} and topo={spec.topo!r}")
    if spec.routes not in ("dealt", "ecmp") or spec.detours:
        raise ConfigError(
            f"{where}circuits: its controller sets routes, {got} and "
            f"{f'routes={spec.routes}' if not spec.detours else 'detours'}; leave out either "
            "of them"
        )
    for name in ("reroute_ps", "record", "pfc"):
        if getattr(spec, name) is not None:
            option = name.removesuffix("_ps")
            raise ConfigError(
                f"{where}circuits: can't go with {option}, {got}; leave out either of them"
            )


def _check_repath(spec: NetworkSpec, where: str) -> None:
    """Check that another source port may lead elsewhere."""
    if spec.repath is not None and spec.routes != "ecmp":
        raise ConfigError(
            f"{where}repath: other source ports lead elsewhere by ECMP alone, got repath="
            f"{spec.repath} and routes={spec.routes}; take routes=ecmp"
        )


def _check_adaptive(spec: NetworkSpec, where: str) -> None:
    """Check that switches can run the program that routes by queues, and see these."""
    if spec.routes != UGAL:
        return
    others = {
        "program": "" if spec.program == FORWARD else spec.program,
        "cc": spec.cc if spec.cc != FIXED and CONTROLLERS[spec.cc].program else "",
        "detours": ", ".join("-".join(way) for way in spec.detours),
    }
    for name, value in others.items():
        if value:
            raise ConfigError(
                f"{where}{name}: can't go with routes={UGAL}, which has a program and detours "
                f"of its own, got {value!r}; leave out either of them"
            )
    if spec.net == FLOW:
        raise ConfigError(
            f"{where}routes: no fluid model covers ways that depend on queues, got {UGAL!r}; "
            f"take net={VIRTUAL}"
        )
    if spec.is_live:
        check_ways(spec.switch, spec.routes, where)


def _check_gradients(spec: NetworkSpec, where: str) -> None:
    """Check that routes that are solved for a job are for one job with servers."""
    if spec.routes in SOLVED:
        servers = getattr(spec, "servers", 0)
        if hasattr(spec, "jobs") or not servers:
            raise ConfigError(
                f"{where}routes: {spec.routes} is for one collective with parameter servers, "
                f"got servers={servers}{' and jobs' if hasattr(spec, 'jobs') else ''}; "
                "take algo=atp, servers=1"
            )
    elif spec.adds_bps is not None:
        got = exact_rate(spec.adds_bps)
        raise ConfigError(f"{where}adds: is for routes=grid, got {got} and {spec.routes!r}")


_CHECKS = (
    _check_links,
    _check_control,
    _check_gradients,
    _check_traces,
    _check_pausing,
    _check_carrier,
    _check_circuits,
    _check_repath,
    _check_adaptive,
)
