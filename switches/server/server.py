"""A gRPC server of P4Runtime."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Self

from grpc import aio  # type: ignore[import-untyped]

from ringleaf.errors import BackendError, ConfigError
from ringleaf.switches.server.calls import ServerRpcs
from ringleaf.switches.server.device import SharedDevice
from ringleaf.switches.server.limits import LIMITS, ServerLimits
from ringleaf.switches.server.memory import give_back
from ringleaf.switches.server.rpcs import Rpcs
from ringleaf.switches.server.service import Service
from ringleaf.switches.server.worker import ServerThread

POLL_S = 0.01
IDLE_EVERY = 10  # polls
WATCH_S = 0.02
GIVE_BACK_EVERY = 25  # looks, as it may take some ms
LOOKAHEAD_BYTES = 16 << 10  # of a call that nobody reads yet
HANDSHAKE_MS = 5000

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def check_address(address: str, token: str | None) -> None:
    """Refuse to let everybody who can reach this machine write to its switches.

    Raises:
        ConfigError: If the address, without a token, would allow that.
    """
    host = address.rpartition(":")[0]
    if token is None and not _is_local(address) and host not in _LOOPBACK:
        raise ConfigError(
            f"p4runtime: listens beyond this machine only with a token, got {address!r};"
            " take 127.0.0.1, or say --token FILE"
        )


def _is_local(address: str) -> bool:
    return address.startswith("unix:")


@contextmanager
def _own_files(address: str) -> Iterator[None]:
    """Let a socket in the file system be created so that only this user can connect."""
    if not _is_local(address):
        yield
        return
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


class P4RuntimeServer:
    """Serves devices at an address; use it as a context manager.

    Args:
        devices: The devices at the start.
        address: HOST:PORT, port 0 for any that is free; or unix:PATH, a socket that this user's
            processes, and root's, can connect to.
        token: What each call must bring, as metadata `authorization: Bearer TOKEN`; None for
            nothing.
        poll_s: The time between polls of the devices; None if their owner polls them.
        limits: The limits of clients.
    """

    def __init__(
        self,
        devices: Iterable[SharedDevice],
        address: str = "127.0.0.1:0",
        *,
        poll_s: float | None = POLL_S,
        token: str | None = None,
        limits: ServerLimits = LIMITS,
    ) -> None:
        check_address(address, token)
        self._token = token
        self._poll_s = poll_s
        self._limits = limits
        self._service = Service(devices, limits)
        self._calls = ServerRpcs(limits)
        self._address = address
        self.port = 0  # the port that was chosen

    @property
    def address(self) -> str:
        """The address to connect to."""
        host, _, _ = self._address.rpartition(":")
        return self._address if _is_local(self._address) else f"{host}:{self.port}"

    def __enter__(self) -> Self:
        self._worker, self._loader = (
            ServerThread("p4runtime work"),
            ServerThread("p4runtime programs"),
        )
        started: Future[int] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(started)), name="p4runtime", daemon=True
        )
        self._thread.start()
        self.port = started.result()
        return self

    def add(self, device: SharedDevice) -> None:
        """Serve another device from now on."""
        self._service.add(device)

    def remove(self, number: int) -> None:
        """Serve the device with this number no more."""
        self._service.remove(number)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End all calls, and wait for that, but not longer than `farewell_s`."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(self._limits.farewell_s)
        for worker in (self._worker, self._loader):
            worker.stop(timeout_s=0.1)

    @property
    def has_ended(self) -> bool:
        """Whether no thread of it is left."""
        return not any(each.is_alive() for each in (self._thread, self._worker, self._loader))

    async def _serve(self, started: Future[int]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = aio.server(options=_options(self._limits))
        rpcs = Rpcs(
            self._service, self._limits, self._token, self._calls, self._worker, self._loader
        )
        server.add_generic_rpc_handlers((rpcs.handlers(),))
        try:
            with _own_files(self._address):
                port = server.add_insecure_port(self._address)
        except RuntimeError:
            started.set_exception(
                BackendError(
                    f"p4runtime: can't listen, got {self._address}; is something there already?"
                )
            )
            return
        await server.start()
        started.set_result(port)
        tasks = [asyncio.create_task(each) for each in (self._poll(), self._watch())]
        await self._stop.wait()
        for task in tasks:
            task.cancel()
        with suppress(TimeoutError):
            await asyncio.wait_for(server.stop(grace=None), self._limits.farewell_s / 2)

    async def _poll(self) -> None:
        """Poll the devices, if nobody else does."""
        while self._poll_s is not None:
            for turn in range(IDLE_EVERY):
                await asyncio.sleep(self._poll_s)
                await self._worker.do(partial(self._poll_devices, idle=not turn))

    def _poll_devices(self, *, idle: bool) -> None:
        for device in self._service.devices:
            device.poll_digests()
            if idle:
                device.poll_idle()

    async def _watch(self) -> None:
        """End calls that wait too long for their clients, or whose memory is needed."""
        memory, most = self._service.memory, self._limits.memory_bytes
        while True:
            for _ in range(GIVE_BACK_EVERY):
                await asyncio.sleep(WATCH_S)
                self._calls.end_slow()
                if memory.added > most and memory.in_use > most:
                    self._calls.relieve()
            if memory.added > most // 2:
                await self._worker.do(give_back)


def _options(limits: ServerLimits) -> list[tuple[str, int]]:
    return [
        ("grpc.so_reuseport", 0),  # or two servers would share the port
        ("grpc.max_receive_message_length", limits.message_bytes),
        ("grpc.max_send_message_length", 2 * limits.message_bytes),
        ("grpc.max_allowed_incoming_connections", limits.connections),
        ("grpc.compression_enabled_algorithms_bitset", 1),  # none: a few KiB may become GiB
        ("grpc.server.max_pending_requests", limits.calls),  # beyond, any calls are cancelled
        ("grpc.server.max_pending_requests_hard_limit", 2 * limits.calls),
        ("grpc.http2.lookahead_bytes", LOOKAHEAD_BYTES),
        ("grpc.http2.bdp_probe", 0),  # or it would look further ahead
        ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
    ]
