"""The rates that NCCL and RCCL give links inside a machine, in Mbit/s.

Source:
    NVIDIA/nccl, src/graph/topo.cc and topo.h (commit 5067397c); ROCm/rccl, the same files (commit
    0cbce2a7, and gfx95 of later ones) and src/misc/archinfo.cc.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ringleaf.errors import ConfigError

PCILINK_MBPS = 40_000_000

_LANE_MBPS = {2500: 1500, 5000: 3000, 8000: 6000, 16000: 12000, 32000: 24000, 64000: 48000}
"""The rate of a lane by megatransfers per second."""
_OTHER_LANE_MBPS = 6000
MOST_LANES, _OTHER_LANES = 32, 16
"""PCI Express has no more lanes; Linux says 255 where a link's width is not known."""
_NVLINK_MBPS = (
    *((100, 320_800), (90, 164_800), (87, 160_000), (86, 96_000)),
    *((80, 160_000), (70, 160_000), (60, 144_000)),
)
_OTHER_NVLINK_MBPS = 160_000
_XGMI_MBPS = {"gfx90a": 288_000, "gfx94": 384_000, "gfx95": 384_000}
_OTHER_XGMI_MBPS = 192_000
_OLD_ARCHITECTURES = {"910": "gfx90a", "940": "gfx940", "941": "gfx941", "942": "gfx942"}
_ZHAOXIN = ("CentaurHauls", "Shanghai")
_CPU_MBPS = {
    **{"ppc64": 256_000, "arm64": 48_000, "AuthenticAMD": 128_000},
    **dict.fromkeys(_ZHAOXIN, 48_000),
}
_INTEL_MBPS = ((0xCF, 320_000), (0x8F, 176_000), (0x55, 80_000), (0, 48_000))
_YONGFENG, _YONGFENG_MBPS = 0x5B, 72_000  # Zhaoxin's model
OTHER_CPU_MBPS = 40_000_000

_WHOLE = re.compile(r"x?(-?(?:0x[0-9a-f]{1,8}|\d{1,9}))[af]?", re.IGNORECASE | re.ASCII)
"""A number as C reads it, with the `x` of lanes and the letter of a compute capability: `90a`."""
_SPEED = re.compile(r"(\d{1,6}(?:\.\d)?) ?([GM])T/s(?: PCIe)?", re.IGNORECASE | re.ASCII)


def whole(attributes: Mapping[str, str], name: str, otherwise: int, where: str) -> int:
    """Return a whole number, the other one if there is none or it is negative.

    Args:
        attributes: The attributes of an element.
        name: That of the number, which is decimal, or hexadecimal after `0x`, as NCCL reads it.
        otherwise: The other number.
        where: How a message begins.

    Raises:
        ConfigError: If it is something else.
    """
    text = attributes.get(name, "").strip()
    match = _WHOLE.fullmatch(text)
    if text and match is None:
        raise ConfigError(f"{where}: {name} must be a whole number, got {text!r:.40}")
    number = int(match[1], 16 if "0x" in match[1].lower() else 10) if match else -1
    return otherwise if number < 0 else number


def lane_mbps(attributes: Mapping[str, str]) -> int | None:
    """Return the rate of a lane of a PCI device's link, by its `link_speed`; None: it is none."""
    match = _SPEED.fullmatch(attributes.get("link_speed", "").strip())
    if match is None:
        return None
    return _LANE_MBPS.get(round(float(match[1]) * (1000 if match[2] in "Gg" else 1)))


def pci_lanes(attributes: Mapping[str, str], where: str) -> int | None:
    """Return the lanes of a PCI device's link; None: they are not known, as in guests."""
    lanes = whole(attributes, "link_width", 0, where)
    return lanes if 0 < lanes <= MOST_LANES else None


def pci_mbps(attributes: Mapping[str, str], where: str) -> int:
    """Return the rate of a PCI device's link upwards."""
    lanes = pci_lanes(attributes, where) or _OTHER_LANES
    return lanes * (lane_mbps(attributes) or _OTHER_LANE_MBPS)


def nvlink_mbps(gpu: Mapping[str, str], where: str) -> int:
    """Return the rate of one NVLink of a GPU, by its compute capability."""
    capability = whole(gpu, "sm", 0, where)
    return next((mbps for least, mbps in _NVLINK_MBPS if capability >= least), _OTHER_NVLINK_MBPS)


def xgmi_mbps(gpu: Mapping[str, str], where: str) -> int:
    """Return the rate of one XGMI link of an AMD GPU, by its architecture."""
    del where
    architecture = gpu.get("gcn", "")
    name = _OLD_ARCHITECTURES.get(architecture, architecture)
    return next(
        (mbps for start, mbps in _XGMI_MBPS.items() if name.startswith(start)), _OTHER_XGMI_MBPS
    )


def cpu_mbps(attributes: Mapping[str, str], where: str) -> int:
    """Return the rate between a CPU and another; OTHER_CPU_MBPS of an unknown one."""
    arch, vendor = attributes.get("arch", ""), attributes.get("vendor", "").strip()
    family, model = (whole(attributes, name, 0, where) for name in ("familyid", "modelid"))
    if vendor == "GenuineIntel":
        model = model if family == 6 else 0
        return next(mbps for least, mbps in _INTEL_MBPS if model >= least)
    if vendor in _ZHAOXIN and (family, model) == (7, _YONGFENG):
        return _YONGFENG_MBPS
    return _CPU_MBPS.get(arch, _CPU_MBPS.get(vendor, OTHER_CPU_MBPS))
