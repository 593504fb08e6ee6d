"""NCCL's topology of machines, as NCCL_TOPO_DUMP_FILE writes it, and RCCL's, its twin of AMD.

Source:
    NVIDIA/nccl, src/graph/topo.cc and topo.h (commit 5067397c); ROCm/rccl, the same files (commit
    0cbce2a7): NVLinks, XGMI and NVLink-C2C join GPUs with one another, with the NVSwitch or with
    their CPU, CPUs of a host are joined with one another, all NVSwitches are one, and there are no
    latencies. Links to devices that are not in the file are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ringleaf.core.units import exact_rate, format_count, format_rate
from ringleaf.errors import ConfigError, TopologyError
from ringleaf.topologies.files.attributes import HOST, SWITCH, read_way
from ringleaf.topologies.files.format import TopologyFormat
from ringleaf.topologies.files.markup import Element, read_xml
from ringleaf.topologies.files.nccl_rates import (
    MOST_LANES,
    OTHER_CPU_MBPS,
    PCILINK_MBPS,
    cpu_mbps,
    lane_mbps,
    nvlink_mbps,
    pci_mbps,
    whole,
    xgmi_mbps,
)
from ringleaf.topologies.files.nccl_writing import LINK_NOTE, NOTE, write
from ringleaf.topologies.files.notes import read_note
from ringleaf.topologies.files.reduction import Parts, ReducedLink, Terms
from ringleaf.topologies.files.rows import FileRow, NetworkRows, NodeRow, split

NVSWITCH = "nvswitch"
NVLINK, PCI = "nvlink", "pci"
"""The kinds of links: between GPUs (XGMI is one), and below CPUs."""

CPU_CLASS, NVSWITCH_CLASS, GPU_CLASSES = "068001", "068000", ("03", "12")
_BUS = re.compile(r"(?:([0-9a-f]+):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.([0-9a-f]))?", re.ASCII)

INSIDE = {
    "system": ("cpu",),
    "cpu": ("pci", "nic"),
    "pci": ("pci", "gpu", "nic", "pcilink"),
    "gpu": ("nvlink", "xgmi", "c2c"),
}
"""The elements that are used, and `nic`, which leads outside; others are named in a note."""


def read(text: str, where: str) -> NetworkRows:
    """Return GPUs as hosts, in the order of their ranks, and what joins them as switches.

    Where NVLinks or XGMI join all GPUs, they are the network, and PCI is left out, as NCCL does
    not use it between such GPUs. What leads to NICs only is left out. In a file without a `gpu`,
    such as clouds give NCCL, devices of a GPU's PCI class are GPUs.

    Raises:
        ConfigError: If it is no such file, or has no GPU.
        TopologyError: If nothing in it joins GPUs of several hosts.
    """
    root = read_xml(text, where)
    if root.name != "system":
        raise ConfigError(
            f"{where} line {root.line}: must be a <system> of NCCL, or a <graphml> or <gexf>, got "
            f"<{root.name}>"
        )
    for parent, gpu in _stray(root):
        raise ConfigError(
            f"{where} line {gpu.line}: <gpu> must be inside its <pci>, got it in <{parent.name}>"
        )
    hashes = list(dict.fromkeys(cpu.attributes.get("host_hash", "") for cpu in root.all("cpu")))
    unknown = Counter(_unknown(root))
    every = list(_all_gpus(root))
    has_ranks = any("rank" in each.attributes for each in every)
    machine = _Machine(where, is_template=not every, has_ranks=has_ranks)
    for cpu in root.all("cpu"):
        number = hashes.index(cpu.attributes.get("host_hash", ""))
        machine.add_cpu(cpu, f"host{number}." if len(hashes) > 1 else "")
    if not machine.gpus:
        raise ConfigError(
            f"{where} line {root.line}: must have a <gpu>, or a <pci> of class 0x03, got none; "
            "NCCL_TOPO_DUMP_FILE writes what NCCL adds when it runs"
        )
    machine.join()
    about = read_note(root.attributes.get(NOTE), f"{where} line {root.line}")
    chosen = machine.edges[NVLINK]
    has_pci = bool(about) or not machine.is_joined(chosen)
    if has_pci:
        chosen = [*chosen, *machine.edges[PCI]]
    if len(hashes) > 1 and not machine.is_joined(chosen):
        raise TopologyError(
            f"{where}: GPUs of several hosts must be joined by NVLinks, got "
            f"{format_count(len(hashes), 'host')} "
            "whose network the file does not tell; keep one host_hash, and write node= for more"
        )
    network = Parts.of(machine.rows, chosen)
    network.reduce(machine.rows if about else machine.gpus, ())
    gpus = sorted(machine.gpus, key=machine.gpus.__getitem__)  # stable: equal ranks keep order
    others = sorted(machine.rows.keys() - gpus, key=machine.order.__getitem__)
    names = [name for name in (*gpus, *others) if name in network.edges]
    rows = (NodeRow(name, machine.rows[name]) for name in names)
    notes = [*machine.notes()]
    if not about:  # which has rates of its own
        notes += machine.assumptions(has_pci=has_pci)
    if unknown:
        notes.append(f"not used: {', '.join(f'<{name}>' for name in unknown)}")
    return NetworkRows(tuple(rows), network.links(), FileRow(root.line, about), notes=tuple(notes))


def _bus_number(bus: str) -> tuple[int, ...] | str:
    """Return the numbers of a bus id, as which NCCL, too, compares them; a text that is none."""
    match = _BUS.fullmatch(bus.strip().lower())
    return tuple(int(each or "0", 16) for each in match.groups()) if match else bus.strip().lower()


def _class(element: Element, name: str) -> str:
    """Return a PCI class without the `0x` that it mostly has."""
    return element.attributes.get(name, "").strip().lower().removeprefix("0x")


def _all_gpus(element: Element) -> Iterator[Element]:
    """Yield all GPUs inside an element."""
    yield from element.all("gpu")
    for child in element.children:
        yield from _all_gpus(child)


def _stray(element: Element) -> Iterator[tuple[Element, Element]]:
    """Yield the elements of GPUs that are not inside a PCI device, each after what they are in."""
    for child in element.children:
        if child.name == "gpu" and element.name != "pci":
            yield element, child
        yield from _stray(child)


def _unknown(element: Element) -> Iterator[str]:
    """Yield the names of elements that are not used, but those inside of NICs."""
    for child in element.children:
        if child.name in INSIDE.get(element.name, ()):
            yield from _unknown(child) if child.name != "nic" else ()
        else:
            yield child.name


def _some(names: Iterable[str]) -> str:
    """Return the first three of some names."""
    every = [*names]
    return ", ".join(every[:3]) + (", ..." if len(every) > 3 else "")


@dataclass(slots=True)
class _Machine:
    """The nodes of a machine, and its links, by their kind.

    `gpus` has ranks by name, `order` the nodes' places, `names` their names by host and number of
    the bus, `one_way` the links that are told from each end, `nvswitches` PCI devices that are the
    one, `idle` those that are GPUs without a rank, and `unsaid` what gives no rate.
    """

    where: str
    is_template: bool
    has_ranks: bool
    rows: dict[str, FileRow] = field(default_factory=dict)
    gpus: dict[str, int] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)
    names: dict[tuple[str, tuple[int, ...] | str], str] = field(default_factory=dict)
    edges: dict[str, list[ReducedLink]] = field(default_factory=lambda: {NVLINK: [], PCI: []})
    cpus: list[tuple[str, str, Element]] = field(default_factory=list)
    one_way: list[tuple[str, str, str, Element, int]] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    loops: Counter[str] = field(default_factory=Counter)
    nvswitches: set[str] = field(default_factory=set)
    idle: Counter[str] = field(default_factory=Counter)
    unsaid: Counter[str] = field(default_factory=Counter)

    def add_cpu(self, cpu: Element, host: str) -> None:
        """Add a CPU, the PCI devices below it, and what is below those; `host` begins its names."""
        name = f"{host}cpu{cpu.attributes.get('numaid', len(self.cpus))}"
        values = self._note(cpu, NOTE)
        parent = None
        if values.get("role") != "none":
            parent = self._add(name, cpu, {"role": SWITCH, "kind": "cpu"})
            self.cpus.append((parent, host, cpu))
        for child in cpu.all("pci"):
            self._add_pci(child, parent, parent, host)

    def _gpus(self, pci: Element) -> list[Element]:
        """Return the GPU that a PCI device is, if it is one of the job's."""
        if self.is_template and _class(pci, "class").startswith(GPU_CLASSES):
            return [Element("gpu", pci.line, {})]
        gpus = [each for each in pci.all("gpu") if not self.has_ranks or "rank" in each.attributes]
        if len(gpus) > 1:
            raise ConfigError(
                f"{self._place(gpus[1])}: <pci> must have one <gpu>, got {len(gpus)}; ranks that "
                "share a GPU (MPS, MLOPart) are not read"
            )
        return gpus

    def _add_pci(self, pci: Element, parent: str | None, cpu: str | None, host: str) -> None:
        gpus = self._gpus(pci)
        is_gpu = _class(pci, "class").startswith(GPU_CLASSES) or any(pci.all("gpu"))
        if is_gpu and not gpus:
            self.idle[pci.attributes.get("busid", "")] += 1
            return
        if list(pci.all("nic")) and not gpus and not list(pci.all("pci")):
            return
        bus = pci.attributes.get("busid", "")
        place = host, _bus_number(bus)
        is_known = place in self.names
        if not bus or (is_known and gpus):
            raise ConfigError(
                f"{self._place(pci)}: <pci> must have a busid of its own, got {bus!r:.40}"
            )
        has_own_way = False
        if gpus:
            name = self._add_gpu(gpus[0], host)
            has_own_way = cpu is not None and self._join_cpu(name, gpus[0], cpu)
        else:  # NCCL, too, takes switches of one busid for several
            own = f"{host}{bus}" + f"#{len(self.rows)}" * is_known
            name = self._add(own, pci, {"role": SWITCH, "kind": "pci"})
            if _class(pci, "class") == NVSWITCH_CLASS:
                self.nvswitches.add(name)
        self.names.setdefault(place, name)
        if parent is not None and not has_own_way:
            self._join_parent(name, parent, pci)
        for child in pci.all("pci"):
            self._add_pci(child, name, cpu, host)
        for child in pci.all("pcilink"):
            self.one_way.append((PCI, host, name, child, PCILINK_MBPS))

    def _join_parent(self, name: str, parent: str, pci: Element) -> None:
        """Join a PCI device with the one above it, or the CPU."""
        place = self._place(pci)
        self._link(PCI, name, parent, pci, pci_mbps(pci.attributes, place))
        if lane_mbps(pci.attributes) is None:
            self.unsaid["link_speed"] += 1
        if whole(pci.attributes, "link_width", 0, place) > MOST_LANES:
            self.unsaid["link_width"] += 1

    def _add_gpu(self, gpu: Element, host: str) -> str:
        place, count = self._place(gpu), len(self.gpus)
        own = f"{host}gpu{gpu.attributes.get('dev', count)}"
        if own in self.rows:  # containers count their GPUs from 0
            own += f"#{count}"
        name = self._add(own, gpu, {"role": HOST})
        self.gpus[name] = whole(gpu.attributes, "rank", count, place)
        for link in gpu.all("nvlink", "xgmi"):
            if _class(link, "tclass") != CPU_CLASS:
                self.one_way.append((NVLINK, host, name, link, self._own_mbps(link, gpu)))
        return name

    def _own_mbps(self, link: Element, gpu: Element) -> int:
        """Return the rate of the NVLinks or XGMI links of an element."""
        if link.name == "nvlink" and "sm" not in gpu.attributes:
            self.unsaid["sm"] += 1
        rate = xgmi_mbps if link.name == "xgmi" else nvlink_mbps
        place = self._place(link)
        return whole(link.attributes, "count", 1, place) * rate(gpu.attributes, place)

    def _join_cpu(self, name: str, gpu: Element, cpu: str) -> bool:
        """Join a GPU with its CPU by NVLinks or C2C, and return whether it is; PCI is slower."""
        mbps = sum(
            self._own_mbps(link, gpu)
            for link in gpu.all("nvlink", "xgmi")
            if _class(link, "tclass") == CPU_CLASS
        )
        for link in gpu.all("c2c"):  # whose bw is in megabytes per second
            sizes = (("count", 1), ("bw", 0))
            count, bw = (whole(link.attributes, *each, self._place(link)) for each in sizes)
            mbps += count * bw * 8
        if mbps:
            self._link(PCI, name, cpu, gpu, mbps)
        return bool(mbps)

    def _add(self, name: str, element: Element, values: Mapping[str, str]) -> str:
        note = self._note(element, NOTE)
        name = note.pop("name", name)
        self.order[name] = whole(note, "order", len(self.order), self._place(element))
        note.pop("order", None)
        if name in self.rows:
            raise ConfigError(f"{self._place(element)}: two nodes are called {name!r}")
        named = {"role": values["role"]} if "label" in note else values
        self.rows[name] = FileRow(element.line, {**named, **note})
        return name

    def join(self) -> None:
        """Add the links that are told from their ends, and those between CPUs of a host."""
        pairs: dict[tuple[str, str, str], ReducedLink] = {}
        for (kind, name, other), (element, mbps) in self._together().items():
            if other not in self.gpus and kind == NVLINK:
                self._link(kind, name, other, element, mbps)
                continue
            there, _ = self._terms(element, mbps)
            back = pairs.pop((kind, other, name), None)
            if back is None:
                order = self._order(element)
                pairs[kind, name, other] = ReducedLink(
                    name, other, there, there, element.line, order
                )
            else:
                both = ReducedLink(other, name, back.there, there, back.line, back.order)
                self.edges[kind].append(both)
        for (kind, _, _), edge in pairs.items():  # told from one end only
            self.edges[kind].append(edge)
        for number, (name, host, cpu) in enumerate(self.cpus):
            for other, other_host, _ in self.cpus[:number]:
                if host == other_host:
                    mbps = cpu_mbps(cpu.attributes, self._place(cpu))
                    self._link(PCI, name, other, cpu, mbps)
                    self.unsaid["arch"] += mbps == OTHER_CPU_MBPS

    def _together(self) -> dict[tuple[str, str, str], tuple[Element, int]]:
        """Return the links that are told from one end, those between the same two as one."""
        links: dict[tuple[str, str, str], tuple[Element, int]] = {}
        for kind, host, name, element, mbps in self.one_way:
            other = self._target(element, host)
            if other == name:
                self.loops[element.name] += 1
            elif other:
                first, before = links.get((kind, name, other), (element, 0))
                links[kind, name, other] = first, before + mbps
        return links

    def _target(self, element: Element, host: str) -> str:
        """Return the node that a link leads to: "" if there is none, or else the NVSwitch.

        A link to what the file does not have, or has as an NVSwitch, leads to that if its class
        says so; to what is not in the file, others lead nowhere.
        """
        target, kind = element.attributes.get("target", ""), _class(element, "tclass")
        name = self.names.get((host, _bus_number(target)), "")
        if name and name not in self.nvswitches:
            return name
        if not kind or kind.startswith(GPU_CLASSES) or element.name == "pcilink":
            self.missing.update([target] * (not name))
            return name
        if NVSWITCH not in self.rows:
            self._add(NVSWITCH, Element("", element.line, {}), {"role": SWITCH, "kind": NVSWITCH})
        return NVSWITCH

    def notes(self) -> Iterator[str]:
        """Yield lines on what is assumed and left out."""
        if self.is_template:
            yield (
                "GPUs are known by their PCI class; the file has no NVLinks, which NCCL adds when "
                "it runs: NCCL_TOPO_DUMP_FILE writes them"
            )
        if self.missing:
            yield f"left out: links to {_some(self.missing)}: no such device in the file"
        if self.idle:
            yield (
                f"left out: {format_count(self.idle.total(), 'GPU')} without a rank, "
                f"{_some(self.idle)}: not of the job that wrote the file"
            )
        for name, count in self.loops.items():
            yield f"left out: {count} <{name}> of a device to itself"

    def assumptions(self, *, has_pci: bool) -> Iterator[str]:
        """Yield lines on rates that the file does not tell, and for which NCCL has a usual one."""
        if count := self.unsaid["sm"]:
            yield f"{format_count(count, 'link')} of GPUs without sm: as NVLinks of sm 80"
        if has_pci and (count := self.unsaid["link_speed"]):
            links = format_count(count, "PCI link")
            yield f"{links} without a known link_speed: 8 GT/s, as in NCCL"
        if has_pci and (count := self.unsaid["link_width"]):
            links = format_count(count, "PCI link")
            yield f"{links} of more lanes than there may be: 16, as where none are known"
        if has_pci and self.unsaid["arch"]:
            rate = format_rate(OTHER_CPU_MBPS * 10**6)
            yield f"CPUs without a known arch and vendor: {rate} between them, as in NCCL"

    def _link(self, kind: str, a: str, b: str, element: Element, mbps: int) -> None:
        there, back = self._terms(element, mbps)
        self.edges[kind].append(ReducedLink(a, b, there, back, element.line, self._order(element)))

    def _terms(self, element: Element, mbps: int) -> tuple[Terms, Terms]:
        note = self._note(element, LINK_NOTE)
        note.pop("order", None)
        for way in split(note):
            read_way(way, self._place(element))
        return split(note or {"rate": exact_rate(mbps * 10**6)})

    def _order(self, element: Element) -> int:
        """Return the place of a link among all: its own, or that of its line."""
        return whole(self._note(element, LINK_NOTE), "order", element.line, self._place(element))

    def is_joined(self, edges: list[ReducedLink]) -> bool:
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


FORMAT = TopologyFormat("NCCL's topology of a machine", (".xml",), r"<system\b", read, write)
