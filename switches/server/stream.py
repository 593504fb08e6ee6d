"""One controller's StreamChannel: arbitration, packets and digests (section 16)."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from finsy.proto import p4r

from ringleaf.errors import Code, ConfigError
from ringleaf.switches.server.device import Device

FindDevice = Callable[[int], Device]

MOST_WAITING = 10_000  # messages for a controller that is slow, or does not read


class Channel:
    """Takes a controller's messages on one thread, and sends it ours on another."""

    def __init__(self, find: FindDevice) -> None:
        self._find = find
        self._device: Device | None = None
        self._out: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def send(self, message: Any) -> None:
        """Queue a message; others than arbitration are dropped if too many wait."""
        if message.WhichOneof("update") == "arbitration" or self._out.qsize() < MOST_WAITING:
            self._out.put(message)

    def messages(self) -> Iterator[Any]:
        """Yield the messages to send, until the stream ends.

        Raises:
            ConfigError: If it ends by the controller's fault.
        """
        for message in iter(self._out.get, None):
            if isinstance(message, ConfigError):
                raise message
            yield message

    def receive(self, requests: Iterable[Any]) -> None:
        """Take messages until there are no more; then, or at a fatal one, end the stream."""
        try:
            for request in requests:
                self._take(request)
        except ConfigError as exc:
            self._out.put(exc)
        finally:
            self.close()

    def close(self) -> None:
        """Leave the device; may be called more than once, from any thread."""
        device, self._device = self._device, None
        if device:
            with device.lock:
                if device.controllers.is_primary(self):
                    device.digests.forget()
                device.controllers.leave(self)
        self._out.put(None)

    def _take(self, request: Any) -> None:
        kind = request.WhichOneof("update")
        if kind == "arbitration":
            self._arbitrate(request.arbitration)
            return
        try:
            self._act(kind, request)
        except ConfigError as exc:
            self._out.put(_stream_error(exc, kind, request))

    def _arbitrate(self, message: Any) -> None:
        device = self._device or self._find(message.device_id)
        if message.device_id != device.number:
            raise ConfigError(
                f"device of a stream never changes, got {message.device_id}",
                Code.FAILED_PRECONDITION,
            )
        with device.lock:
            device.controllers.arbitrate(self, message)
            self._device = device

    def _act(self, kind: str | None, request: Any) -> None:
        device = self._device
        if device is None or not device.controllers.is_primary(self):
            raise ConfigError(
                f"only the primary controller may send, got {kind}", Code.PERMISSION_DENIED
            )
        if kind == "packet":
            device.packet_out(request.packet)
        elif kind == "digest_ack":
            device.acknowledge(request.digest_ack.digest_id, request.digest_ack.list_id)
        else:
            raise ConfigError(f"message is not supported, got {kind}", Code.UNIMPLEMENTED)


def _stream_error(error: ConfigError, kind: str | None, request: Any) -> Any:
    """Return the p4.v1.StreamError for a message that was wrong (section 16.6)."""
    message = p4r.StreamError(canonical_code=error.code, message=str(error))
    if kind == "packet":
        message.packet_out.packet_out.CopyFrom(request.packet)
    elif kind == "digest_ack":
        message.digest_list_ack.digest_list_ack.CopyFrom(request.digest_ack)
    else:
        message.other.SetInParent()
    return p4r.StreamMessageResponse(error=message)
