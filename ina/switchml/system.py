"""SwitchML as one of the systems that a network can aggregate by (`ina.registry`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import networkx as nx
import numpy as np
import numpy.typing as npt
import torch

import ina.switchml.worker as worker
from hosts.agent import HostAgent
from ina.jobs import WorkersJob
from ina.reading import Fact
from ina.switchml import reading
from ina.switchml.control import ENTRIES, Job, entities
from ina.switchml.scaling import error_bounds
from ina.switchml.state import TENSORS, make_worker
from ina.switchml.wire import SIZES, VALUES_AT
from ina.systems import Share
from ringleaf.arena import Store
from ringleaf.errors import ConfigError
from ringleaf.units import serialize_ps
from switches.control import ControlPlane
from topologies.addresses import ipv4, mac
from topologies.graph import index, link
from topologies.trees import aggregation_tree

LINE_OVERHEAD_BYTES = 24  # preamble, FCS and gap of Ethernet


class SwitchML:
    """The system."""

    name = "switchml"
    layers = "ina.switchml.layers"
    last_comers = ("Ether.src", "IP.src", "IP.chksum")

    def program(self, lanes: int) -> str:
        """Name of the P4 program for packets of so many values.

        Raises:
            ConfigError: If there is none.
        """
        if lanes not in SIZES:
            raise ConfigError(f"switchml: lanes must be one of {list(SIZES)}, got {lanes!r}")
        return f"switchml-{lanes}"

    def join(
        self,
        graph: nx.Graph[str],
        store: Store,
        *,
        number: int,
        members: Sequence[str],
        servers: Sequence[str],
        share: Share,
        ring: int,
        lanes: int,
        slots: int | None,
        rtt_ps: int,
    ) -> WorkersJob:
        """Make a job, over the tree of least depth.

        Args:
            graph: A topology.
            store: Where the workers go.
            number: Of the job, 1 to 255.
            members: The workers' hosts, in rank order.
            servers: Not needed.
            share: Of each switch's slots.
            ring: Completion ring they report to.
            lanes: Values in a packet.
            slots: Packets in flight per worker; None: twice what a path holds, if the share does.
            rtt_ps: The longest round trip to the root.

        Raises:
            ConfigError: If it does not fit the switches.
        """
        self.program(lanes)
        tree = aggregation_tree(graph, members, index=number - 1)
        rate_bps = min(
            link(graph, switch, child).rate_bps
            for switch, children in tree.children.items()
            for child in children
        )
        packet_ps = serialize_ps(VALUES_AT + 4 * lanes + LINE_OVERHEAD_BYTES, rate_bps)
        first, most = share.cut(ENTRIES[lanes] // 2)
        if most < 1:
            raise ConfigError(
                f"switchml job {number}: a switch must have a slot for each of {share.of} jobs, "
                f"got {share.entries}"
            )
        if slots is None:
            slots = min(max(2 * rtt_ps // packet_ps, 8), most)
        job = Job(number, slots, first_slot=first, lanes=lanes)
        workers = [
            make_worker(
                store,
                host=index(host),
                ring=ring,
                job=number,
                workers=len(members),
                slots=slots,
                lanes=lanes,
                mac=mac(graph, host, 1),
                address=ipv4(graph, host),
                min_timeout_ps=2 * max(rtt_ps, slots * packet_ps),
            )
            for host in members
        ]
        agents = [
            HostAgent(index(host), worker, at) for host, at in zip(members, workers, strict=True)
        ]
        return WorkersJob(
            "switchml",
            entities(graph, tree, job),
            agents,
            worker.start_tensor,
            window_bytes=4 * slots * lanes,
            tensors_at=TENSORS,
        )

    def error_bound(self, tensors: Sequence[torch.Tensor], lanes: int) -> torch.Tensor:
        """How far each element of the result may be from the exact sum (float64)."""
        if tensors[0].dtype == torch.int32:
            return torch.zeros(tensors[0].shape, dtype=torch.float64)
        parts = np.stack([tensor.numpy() for tensor in tensors])
        return torch.from_numpy(error_bounds(parts, lanes))

    def read_entry(
        self, graph: nx.Graph[str], switch: ControlPlane, index: int, cells: Mapping[str, int]
    ) -> Sequence[Fact]:
        """What an entry of the registers says, for people."""
        return reading.read_entry(graph, switch, index, cells)

    def occupied(self, switch: ControlPlane) -> npt.NDArray[np.int64]:
        """Jobs of the entries in use."""
        return reading.occupied(switch)

    def read_packet(self, data: bytes) -> str:
        """What a packet is, for people."""
        return reading.read_packet(data)

    def read_values(self, data: bytes) -> Sequence[int]:
        """The whole numbers that a packet carries."""
        return reading.read_values(data)

    def read_counter(self, name: str, row: int) -> str:
        """What a row of a counter counts, for people."""
        return reading.read_counter(name, row)


SYSTEM = SwitchML()
