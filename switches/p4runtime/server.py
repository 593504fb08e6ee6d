"""A gRPC server of P4Runtime."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

import grpc  # type: ignore[import-untyped]

from ringleaf.errors import BackendError
from switches.p4runtime.device import Device
from switches.p4runtime.service import Service

MOST_CALLS = 4096  # threads at most; each open stream keeps one, and they start when needed
POLL_S = 0.01
IDLE_EVERY = 10  # polls
LONGEST_MESSAGE = 256 << 20  # bytes: programs and batches may be large


class Server:
    """Serves devices at an address; use it as a context manager.

    Args:
        devices: To begin with.
        address: HOST:PORT; port 0 for any that is free.
        poll_s: How often to call the devices' `poll`; None if their owner does.
    """

    def __init__(
        self,
        devices: Iterable[Device],
        address: str = "127.0.0.1:0",
        *,
        poll_s: float | None = POLL_S,
    ) -> None:
        self._poll_s = poll_s
        self._service = Service(devices)
        self._address = address
        self._stop = threading.Event()
        self.port = 0  # that was taken

    @property
    def address(self) -> str:
        """Where to connect to."""
        host, _, _ = self._address.rpartition(":")
        return f"{host}:{self.port}"

    def __enter__(self) -> Self:
        self._server = grpc.server(
            ThreadPoolExecutor(MOST_CALLS, thread_name_prefix="p4runtime"),
            options=[
                ("grpc.so_reuseport", 0),  # or two servers would share the port
                ("grpc.max_receive_message_length", LONGEST_MESSAGE),
                ("grpc.max_send_message_length", LONGEST_MESSAGE),
            ],
        )
        self._server.add_generic_rpc_handlers((self._service.handlers(),))
        try:
            self.port = self._server.add_insecure_port(self._address)
        except RuntimeError as exc:
            raise BackendError(
                f"p4runtime: can't listen, got {self._address}; is something there already?"
            ) from exc
        self._server.start()
        self._ticker = threading.Thread(target=self._tick, daemon=True)
        self._ticker.start()
        return self

    def add(self, device: Device) -> None:
        self._service.add(device)

    def remove(self, number: int) -> None:
        self._service.remove(number)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._ticker.join()
        self._server.stop(grace=None).wait()

    def _tick(self) -> None:
        turn = 0
        while not self._stop.wait(self._poll_s):
            turn = (turn + 1) % IDLE_EVERY
            for device in self._service.devices:
                device.poll_digests()
                if not turn:
                    device.poll_idle()
