"""NCCL's topology of one machine, as NCCL_TOPO_DUMP_FILE writes it: CPUs, PCI switches and GPUs.

Source:
    NVIDIA/nccl, src/graph/topo.cc and topo.h (commit 5067397c): a PCI link has its generation's
    rate per lane, an NVLink that of the GPU's compute capability, CPUs are joined with one another
    by a rate that depends on their kind, all NVSwitches are one, and there are no latencies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ringleaf.errors import ConfigError
from ringleaf.topologies.files.attributes import HOST, SWITCH, read_way
from ringleaf.topologies.files.format import Format
from ringleaf.topologies.files.markup import Element, read_xml
from ringleaf.topologies.files.nccl_writing import LINK_NOTE, NOTE, write
from ringleaf.topologies.files.notes import read_note
from ringleaf.topologies.files.reduction import Edge, Parts, Terms, split
from ringleaf.topologies.files.rows import NodeRow, Row, Rows
from ringleaf.units import exact_rate

NVSWITCH = "nvswitch"
NVLINK, PCI = "nvlink", "pci"

_LANE_MBPS = {"2.5": 1500, "5": 3000, "8": 6000, "16": 12000, "32": 24000, "64": 48000}
_OTHER_LANE_MBPS = 6000
_NVLINK_MBPS = (
    *((100, 320_800), (90, 164_800), (86, 96_000)),
    *((80, 160_000), (70, 160_000), (60, 144_000)),
)
_OTHER_NVLINK_MBPS = 160_000
_PCILINK_MBPS = 40_000_000
_CPU_MBPS = {"ppc64": 256_000, "arm64": 48_000, "AuthenticAMD": 128_000}
_INTEL_MBPS = ((0xCF, 320_000), (0x8F, 176_000), (0x55, 80_000), (0, 48_000))
_OTHER_CPU_MBPS = 40_000_000


def read(text: str, where: str) -> Rows:
    """Return GPUs as hosts, in the order of their ranks, and what joins them as switches.

    Where NVLinks join all GPUs, they are the network, and PCI is left out, as NCCL does not use it
    between such GPUs. What leads to NICs only is left out.

    Raises:
        ConfigError: If it is no such file, or has no GPU.
    """
    root = read_xml(text, where)
    if root.name != "system":
        raise ConfigError(f"{where} line {root.line}: must be a <system>, got <{root.name}>")
    machine = _Machine(where)
    for cpu in root.all("cpu"):
        machine.add_cpu(cpu)
    if not machine.gpus:
        raise ConfigError(f"{where} line {root.line}: must have a <gpu>, got none")
    machine.join()
    about = read_note(root.attributes.get(NOTE), f"{where} line {root.line}")
    chosen = machine.edges[NVLINK]
    if about or not machine.is_joined(chosen):
        chosen = [*chosen, *machine.edges[PCI]]
    network = Parts.of(machine.rows, chosen)
    network.reduce(machine.rows if about else machine.gpus, ())
    gpus = sorted(machine.gpus, key=machine.gpus.__getitem__)  # stable: equal ranks keep order
    others = sorted(machine.rows.keys() - gpus, key=machine.order.__getitem__)
    names = [name for name in (*gpus, *others) if name in network.edges]
    rows = (NodeRow(name, machine.rows[name]) for name in names)
    return Rows(tuple(rows), network.links(), Row(root.line, about))


@dataclass(slots=True)
class _Machine:
    """The nodes of a machine, and its links, by their kind.

    `gpus` has ranks by name, `order` the nodes' places, `names` their names by bus id, and
    `one_way` the links that are told from each end.
    """

    where: str
    rows: dict[str, Row] = field(default_factory=dict)
    gpus: dict[str, int] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    edges: dict[str, list[Edge]] = field(default_factory=lambda: {NVLINK: [], PCI: []})
    cpus: list[tuple[str, Element]] = field(default_factory=list)
    one_way: list[tuple[str, str, Element, str, int]] = field(default_factory=list)

    def add_cpu(self, cpu: Element) -> None:
        """Add a CPU, the PCI devices below it, and what is below those."""
        name = f"cpu{cpu.attributes.get('numaid', len(self.cpus))}"
        values = self._note(cpu, NOTE)
        parent = None
        if values.get("role") != "none":
            parent = self._add(name, cpu, {"role": SWITCH, "kind": "cpu"})
            self.cpus.append((parent, cpu))
        for child in cpu.all("pci"):
            self._add_pci(child, parent)

    def _add_pci(self, pci: Element, parent: str | None) -> None:
        bus = pci.attributes.get("busid", "")
        if not bus or bus in self.names:
            raise ConfigError(
                f"{self._place(pci)}: <pci> must have a busid of its own, got {bus!r:.40}"
            )
        gpus = list(pci.all("gpu"))
        if list(pci.all("nic")) and not gpus:
            return
        if gpus:
            name = self._add_gpu(gpus[0])
        else:
            name = self._add(bus, pci, {"role": SWITCH, "kind": "pci"})
        self.names[bus] = name
        if parent is not None:
            self._link(PCI, name, parent, pci, _pci_mbps(pci.attributes))
        for child in pci.all("pci"):
            self._add_pci(child, name)
        for child in pci.all("pcilink"):
            target = child.attributes.get("target", "")
            self.one_way.append((PCI, name, child, target, _PCILINK_MBPS))

    def _add_gpu(self, gpu: Element) -> str:
        name = self._add(f"gpu{gpu.attributes.get('dev', len(self.gpus))}", gpu, {"role": HOST})
        self.gpus[name] = _whole(gpu.attributes.get("rank"), len(self.gpus))
        capability = _whole(gpu.attributes.get("sm"), 0)
        each_mbps = next(
            (mbps for least, mbps in _NVLINK_MBPS if capability >= least), _OTHER_NVLINK_MBPS
        )
        for link in gpu.all("nvlink"):
            mbps = each_mbps * _whole(link.attributes.get("count"), 1)
            self.one_way.append((NVLINK, name, link, link.attributes.get("target", ""), mbps))
        return name

    def _add(self, name: str, element: Element, values: Mapping[str, str]) -> str:
        note = self._note(element, NOTE)
        name = note.pop("name", name)
        self.order[name] = _whole(note.pop("order", None), len(self.order))
        if name in self.rows:
            raise ConfigError(f"{self._place(element)}: two nodes are called {name!r}")
        named = {"role": values["role"]} if "label" in note else values
        self.rows[name] = Row(element.line, {**named, **note})
        return name

    def join(self) -> None:
        """Add the links that are told from their ends, and those between CPUs."""
        pairs: dict[tuple[str, str], Edge] = {}
        for kind, name, element, target, mbps in self.one_way:
            other = self._target(element, target)
            if other in self.gpus or kind == PCI:
                back = pairs.pop((other, name), None)
                there, _ = self._terms(element, mbps)
                if (name, other) in pairs:
                    raise ConfigError(
                        f"{self._place(element)}: {name} has this link twice, got {target!r}"
                    )
                if back is None:
                    order = self._order(element)
                    pairs[name, other] = Edge(name, other, there, there, element.line, order)
                else:
                    whole = Edge(other, name, back.there, there, back.line, back.order)
                    self.edges[kind].append(whole)
            else:
                self._link(kind, name, other, element, mbps)
        for edge in pairs.values():  # told from one end only
            self.edges[NVLINK].append(edge)
        for number, (name, cpu) in enumerate(self.cpus):
            for other, _ in self.cpus[:number]:
                self._link(PCI, name, other, cpu, _cpu_mbps(cpu.attributes))

    def _target(self, element: Element, target: str) -> str:
        """Return the node that a link leads to; an unknown one is the NVSwitch, or its CPU."""
        if target in self.names:
            return self.names[target]
        kind = element.attributes.get("tclass", "")
        if kind == "0x068001" and self.cpus:
            return self.cpus[0][0]
        if kind.startswith("0x03") or element.name == "pcilink":
            raise ConfigError(f"{self._place(element)}: no device has this busid, got {target!r}")
        if NVSWITCH not in self.rows:
            self._add(NVSWITCH, Element("", element.line, {}), {"role": SWITCH, "kind": NVSWITCH})
        return NVSWITCH

    def _link(self, kind: str, a: str, b: str, element: Element, mbps: int) -> None:
        there, back = self._terms(element, mbps)
        self.edges[kind].append(Edge(a, b, there, back, element.line, self._order(element)))

    def _terms(self, element: Element, mbps: int) -> tuple[Terms, Terms]:
        note = self._note(element, LINK_NOTE)
        note.pop("order", None)
        for way in split(note):
            read_way(way, self._place(element))
        return split(note or {"rate": exact_rate(mbps * 10**6)})

    def _order(self, element: Element) -> int:
        """Return the place of a link among all: its own, or that of its line."""
        return _whole(self._note(element, LINK_NOTE).get("order"), element.line)

    def is_joined(self, edges: list[Edge]) -> bool:
        """Return whether these links join all GPUs."""
        near: dict[str, list[str]] = {name: [] for name in self.rows}
        for edge in edges:
            near[edge.a].append(edge.b)
            near[edge.b].append(edge.a)
        waiting = [next(iter(self.gpus))]
        met = set(waiting)
        while waiting:
            new = set(near[waiting.pop()]) - met
            met |= new
            waiting += new
        return self.gpus.keys() <= met

    def _note(self, element: Element, name: str) -> dict[str, str]:
        return read_note(element.attributes.get(name), self._place(element))

    def _place(self, element: Element) -> str:
        return f"{self.where} line {element.line}"


def _whole(text: str | None, otherwise: int) -> int:
    if text is None or not text.isascii() or not text.isdecimal() or len(text) > 9:
        return otherwise
    return int(text)


def _pci_mbps(attributes: Mapping[str, str]) -> int:
    speed = attributes.get("link_speed", "").partition(" ")[0].removesuffix(".0")
    lanes = _whole(attributes.get("link_width"), 0) or 16
    return lanes * _LANE_MBPS.get(speed, _OTHER_LANE_MBPS)


def _cpu_mbps(attributes: Mapping[str, str]) -> int:
    arch, vendor = attributes.get("arch", ""), attributes.get("vendor", "")
    if vendor == "GenuineIntel":
        model = _whole(attributes.get("modelid"), 0) if attributes.get("familyid") == "6" else 0
        return next(mbps for least, mbps in _INTEL_MBPS if model >= least)
    return _CPU_MBPS.get(arch, _CPU_MBPS.get(vendor, _OTHER_CPU_MBPS))


FORMAT = Format("NCCL's topology of a machine", (".xml",), r"<system\b", read, write)
