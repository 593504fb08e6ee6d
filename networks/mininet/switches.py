"""P4 switches for Mininet: `Mininet(switch=EmbeddedSwitch)`, or with `Bmv2Switch`.

Both take their program and entities as options of the node, so that any script can say

    net.addSwitch("s1", program="p4/build/forward.json", entities=[...])

All switches of a network share a `Runtime`; a script that doesn't make one has one of its own,
which ends with its last switch. All embedded switches of a network are one process.
"""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from finsy import P4CloneSessionEntry, P4MulticastGroupEntry
from mininet.node import Switch

from ringleaf.errors import BackendError, ConfigError
from ringleaf.networks.live.engine import LinkEnd
from ringleaf.networks.mininet.bmv2_recording import Bmv2Recording
from ringleaf.networks.mininet.links import line_of
from ringleaf.networks.mininet.preflight import check_machine, has_priorities
from ringleaf.networks.mininet.programming import SwitchProgramming, program_switches
from ringleaf.networks.mininet.recording import EmbeddedRecording, Recording
from ringleaf.networks.mininet.runtime import Runtime
from ringleaf.networks.mininet.shaping import disciplines, netem_options
from ringleaf.switches.p4runtime.derived import p4info_file


class P4Switch(Switch):
    """The common base of both kinds of switches.

    Args:
        name: As in Mininet; its number is its device id, plus 1.
        program: BMv2 JSON; None: it forwards nothing until a controller brings one.
        p4info: P4Info as text; by default beside it.
        entities: Entities written to it over P4Runtime, as finsy's objects.
        runtime: Resources that it shares with the network's other switches.
        batch: Start with the network's other switches, all at once; Mininet says so itself.
    """

    shared: ClassVar[Runtime | None] = None
    keeps_replication: ClassVar[bool] = False  # when it gets another program

    def __init__(
        self,
        name: str,
        program: str | Path | None = None,
        p4info: str | Path | None = None,
        entities: Sequence[Any] = (),
        runtime: Runtime | None = None,
        batch: bool = False,
        **params: Any,
    ) -> None:
        params["inNamespace"] = False
        super().__init__(name, **params)
        self.device = int(self.dpid, 16) + 1
        self._what = (program, p4info, entities)
        self._leftovers: Sequence[Any] = ()
        self.runtime = runtime
        self._batch = batch

    @property
    def lines(self) -> list[LinkEnd]:
        """The switch's interfaces, by port from 1."""
        ends = {port: end for port, end in self.intfs.items() if end.name != "lo"}
        if sorted(ends) != list(range(1, len(ends) + 1)):
            raise BackendError(f"{self.name}: ports must be numbered from 1, got {sorted(ends)}")
        return [line_of(ends[port]) for port in sorted(ends)]

    def target(self) -> SwitchProgramming | None:
        """Return the switch's program and entities, if it has any; it must have been started."""
        program, p4info, entities = self._what
        if program is None:
            return None
        assert self.runtime is not None, "not started"
        address, _, device = self.runtime.record.switches[self.name].rpartition("/")
        info = p4info_file(Path(program), Path(p4info) if p4info else None)
        return SwitchProgramming(
            self.name, address, int(device), Path(program), info, entities, self._leftovers
        )

    def run_program(self, program: Path, p4info: Path | None, entities: Sequence[Any]) -> None:
        """Set the program and entities, which take effect when the switch is programmed."""
        if self.keeps_replication:
            kinds = (P4MulticastGroupEntry, P4CloneSessionEntry)
            self._leftovers = [each for each in self._what[2] if isinstance(each, kinds)]
        self._what = (program, p4info, entities)

    def start(self, controllers: Any) -> None:
        """Start it now, unless all are to be started together; it has no OpenFlow controllers."""
        if not self._batch:
            self.batchStartup([self])

    @classmethod
    def batchStartup(cls, switches: Sequence[Any], **_: Any) -> Sequence[Any]:  # noqa: N802
        """Start switches together, as Mininet does; return those that were started."""
        groups: defaultdict[int, list[Any]] = defaultdict(list)
        for switch in switches:
            switch.runtime = switch.runtime or _share()
            groups[id(switch.runtime)].append(switch)
        for group in groups.values():
            runtime = group[0].runtime
            lines = {switch.name: (switch.device, switch.lines) for switch in group}
            for _, ports in lines.values():
                for line in ports:
                    runtime.adopt(line.interface)
            cls.start_all(runtime, lines)
        targets = filter(None, (switch.target() for switch in switches))
        children = [each for group in groups.values() for each in group[0].runtime.children]
        program_switches(targets, children)
        for switch in switches:
            switch._batch = False  # from now on each is started and stopped alone
        return switches

    @classmethod
    def start_all(
        cls, runtime: Runtime, switches: dict[str, tuple[int, Sequence[LinkEnd]]]
    ) -> None:
        """Start switches: by name, the device id, and the lines of the ports in their order."""
        raise NotImplementedError

    @classmethod
    def make_recording(
        cls,
        runtime: Runtime,
        switches: Mapping[str, Sequence[LinkEnd]],
        folder: Path,
        *,
        mask: Sequence[str],
    ) -> Recording:
        """Record the runtime's switches of this kind from their next program on.

        Args:
            runtime: The runtime of the switches.
            switches: Their lines, by port from 1.
            folder: Folder for the traces, a folder each.
            mask: Fields that a replay can't compare where it does not know queues' lengths.
        """
        raise NotImplementedError

    @classmethod
    def batchShutdown(cls, switches: Sequence[Any], **_: Any) -> Sequence[Any]:  # noqa: N802
        """Stop switches together, as Mininet does once their links are gone."""
        for switch in switches:
            if switch.runtime is not None:
                switch.runtime.record.switches.pop(switch.name, None)
        for runtime in {id(each.runtime): each.runtime for each in switches}.values():
            if runtime is not None and not runtime.record.switches:
                runtime.stop_switches()
                _unshare(runtime)
        return switches

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803
        """Stop it alone; its network's runtime is closed by the code that made it."""
        if self.runtime is not None and self.name in self.runtime.record.switches:
            self.runtime.remove(self.name)
            if not self.runtime.record.switches:
                _unshare(self.runtime)
        super().stop(deleteIntfs)


class EmbeddedSwitch(P4Switch):
    """A switch of Ringleaf's own engine, in one process with the network's others."""

    @classmethod
    def start_all(
        cls, runtime: Runtime, switches: dict[str, tuple[int, Sequence[LinkEnd]]]
    ) -> None:
        """Start switches in the runtime's daemon, which is started with the first of them."""
        runtime.add_embedded(switches)

    @classmethod
    def make_recording(
        cls,
        runtime: Runtime,
        switches: Mapping[str, Sequence[LinkEnd]],
        folder: Path,
        *,
        mask: Sequence[str],
    ) -> Recording:
        """Record by the daemon, which knows queues and needs no mask."""
        return EmbeddedRecording(runtime.daemon, folder)


class Bmv2Switch(P4Switch):
    """`simple_switch_grpc`; the kernel sets its links' rates and delays.

    Its packet replication engine outlives programs: a group that is inserted anew has the old
    members, too, so that each gets every packet twice.
    """

    keeps_replication = True

    @classmethod
    def start_all(
        cls, runtime: Runtime, switches: dict[str, tuple[int, Sequence[LinkEnd]]]
    ) -> None:
        """Set the links' rates and delays in the kernel, and start a process per switch."""
        lines = [line for _, ports in switches.values() for line in ports]
        asked = next(filter(None, map(netem_options, lines)), None)
        check_machine(bmv2=True, netem_for=asked)
        shape(lines)
        runtime.add_bmv2(switches)

    @classmethod
    def make_recording(
        cls,
        runtime: Runtime,
        switches: Mapping[str, Sequence[LinkEnd]],
        folder: Path,
        *,
        mask: Sequence[str],
    ) -> Recording:
        """Make the recording from BMv2's own captures.

        Raises:
            ConfigError: If BMv2 writes none.
        """
        if runtime.captures is None:
            raise ConfigError("record: BMv2 writes no captures, got a Runtime without 'captures'")
        return Bmv2Recording(runtime.captures, switches, folder, mask=mask)


def shape(lines: Iterable[LinkEnd]) -> None:
    """Give interfaces their queueing disciplines.

    Raises:
        BackendError: If `tc` refuses one.
    """
    priorities = has_priorities()
    commands = [command for line in lines for command in disciplines(line, priorities=priorities)]
    done = subprocess.run(
        ["tc", "-batch", "-"],
        input="".join(f"{command}\n" for command in commands),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BackendError(f"tc: refuses a discipline: {done.stderr.strip()}")


def _share() -> Runtime:
    """Return the shared runtime of a script that has made none, and make it if need be."""
    if P4Switch.shared is None:
        check_machine()
        P4Switch.shared = Runtime()
    return P4Switch.shared


def _unshare(runtime: Runtime) -> None:
    """Close a runtime that has lost its last switch, if a script's switches have made it."""
    if runtime is P4Switch.shared:
        P4Switch.shared = None
        runtime.close()
