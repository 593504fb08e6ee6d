"""Eight GPUs at an NVSwitch, as in DGX H100; each has a NIC of its own."""

from __future__ import annotations

from ringleaf.core.units import PS_PER_NS
from ringleaf.topologies.machine import NCCL_TOPO, MachineKind, MachineLink

MACHINE = MachineKind(
    summary="GPUs at an NVSwitch, each with a PCIe switch and a NIC of its own; as DGX H100",
    gpus=8,
    nvlink=MachineLink(
        164_800_000_000,
        150 * PS_PER_NS,
        f"{NCCL_TOPO}: SM90_NVLINK_BW, 20.6 GB/s",
        "assumed: half of 0.3 us for two links (TACCL's NDv2 profile; microsoft/taccl 426bd1e)",
    ),
    nvlinks=18,
    nvlinks_source="aliyun/SimAI, calbusbw.h: H100_NVLINKS",
    pcie=MachineLink(
        384_000_000_000,
        200 * PS_PER_NS,
        f"{NCCL_TOPO}: 16 lanes of 32 GT/s, 24 Gbit/s each",
        "assumed",
    ),
    cpu=MachineLink(
        176_000_000_000,
        100 * PS_PER_NS,
        f"{NCCL_TOPO}: Intel from model 0x8F on, 22 GB/s",
        "assumed",
    ),
    cpus=2,
)
