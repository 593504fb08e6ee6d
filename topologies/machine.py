"""Machines with several GPUs, of which a network has one in place of each host: `node=8xh100`.

A machine's figures are data, with their sources. Rates are those that NCCL reckons with, a bit
below the nominal ones. Delays have no good source and are assumed. Each rate and delay can be
given: `nvlink_rate=1T,pcie_delay=500ns`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ringleaf.core.registry import Registry
from ringleaf.core.units import exact_rate, exact_time, is_whole, parse_rate, parse_time
from ringleaf.errors import ConfigError, TopologyError
from ringleaf.topologies.graph import Link

NCCL_TOPO = "NVIDIA/nccl 5067397c, src/graph/topo.h and topo.cc"

MOST_GPUS = 64

WIRE_KEYS = {
    f"{wire}_{what}": parse
    for wire in ("nvlink", "pcie", "cpu")
    for what, parse in (("rate", parse_rate), ("delay", parse_time))
}
"""Rates and delays inside a machine; `nvlink_rate` is that of all NVLinks of a GPU together."""

KEYS = ("node", "nics", "gpudirect", *WIRE_KEYS)
"""Keys that every topology's text takes."""


@dataclass(frozen=True, slots=True)
class MachineLink:
    """A kind of link inside a machine: its rate and delay each way, and where these come from."""

    rate_bps: int
    delay_ps: int
    rate_source: str
    delay_source: str


@dataclass(frozen=True, slots=True)
class MachineKind:
    """A kind of machine.

    Args:
        summary: A line for lists.
        gpus: The usual number of GPUs; the only one if there is a mesh.
        pcie: Links of GPUs and NICs to PCIe switches, and of these to CPUs.
        cpu: Links between CPUs.
        cpus: Number of CPUs.
        nvlink: One NVLink; None: GPUs have none.
        nvlinks: NVLinks of a GPU.
        nvlinks_source: The source of that number.
        mesh: GPUs that are joined: two GPUs, and the number of NVLinks. Empty: an NVSwitch joins
            them all.
        order: The GPU of each rank; empty: in the order of their numbers.
        pcie_switches: Number of PCIe switches; None: one for each GPU.
        nics: Number of NICs; None: one for each GPU.
    """

    summary: str
    gpus: int
    pcie: MachineLink
    cpu: MachineLink
    cpus: int
    nvlink: MachineLink | None = None
    nvlinks: int = 0
    nvlinks_source: str = ""
    mesh: tuple[tuple[int, int, int], ...] = ()
    order: tuple[int, ...] = ()
    pcie_switches: int | None = None
    nics: int | None = None


MACHINES: Registry[MachineKind] = Registry(
    "machines", "machine", "topologies/machines", "MACHINE", kind=MachineKind
)


@dataclass(frozen=True, slots=True)
class Inside:
    """A machine as an experiment has it.

    Args:
        name: The machine's name in the registry.
        gpus: Number of GPUs.
        nics: Number of NICs.
        gpudirect: Whether data goes from GPUs to NICs directly, or through the host's memory.
        given: Some rates (bit/s) and delays (ps) in place of the machine's own, by key.
    """

    name: str
    gpus: int
    nics: int
    gpudirect: bool = True
    given: Mapping[str, int] = field(default_factory=dict)

    @property
    def machine(self) -> MachineKind:
        """Return the machine's own figures."""
        return MACHINES[self.name]

    @property
    def has_nvlink(self) -> bool:
        """Return whether NVLinks join the machine's GPUs."""
        return self.machine.nvlink is not None

    @property
    def has_nvswitch(self) -> bool:
        """Return whether its NVLinks lead to an NVSwitch, and not from GPU to GPU."""
        return self.has_nvlink and not self.machine.mesh

    @property
    def pcie_switches(self) -> int:
        """Return the number of PCIe switches: the machine's, but at most one for each GPU."""
        return min(self.machine.pcie_switches or self.gpus, self.gpus)

    @property
    def cpus(self) -> int:
        """The number of CPUs that packets pass; 0 where none ever does."""
        is_passed = not self.gpudirect or (not self.has_nvlink and self.pcie_switches > 1)
        return min(self.machine.cpus, self.pcie_switches) if is_passed else 0

    def nvlink(self, count: int | None = None) -> Link:
        """Return so many NVLinks as one link; None: all of a GPU together."""
        wire, nvlinks = self.machine.nvlink, self.machine.nvlinks
        assert wire is not None
        whole = self._link("nvlink", MachineLink(wire.rate_bps * nvlinks, wire.delay_ps, "", ""))
        if count is None:
            return whole
        return Link(max(whole.rate_bps * count // nvlinks, 1), whole.delay_ps)

    def pcie(self) -> Link:
        """Return a link of PCIe."""
        return self._link("pcie", self.machine.pcie)

    def cpu(self) -> Link:
        """Return the link between two CPUs."""
        return self._link("cpu", self.machine.cpu)

    def _link(self, name: str, wire: MachineLink) -> Link:
        rate_bps = self.given.get(f"{name}_rate", wire.rate_bps)
        return Link(rate_bps, self.given.get(f"{name}_delay", wire.delay_ps))

    def __str__(self) -> str:
        """Return the text that means this machine, all in one order: `node=8xh100,gpudirect=no`."""
        options = [f"node={self.name}" if self.machine.mesh else f"node={self.gpus}x{self.name}"]
        if self.nics != _usual_nics(self.machine, self.gpus):
            options.append(f"nics={self.nics}")
        if not self.gpudirect:
            options.append("gpudirect=no")
        for key, value in sorted(self.given.items()):
            exact = exact_rate if WIRE_KEYS[key] is parse_rate else exact_time
            options.append(f"{key}={exact(value)}")
        return ",".join(options)


def read_inside(options: Mapping[str, str], where: str) -> Inside | None:
    """Return the machine that a topology's options mean; None if there is no `node` among them.

    Args:
        options: Some of KEYS with their texts.
        where: The beginning of messages.

    Raises:
        ConfigError: If a text is not understood, or there are others without `node`.
        TopologyError: If there is no such machine.
    """
    if "node" not in options:
        for key in options:
            raise ConfigError(f"{where}: {key} is for machines, got none; add node=8xh100")
        return None
    name, gpus = _read_name(options["node"], f"{where}: node")
    machine = MACHINES[name]
    if machine.mesh and gpus not in (None, machine.gpus):
        raise TopologyError(
            f"{where}: node: {name} has {machine.gpus} GPUs, got {options['node']!r}; "
            f"write node={name}"
        )
    count = machine.gpus if gpus is None else gpus
    inside = Inside(
        name,
        count,
        _read_nics(options, machine, count, where),
        _read_yes(options.get("gpudirect", "yes"), f"{where}: gpudirect"),
        {
            key: WIRE_KEYS[key](options[key], f"{where}: {key}")
            for key in options
            if key in WIRE_KEYS
        },
    )
    for key in inside.given:
        if key.startswith("nvlink") and not inside.has_nvlink:
            raise ConfigError(f"{where}: {key}: {name} has no NVLinks; take it away")
    return inside


def _read_name(text: str, where: str) -> tuple[str, int | None]:
    match = re.fullmatch(r"(?:(\d{1,9})x)?([a-z].*)", text.strip().lower())
    if match is None:
        raise ConfigError(f"{where}: must be a machine like 8xh100 or dgx1, got {text!r:.60}")
    name = match[2]
    MACHINES.find(name, where)
    if match[1] is not None and not 1 <= int(match[1]) <= MOST_GPUS:
        raise TopologyError(f"{where}: must have 1 to {MOST_GPUS} GPUs, got {text!r:.60}")
    return name, None if match[1] is None else int(match[1])


def _usual_nics(machine: MachineKind, gpus: int) -> int:
    return min(machine.nics or gpus, gpus)


def _read_nics(options: Mapping[str, str], machine: MachineKind, gpus: int, where: str) -> int:
    if "nics" not in options:
        return _usual_nics(machine, gpus)
    text = options["nics"]
    if not is_whole(text) or not 1 <= int(text) <= gpus:
        raise TopologyError(f"{where}: nics: must be 1 to {gpus}, the number of GPUs, got {text!r}")
    return int(text)


def _read_yes(text: str, where: str) -> bool:
    if text not in ("yes", "no"):
        raise ConfigError(f"{where}: must be yes or no, got {text!r:.60}")
    return text == "yes"
