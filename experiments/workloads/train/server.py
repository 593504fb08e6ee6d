"""The fabric's side of the sockets: hears ranks, one after the other, and answers them."""

from __future__ import annotations

import os
import selectors
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringleaf.core.tensors import Array
from ringleaf.core.units import format_count
from ringleaf.errors import BackendError, ConfigError, ProtocolError
from ringleaf.experiments.workloads.train import wire
from ringleaf.experiments.workloads.train.calls import read_call
from ringleaf.experiments.workloads.train.fabric import CallDone, TrainingRanks
from ringleaf.experiments.workloads.train.parts import CallError, RankCall
from ringleaf.experiments.workloads.train.trace import GrowingTrace

BEAT_S = 0.5
"""Time between looks at ranks that say nothing."""

Note = Callable[[int, list[Any]], None]
"""Takes what a rank notes: the rank, and the note."""


Look = Callable[[Sequence[int], int], None]


class RankError(BackendError):
    """A rank has died, or says nothing any more."""


@dataclass(slots=True)
class _Line:
    """A connection."""

    socket: socket.socket
    unpacker: wire.Unpacker = field(default_factory=wire.Unpacker)
    rank: int = -1  # before it has said hello
    heard_s: float = 0.0  # when it has last said something


class FabricServer:
    """Sockets of ranks, and the fabric that they talk to.

    Args:
        folder: A folder of this user's for the socket and ranks' shared memory.
        ranks: The number of ranks.
        fabric: The fabric.
        stall_s: The time for which a rank may neither say anything nor work.
        start_s: The time that ranks have for their first word.
        note: Takes what ranks note.
        look: Called with the ranks that have ended, and with one that has gone, or -1; raises an
            error if one has failed.
        settings: What ranks are told when they come.
        trace: Takes what ranks do; None: nobody does.
    """

    def __init__(
        self,
        folder: Path,
        ranks: int,
        fabric: TrainingRanks,
        *,
        stall_s: float,
        start_s: float,
        note: Note,
        look: Look,
        settings: Mapping[str, Any],
        trace: GrowingTrace | None = None,
    ) -> None:
        self._fabric = fabric
        self._ranks = ranks
        self._stall_s = stall_s
        self._start_s = start_s
        self._note = note
        self._look = look
        self._settings = settings
        self._trace = trace
        self._handlers: dict[str, Callable[..., None]] = {
            wire.JOIN: self._join,
            wire.CALL: self._call,
            wire.WAIT: self._wait,
            wire.END: self._end,
        }
        self._lines: dict[int, _Line] = {}  # by rank
        self._began_s = time.monotonic()
        self._buffers = wire.SharedBuffers(folder)
        self._selector = selectors.DefaultSelector()
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._door.bind(str(folder / wire.SOCKET))
        os.chmod(folder / wire.SOCKET, 0o600)
        self._door.listen(ranks)
        self._selector.register(self._door, selectors.EVENT_READ)

    def buffer(self, rank: int, name: str) -> Array:
        """Return a rank's buffer."""
        return self._buffers.buffer(rank, int(name))

    def converse(self, stuck: bool) -> None:
        """Tell ranks the fabric's answers, and hear them, until none is running.

        If `stuck`, hear one word at least.

        Raises:
            CallError: If what a rank calls does not fit what others call.
            RankError: If a rank has gone, or does nothing any more.
        """
        self._answer()
        deadline_s = time.monotonic() + self._stall_s
        while self._fabric.running or stuck:
            heard = self._hear()
            if heard:
                stuck = False
            elif stuck and time.monotonic() > deadline_s:
                raise CallError(self._fabric.deadlock())
            self._answer()

    def abort(self, message: str, *, by_a_rank: bool) -> None:
        """Tell all ranks that the run ends, why, and whether one of them is the reason."""
        for line in self._lines.values():
            self._send(line, [wire.ABORT, message, by_a_rank])

    def close(self) -> None:
        """Close all sockets."""
        for line in self._lines.values():
            line.socket.close()
        self._selector.close()
        self._door.close()

    def _hear(self) -> bool:
        """Hear what ranks say now, or within a beat; return whether it was anything."""
        events = self._selector.select(BEAT_S)
        heard = False
        for key, _ in events:
            if key.fileobj is self._door:
                self._greet()
            else:
                heard |= self._read(key.data)
        if not events:
            self._look(self._fabric.ended, -1)
            self._watch()
        return heard

    def _greet(self) -> None:
        connection, _ = self._door.accept()
        self._selector.register(connection, selectors.EVENT_READ, _Line(connection))

    def _read(self, line: _Line) -> bool:
        try:
            data = line.socket.recv(1 << 20)
        except ConnectionError:
            data = b""
        if not data:
            self._selector.unregister(line.socket)
            self._lose(line)
            return False
        line.heard_s = time.monotonic()
        changes = [self._take(line, message) for message in line.unpacker.feed(data)]
        return any(changes)

    def _lose(self, line: _Line) -> None:
        """Handle the end of a connection, which is an error before the rank has ended."""
        line.socket.close()
        known = self._lines.pop(line.rank, None)
        if known is None or line.rank in self._fabric.ended:
            return
        self._look(self._fabric.ended, line.rank)  # who has started it may know more
        raise RankError(
            f"rank {line.rank}: ended without a last word, {self._fabric.plight(line.rank)}; its "
            "own output says why"
        )

    def _take(self, line: _Line, message: wire.Message) -> bool:
        """Take a message; return whether the fabric has learned anything."""
        name, *rest = message
        try:
            if name == wire.HELLO:
                self._welcome(line, *rest)
            elif line.rank < 0:
                raise ProtocolError(f"rank: must say hello first, got {name!r}")
            elif name == wire.NOTE:
                self._note(line.rank, rest)
            elif name in self._handlers:
                self._handlers[name](line.rank, *rest)
            elif name != wire.ALIVE:
                raise ProtocolError(f"rank {line.rank}: unknown message, got {name!r}")
        except (TypeError, ValueError) as error:
            raise ProtocolError(
                f"rank {line.rank}: {name} not understood, got {rest!r:.200}"
            ) from error
        return name not in (wire.NOTE, wire.ALIVE)

    def _join(self, rank: int, group: str, ranks: Sequence[int]) -> None:
        members = [int(each) for each in ranks]
        self._fabric.join(rank, str(group), members)
        if self._trace is not None:
            self._trace.join(str(group), members)

    def _call(
        self, rank: int, number: int, group: str, made_ps: int, now_ps: int, buffer: int, plain: Any
    ) -> None:
        call = read_call(plain)
        rank_call = RankCall(rank, int(number), call, int(made_ps), str(int(buffer)))
        self._fabric.call(str(group), rank_call)
        if self._trace is not None:
            self._trace.call(rank, int(number), str(group), call, (int(made_ps), int(now_ps)))

    def _wait(self, rank: int, *arguments: Any) -> None:
        awaited, watched, now_ps, until_ps, is_soft, quietly = arguments
        if self._trace is not None:
            self._trace.wait(rank, [*awaited, *watched], int(now_ps), quietly=bool(quietly))
        self._fabric.wait(
            rank,
            awaited,
            int(now_ps),
            watched=watched,
            until_ps=int(until_ps),
            is_soft=bool(is_soft),
        )

    def _end(self, rank: int, now_ps: int) -> None:
        self._fabric.end(rank, int(now_ps))
        if self._trace is not None:
            self._trace.end(rank, int(now_ps))

    def _welcome(self, line: _Line, rank: int, ranks: int) -> None:
        if ranks != self._ranks or not 0 <= rank < ranks:
            raise ConfigError(
                f"rank {rank}: the fabric is for {format_count(self._ranks, 'rank')}, got a "
                f"world of {ranks}; say --ranks {ranks}"
            )
        if rank in self._lines:
            raise ConfigError(f"rank {rank}: must say hello once, got a second connection")
        line.rank = rank
        self._lines[rank] = line
        self._send(line, [wire.WELCOME, self._settings])

    def _watch(self) -> None:
        """Raise an error if a rank that is running does nothing."""
        now_s = time.monotonic()
        for rank in self._fabric.running:
            line = self._lines.get(rank)
            if line is None:
                if now_s - self._began_s > self._start_s:
                    raise RankError(
                        f"rank {rank}: must begin within {self._start_s:g} s, got no word; does "
                        "its script call init_process_group?"
                    )
            elif now_s - line.heard_s > self._stall_s:
                raise RankError(
                    f"rank {rank}: must say or compute something within {self._stall_s:g} s, got "
                    f"nothing; {self._fabric.plight(rank)}; a longer --stall waits longer"
                )

    def _answer(self) -> None:
        """Tell ranks what the fabric has for them, each rank's answers in one piece."""
        texts: dict[int, list[bytes]] = {}
        for answer in self._fabric.take_answers():
            if self._trace is not None:
                self._trace.answer(answer)
            message = (
                [wire.DONE, answer.number, answer.now_ps, answer.source]
                if isinstance(answer, CallDone)
                else [wire.GO, answer.clock_ps]
            )
            texts.setdefault(answer.rank, []).append(wire.pack(message))
        for rank, frames in texts.items():
            line = self._lines.get(rank)
            if line is not None:
                self._send_bytes(line, b"".join(frames))

    def _send(self, line: _Line, message: wire.Message) -> None:
        self._send_bytes(line, wire.pack(message))

    def _send_bytes(self, line: _Line, data: bytes) -> None:
        with suppress(OSError):  # its end is noticed when it is read from
            line.socket.sendall(data)
