"""The rates that NCCL and RCCL give links inside a machine, in Mbit/s.

Source:
    NVIDIA/nccl, src/graph/topo.cc and topo.h (commit 5067397c); ROCm/rccl, the same files (commit
    0cbce2a7, and gfx95 of later ones) and src/misc/archinfo.cc.
"""

from __future__ import annotations

from collections.abc import Mapping

PCILINK_MBPS = 40_000_000

_LANE_MBPS = {"2.5": 1500, "5": 3000, "8": 6000, "16": 12000, "32": 24000, "64": 48000}
_OTHER_LANE_MBPS = 6000
_NVLINK_MBPS = (
    *((100, 320_800), (90, 164_800), (86, 96_000)),
    *((80, 160_000), (70, 160_000), (60, 144_000)),
)
_OTHER_NVLINK_MBPS = 160_000
_XGMI_MBPS = {"gfx90a": 288_000, "gfx94": 384_000, "gfx95": 384_000}
_OTHER_XGMI_MBPS = 192_000
_OLD_ARCHITECTURES = {"910": "gfx90a", "940": "gfx940", "941": "gfx941", "942": "gfx942"}
_CPU_MBPS = {"ppc64": 256_000, "arm64": 48_000, "AuthenticAMD": 128_000}
_INTEL_MBPS = ((0xCF, 320_000), (0x8F, 176_000), (0x55, 80_000), (0, 48_000))
_OTHER_CPU_MBPS = 40_000_000


def whole(text: str | None, otherwise: int) -> int:
    """Return a whole number, or the other one if a text is none."""
    if text is None or not text.isascii() or not text.isdecimal() or len(text) > 9:
        return otherwise
    return int(text)


def pci_mbps(attributes: Mapping[str, str]) -> int:
    """Return the rate of a PCI device's link upwards."""
    speed = attributes.get("link_speed", "").partition(" ")[0].removesuffix(".0")
    lanes = whole(attributes.get("link_width"), 0) or 16
    return lanes * _LANE_MBPS.get(speed, _OTHER_LANE_MBPS)


def nvlink_mbps(gpu: Mapping[str, str]) -> int:
    """Return the rate of one NVLink of a GPU, by its compute capability."""
    capability = whole(gpu.get("sm"), 0)
    return next((mbps for least, mbps in _NVLINK_MBPS if capability >= least), _OTHER_NVLINK_MBPS)


def xgmi_mbps(gpu: Mapping[str, str]) -> int:
    """Return the rate of one XGMI link of an AMD GPU, by its architecture."""
    architecture = gpu.get("gcn", "")
    name = _OLD_ARCHITECTURES.get(architecture, architecture)
    return next(
        (mbps for start, mbps in _XGMI_MBPS.items() if name.startswith(start)), _OTHER_XGMI_MBPS
    )


def cpu_mbps(attributes: Mapping[str, str]) -> int:
    """Return the rate between a CPU and another."""
    arch, vendor = attributes.get("arch", ""), attributes.get("vendor", "")
    if vendor == "GenuineIntel":
        model = whole(attributes.get("modelid"), 0) if attributes.get("familyid") == "6" else 0
        return next(mbps for least, mbps in _INTEL_MBPS if model >= least)
    return _CPU_MBPS.get(arch, _CPU_MBPS.get(vendor, _OTHER_CPU_MBPS))
