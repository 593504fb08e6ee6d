"""Eight GPUs without NVLinks, at two PCIe switches of a CPU and a NIC each."""

from __future__ import annotations

from ringleaf.core.units import PS_PER_NS
from ringleaf.topologies.machine import NCCL_TOPO, MachineKind, MachineLink

MACHINE = MachineKind(
    summary="GPUs without NVLinks, at two PCIe switches; each has a CPU and a NIC",
    gpus=8,
    pcie=MachineLink(
        96_000_000_000,
        200 * PS_PER_NS,
        f"{NCCL_TOPO}: 16 lanes of 8 GT/s, 6 Gbit/s each",
        "assumed",
    ),
    pcie_switches=2,
    cpu=MachineLink(
        80_000_000_000,
        100 * PS_PER_NS,
        f"{NCCL_TOPO}: Intel from model 0x55 on, 10 GB/s",
        "assumed",
    ),
    cpus=2,
    nics=2,
)
