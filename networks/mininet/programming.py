"""Programming of many switches over P4Runtime, without using gRPC in this process.

gRPC's threads don't survive a fork, and a process that runs a live network forks: so a child does
the programming.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ringleaf.core.orphans import die_with_parent
from ringleaf.errors import BackendError
from ringleaf.networks.live.processes import Child

AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class SwitchProgramming:
    """A switch: its P4Runtime address, and the program and entities it gets."""

    name: str
    address: str
    device: int
    program: Path
    p4info: Path
    entities: Sequence[Any]
    leftovers: Sequence[Any] = ()  # of its former program: to be deleted before this one comes


def program_switches(targets: Iterable[SwitchProgramming], processes: Sequence[Child] = ()) -> None:
    """Give switches their programs and entities.

    Args:
        targets: The switches.
        processes: Their processes: from one that has ended, no answer is waited for.

    Raises:
        BackendError: If one ends, doesn't answer or refuses something; the message names it.
    """
    programs = list(targets)
    in_child(lambda: _program_all(programs), processes)


class Door:
    """Writes entities to running switches over P4Runtime, in a process that forks no more.

    It becomes a switch's primary controller when it first has something for it.

    Args:
        targets: The switches, with their programs.
    """

    def __init__(self, targets: Iterable[SwitchProgramming]) -> None:
        self._targets = {target.name: target for target in targets}
        self._controllers: dict[str, Any] = {}
        self._schemas: dict[Path, Any] = {}

    def __call__(self, updates: Mapping[str, Sequence[Any]]) -> None:
        """Write entities with their verbs, by switch; return when all switches have them.

        Raises:
            BackendError: If one doesn't answer or refuses something; the message names it.
        """
        from ringleaf.switches.p4runtime.finsy_entities import make_schema, read_p4info

        for name, entities in updates.items():
            p4info = self._targets[name].p4info
            if p4info not in self._schemas:
                self._schemas[p4info] = make_schema(read_p4info(p4info))
            self._controller(name).write(entities, self._schemas[p4info])

    def _controller(self, name: str) -> Any:
        from ringleaf.switches.server.client import PrimaryController

        if name not in self._controllers:
            target = self._targets[name]
            controller = PrimaryController(target.address, target.device, name)
            controller.await_ready()
            controller.take_control()
            self._controllers[name] = controller
        return self._controllers[name]


def in_child(work: Callable[[], None], processes: Sequence[Child] = ()) -> None:
    """Run a function in a fork of this process, while these processes go on.

    Raises:
        BackendError: If one of them ends, or the function raised an error, with its text.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        die_with_parent()
        _work(work, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as answer:
            _await(reading, processes)
            text = answer.read().decode()
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(pid, 0)
    if text or status:
        raise BackendError(text or f"programming: child has ended, got wait status {status}")


def _await(answer: int, processes: Sequence[Child]) -> None:
    """Wait until there is an answer, and raise an error if a process ends before."""
    poll = select.poll()
    for descriptor in (answer, *(each.descriptor for each in processes)):
        poll.register(descriptor, select.POLLIN)
    poll.poll()
    for each in processes:
        each.check()


def _work(work: Callable[[], None], writing: int) -> None:
    """Do the work in the child, and end the child, which never returns to the parent's code."""
    status = 1
    try:
        work()
        status = 0
    except BaseException as exc:  # noqa: BLE001 - the parent raises it
        is_ours = isinstance(exc, BackendError)
        os.write(writing, (str(exc) if is_ours else f"programming: {exc!r}").encode())
    finally:
        os._exit(status)


def _program_all(targets: Sequence[SwitchProgramming]) -> None:
    from ringleaf.switches.p4runtime.finsy_entities import make_schema, read_p4info

    paths = dict.fromkeys(each.p4info for each in targets)
    schemas = {path: make_schema(read_p4info(path)) for path in paths}
    first = {target.program: target for target in reversed(targets)}
    for target in first.values():  # alone: the daemon compiles its program, for all others too
        _program(target, schemas[target.p4info])
    others = [target for target in targets if target is not first[target.program]]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(_program, each, schemas[each.p4info]) for each in others]:
            done.result()


def _program(target: SwitchProgramming, schema: Any) -> None:
    from ringleaf.switches.server.client import PrimaryController

    with PrimaryController(target.address, target.device, target.name) as controller:
        controller.await_ready()
        controller.take_control()
        controller.write([-replace(entity) for entity in target.leftovers], schema)
        controller.set_pipeline(target.program, schema)
        controller.write(target.entities)
