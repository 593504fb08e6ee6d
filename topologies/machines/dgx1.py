"""Eight V100 GPUs in a hybrid cube mesh of NVLinks without a switch, as in DGX-1."""

from __future__ import annotations

from ringleaf.core.units import PS_PER_NS
from ringleaf.topologies.machine import NCCL_TOPO, MachineKind, MachineLink

DOUBLE = ((0, 1), (0, 4), (1, 3), (2, 3), (2, 6), (4, 5), (5, 7), (6, 7))
SINGLE = ((0, 2), (0, 3), (1, 2), (1, 5), (3, 7), (4, 6), (4, 7), (5, 6))
"""GPUs that two NVLinks join, and one. Source: microsoft/msccl-tools 030a750, nvidia.py."""

MACHINE = MachineKind(
    summary="8 V100 in a hybrid cube mesh of NVLinks, two to a PCIe switch with a NIC; as DGX-1",
    gpus=8,
    nvlink=MachineLink(
        160_000_000_000,
        300 * PS_PER_NS,
        f"{NCCL_TOPO}: SM70_NVLINK_BW, 20 GB/s",
        "assumed: TACCL's NDv2 profile has 0.3 us for a message (microsoft/taccl 426bd1e)",
    ),
    nvlinks=6,
    nvlinks_source="the mesh: each GPU has six",
    mesh=(*((a, b, 2) for a, b in DOUBLE), *((a, b, 1) for a, b in SINGLE)),
    order=(0, 1, 3, 2, 6, 7, 5, 4),  # the ring of double links
    pcie=MachineLink(
        96_000_000_000,
        200 * PS_PER_NS,
        f"{NCCL_TOPO}: 16 lanes of 8 GT/s, 6 Gbit/s each",
        "assumed",
    ),
    pcie_switches=4,
    cpu=MachineLink(
        48_000_000_000,
        100 * PS_PER_NS,
        f"{NCCL_TOPO}: Intel before model 0x55, 6 GB/s",
        "assumed",
    ),
    cpus=2,
    nics=4,
)
