"""All hosts of a live network for one collective: a process each, watched until all are done."""

from __future__ import annotations

import select
import time
from collections.abc import Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self

from ringleaf.core.units import PS_PER_NS
from ringleaf.errors import BackendError
from ringleaf.networks.endpoints.operation import CollectiveOperation
from ringleaf.networks.live.host_process import CollectiveHost, HostTask, be_host
from ringleaf.networks.live.members import HostProcess, Members, death, hear, say
from ringleaf.networks.live.processor import Stopwatch
from ringleaf.networks.live.stalls import stalled
from ringleaf.networks.live.standstill import Moved, move_trees
from ringleaf.networks.live.surroundings import CrewSurroundings

START_AFTER_NS = 20_000_000  # time for every host to hear when to start
READY_S = 60.0
EXPLAIN_S = 5.0  # time in which a host that is not dead can say what it waits for
LOOK_S = 1.0  # how often to see whether there is progress


class HostCrew:
    """The processes of all hosts; use it as a context manager, for one `run`.

    Args:
        around: The network around them.
        task: What all hosts' processes share.
    """

    def __init__(self, around: CrewSurroundings, task: HostTask) -> None:
        self._around = around
        self._task = task
        self._forked = Members()
        self._members: list[HostProcess] = []
        self._poll = select.poll()
        self.start_ns = 0
        """The common start, by the monotonic clock."""
        self.moves: list[Moved] = []
        """The changes of trees."""

    def __enter__(self) -> Self:
        self._forked.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._forked.__exit__(kind, error, traceback)

    def run(
        self, operation: CollectiveOperation, stopwatch: Stopwatch, until_ps: int | None = None
    ) -> tuple[list[int], list[dict[str, Any]]]:
        """Run a collective; return the times of the hosts' results, and their counters.

        The stopwatch runs from the common start until the last rank has its result. If some have
        none by `until_ps`, hosts stop then.

        Returns:
            Picoseconds from the common start, none if hosts were stopped; and counters, in the
            hosts' order.

        Raises:
            BackendError: If a process ends too early, reports an error, or there is no progress
                any more.
        """
        for descriptor in self._around.watched:
            self._poll.register(descriptor, select.POLLIN)
        self._fork(operation)
        self._gather("ready", READY_S)
        self.start_ns = start_ns = time.monotonic_ns() + START_AFTER_NS
        self.tell({"start": start_ns})
        self._around.begin(start_ns)
        time.sleep(max(start_ns - time.monotonic_ns(), 0) / 1e9)  # as they do
        stopwatch.start()
        if self._around.trees is not None:
            self._poll.register(self._around.trees.call, select.POLLIN)
        until_s = None if until_ps is None else (start_ns + until_ps / PS_PER_NS) / 1e9
        finish = self._gather("finished", self._around.stall_s, until_s)
        stopwatch.stop()
        if self._around.trees is not None:
            self._poll.unregister(self._around.trees.call)
        self.tell({"stop": True})
        counters = self._gather("counters", READY_S)
        return finish, counters

    def _fork(self, operation: CollectiveOperation) -> None:
        for number, place in enumerate(self._around.places):
            make = partial(CollectiveHost, place, number, self._task, operation)
            member = self._forked.fork(place.name, "agent", partial(be_host, place, make))
            self._members.append(member)
            self._poll.register(member.control, select.POLLIN)
            self._poll.register(member.watch, select.POLLIN)

    @property
    def count(self) -> int:
        """The number of hosts."""
        return len(self._members)

    def hear(self, number: int) -> dict[str, Any]:
        """Return a host's next message.

        Raises:
            BackendError: If its process has ended, or has an error to report.
        """
        return hear(self._members[number])

    def tell(self, message: dict[str, Any]) -> None:
        """Send all hosts a message.

        Raises:
            BackendError: If a process has ended.
        """
        for member in self._members:
            try:
                say(member.control, message)
            except OSError:
                raise death(member) from None

    def _gather(self, kind: str, limit_s: float, until_s: float | None = None) -> list[Any]:
        """Wait until every host has sent a message of this kind; return them in hosts' order.

        There are none if some have not by `until_s` of the monotonic clock.

        Raises:
            BackendError: If there is no progress for `limit_s`, or a process ends.
        """
        heard = self._listen(kind, limit_s, until_s)
        if len(heard) < len(self._members) and until_s is not None:
            return []
        if len(heard) < len(self._members):
            raise self._stall(kind, heard, limit_s)
        return [heard[number] for number in range(len(self._members))]

    def _listen(self, kind: str, limit_s: float, until_s: float | None = None) -> dict[int, Any]:
        """Return hosts' messages, by number, once all have come or progress stops for `limit_s`.

        With `until_s`, a time of the monotonic clock, that is when to stop in place of the latter.
        """
        heard: dict[int, Any] = {}
        before, since = -1, time.monotonic()
        while len(heard) < len(self._members):
            left_s = LOOK_S if until_s is None else min(LOOK_S, until_s - time.monotonic())
            if left_s <= 0:
                break
            ready = {descriptor for descriptor, _ in self._poll.poll(1000 * left_s)}
            self._around.look(ready)
            if self._around.trees is not None and self._around.trees.call in ready:
                self._move_trees(kind, heard)
                continue
            for number, member in enumerate(self._members):
                if member.control.fileno() in ready or member.watch in ready:
                    message = hear(member)
                    if kind in message:
                        heard[number] = message[kind]
                    if "counters" in message:  # its last word
                        self._poll.unregister(member.control)
                        self._poll.unregister(member.watch)
            done = int(self._task.progress.sum())
            if done != before:
                before, since = done, time.monotonic()
            elif until_s is None and time.monotonic() - since > limit_s:
                break
        return heard

    def _move_trees(self, kind: str, heard: dict[int, Any]) -> None:
        """Have trees become others while hosts stand still; what they say besides is heard."""

        def note(number: int, message: dict[str, Any]) -> None:
            if kind in message:
                heard[number] = message[kind]

        assert self._around.trees is not None
        self.moves.append(move_trees(self._around.trees, self, note))

    def _stall(self, kind: str, heard: Mapping[int, Any], limit_s: float) -> BackendError:
        """Return an error that names the hosts that are not done, and those they wait for."""
        left = [number for number in range(len(self._members)) if number not in heard]
        self.tell({"explain": True})
        answers = self._listen("waits", EXPLAIN_S)
        names = {number: self._members[number].name for number in left}
        return stalled(kind, names, answers, self._around.explain(), s=limit_s)
