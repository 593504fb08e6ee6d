"""A gRPC server of P4Runtime."""

from __future__ import annotations

import hmac
import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import grpc  # type: ignore[import-untyped]

from ringleaf.errors import BackendError, ConfigError
from ringleaf.switches.server.device import Device
from ringleaf.switches.server.service import Service

MOST_CALLS = 4096  # threads at most; each open stream holds one; they start when needed
POLL_S = 0.01
IDLE_EVERY = 10  # polls
LONGEST_MESSAGE = 64 << 20  # bytes: programs and batches may be large

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


class _Doorkeeper(grpc.ServerInterceptor):  # type: ignore[misc]
    """Rejects calls that don't bring the token."""

    def __init__(self, token: str) -> None:
        self._wanted = f"Bearer {token}".encode()

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        handler = continuation(details)
        given = dict(details.invocation_metadata).get("authorization", "")
        given = given if isinstance(given, bytes) else given.encode()
        if handler is None or hmac.compare_digest(given, self._wanted):
            return handler
        kinds = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")
        there = {kind: _turn_away for kind in kinds if getattr(handler, kind) is not None}
        return handler._replace(**there)


def _turn_away(_: Any, context: Any) -> Any:
    context.abort(
        grpc.StatusCode.UNAUTHENTICATED,
        "this server wants metadata 'authorization: Bearer TOKEN'; its token is in the file that"
        " --token named",
    )


class Server:
    """Serves devices at an address; use it as a context manager.

    Args:
        devices: The devices at the start.
        address: HOST:PORT, port 0 for any that is free; or unix:PATH, a socket that this user's
            processes, and root's, can connect to.
        token: What each call must bring, as metadata `authorization: Bearer TOKEN`; None for
            nothing.
        poll_s: The time between polls of the devices; None if their owner polls them.
    """

    def __init__(
        self,
        devices: Iterable[Device],
        address: str = "127.0.0.1:0",
        *,
        poll_s: float | None = POLL_S,
        token: str | None = None,
    ) -> None:
        check_address(address, token)
        self._token = token
        self._poll_s = poll_s
        self._service = Service(devices)
        self._address = address
        self._stop = threading.Event()
        self.port = 0  # the port that was chosen

    @property
    def address(self) -> str:
        """The address to connect to."""
        host, _, _ = self._address.rpartition(":")
        return self._address if _is_local(self._address) else f"{host}:{self.port}"

    def __enter__(self) -> Self:
        self._server = grpc.server(
            ThreadPoolExecutor(MOST_CALLS, thread_name_prefix="p4runtime"),
            interceptors=[] if self._token is None else [_Doorkeeper(self._token)],
            options=[
                ("grpc.so_reuseport", 0),  # or two servers would share the port
                ("grpc.max_receive_message_length", LONGEST_MESSAGE),
                ("grpc.max_send_message_length", LONGEST_MESSAGE),
            ],
        )
        self._server.add_generic_rpc_handlers((self._service.handlers(),))
        try:
            with _own_files(self._address):
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
