"""Try a case of NICs: judge every system of it, and check its networks for leaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bench.soak.nic_cases import NicCase
from bench.soak.trial import Finding, Worn, cut_off_by, may_deadlock
from ringleaf.errors import BackendError, DeadlockError, RingleafError
from ringleaf.experiments.runs.checks import check_fits
from ringleaf.experiments.setup.network import common_options
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.workloads.nic.kind import KIND
from ringleaf.experiments.workloads.nic.network import MakeSystem, NicNetwork, graph_of
from ringleaf.experiments.workloads.nic.workload import Row, count_hosts, workload_of
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.switching.settings import parse_circuits


def try_nics(case: NicCase) -> list[Finding]:
    """Run a case; return how each of its systems ended."""
    found: list[Finding] = []
    try:
        found += _rows(case)
    except BackendError as error:
        may_end = _may_end(case, is_deadlock=isinstance(error, DeadlockError))
        found.append(Finding("ended" if may_end else "stuck", case.offload, str(error)))
    except RingleafError as error:
        found.append(Finding("refused", case.offload, str(error)))
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is what a soak looks for
        found.append(Finding("error", case.offload, f"{type(error).__name__}: {error}"))
    return found


def _may_end(case: NicCase, *, is_deadlock: bool) -> bool:
    spec = workload_of(case.offload).spec.read(case.given)
    graph = graph_of(spec)
    return cut_off_by(spec, graph) or (is_deadlock and may_deadlock(spec, graph))


def _rows(case: NicCase) -> Iterator[Finding]:
    workload = workload_of(case.offload)
    spec = workload.spec.read(case.given)
    check_fits(KIND, spec, count_nodes(spec))
    graph = graph_of(spec)
    workload.check(spec, count_hosts(graph))
    options = common_options(spec)
    networks: list[Worn] = []

    def connect(make_system: MakeSystem) -> NicNetwork:
        system = make_system(options)
        made = VirtualNetwork(graph, replace(options, system=system), seed=spec.seed)
        networks.append(Worn(made, case))
        return NicNetwork(networks[-1], system)

    for row in workload.run(spec, graph, connect):
        yield _judge(case, row, networks[-1])


def _judge(case: NicCase, row: Row, network: Worn) -> Finding:
    where = f"{case.offload} {row['system']}"
    if row["wrong"]:
        return Finding("wrong", where, f"{row['wrong']} elements")
    if network.leaked:
        return Finding("leak", where, f"{network.leaked} packets")
    circuits = parse_circuits(case.given.get("circuits", ""), "circuits")
    losing = any(name in case.given for name in ("loss", "duplicate", "reorder"))
    losing = losing or (circuits is not None and not circuits.keeps_order)
    losing = losing or "faults" in case.given or bool(case.trouble)
    if row["retransmissions"] and not (losing or row["drops"]):
        return Finding("resent", where, f"{row['retransmissions']} packets, and none was lost")
    return Finding("ok", where)
