"""One controller's StreamChannel: arbitration, packets and digests (section 16)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from finsy.proto import p4r

from ringleaf.core.ethernet import LONGEST_PACKET
from ringleaf.core.units import format_count
from ringleaf.errors import Code, ConfigError
from ringleaf.switches.server.device import SharedDevice
from ringleaf.switches.server.limits import LIMITS, ServerLimits
from ringleaf.switches.server.messages import parse

FindDevice = Callable[[int], SharedDevice]

OVERHEAD = 256  # bytes of memory that a message takes beside its own


class Channel:
    """Takes a controller's messages, and keeps ours until they are sent; any thread may send.

    Args:
        find: Returns a device by its number.
        limits: Of these, `waiting_bytes` and `entity_bytes`.
        notify: Is called when there is something to send, from any thread.
    """

    def __init__(
        self,
        find: FindDevice,
        limits: ServerLimits = LIMITS,
        notify: Callable[[], None] = lambda: None,
    ) -> None:
        self._find = find
        self._limits = limits
        self._notify = notify
        self._device: SharedDevice | None = None
        self._lock = threading.Lock()
        self._out: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._error: ConfigError | None = None
        self.is_over = False

    @property
    def device(self) -> SharedDevice | None:
        """The device that it is for, from the first bid on."""
        return self._device

    @property
    def is_primary(self) -> bool:
        """Return whether the controller may write to its device."""
        device = self._device
        return device is not None and device.controllers.is_primary(self)

    @property
    def rank(self) -> int:
        """How much it matters, as `Controllers.rank` says."""
        device = self._device
        return device.controllers.rank(self) if device is not None and self.is_primary else 0

    @property
    def is_full(self) -> bool:
        """Whether so much waits that the controller should read before it sends more."""
        return self._waiting_bytes >= self._limits.waiting_bytes

    def send(self, message: Any) -> None:
        """Keep a message until it is sent.

        If too much waits, messages are dropped, and a controller that does not even read the
        outcome of elections loses its stream.
        """
        is_vital = message.WhichOneof("update") == "arbitration"
        # Packets and digests never take the room that outcomes of elections may need.
        most = self._limits.waiting_bytes * (2 if is_vital else 1)
        data = message.SerializeToString()
        with self._lock:
            fits = self._waiting_bytes + len(data) + OVERHEAD <= most
            if fits and not self.is_over:
                self._out.append(data)
                self._waiting_bytes += len(data) + OVERHEAD
        if is_vital and not fits:
            self._fail(
                ConfigError(
                    f"controller does not read, got {format_count(most, 'byte')} for it",
                    Code.RESOURCE_EXHAUSTED,
                )
            )
        self._notify()

    def next_data(self) -> bytes | None:
        """Return the next message to send, encoded; None if there is none now."""
        with self._lock:
            if not self._out:
                return None
            data = self._out.popleft()
            self._waiting_bytes -= len(data) + OVERHEAD
            return data

    def check(self) -> None:
        """Raise the error by which the stream ended, if any."""
        if self._error is not None:
            raise self._error

    def messages(self) -> Iterator[Any]:
        """Yield the messages that wait to be sent.

        Raises:
            ConfigError: After them, if the stream has ended by the controller's fault.
        """
        while (data := self.next_data()) is not None:
            yield p4r.StreamMessageResponse.FromString(data)
        self.check()

    def receive(self, requests: Iterable[Any]) -> None:
        """Take messages until there are no more; then, or at a fatal one, end the stream."""
        for request in requests:
            if not self.is_over:
                self._take(request)
        self.close()

    def receive_data(self, data: bytes) -> None:
        """Take an encoded message."""
        if self.is_over:
            return
        try:
            request = parse(data, p4r.StreamMessageRequest, self._limits.entity_bytes)
        except ConfigError as exc:
            self.send(_stream_error(exc, None, None))
        else:
            self._take(request)

    def close(self) -> None:
        """Leave the device; may be called more than once, from any thread."""
        device, self._device = self._device, None
        if device:
            with device.lock:
                if device.controllers.is_primary(self):
                    # The next primary controller has acknowledged none of the lists that this one
                    # was sent.
                    device.digests.forget()
                device.controllers.leave(self)
        self.is_over = True
        self._notify()

    def _fail(self, error: ConfigError) -> None:
        """End the stream with an error; whoever sends its messages then closes it."""
        self._error = self._error or error
        self.is_over = True
        self._notify()

    def _take(self, request: Any) -> None:
        kind = request.WhichOneof("update")
        if kind == "arbitration":
            try:
                self._arbitrate(request.arbitration)
            except ConfigError as exc:
                self._fail(exc)
            return
        try:
            self._act(kind, request)
        except ConfigError as exc:
            self.send(_stream_error(exc, kind, request))

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
    """Return the p4.v1.StreamError for a message that was wrong (section 16.6).

    It has the packet, but for one that no port would take.
    """
    message = p4r.StreamError(canonical_code=error.code, message=str(error))
    if kind == "packet":
        message.packet_out.SetInParent()
        if len(request.packet.payload) <= LONGEST_PACKET:
            message.packet_out.packet_out.CopyFrom(request.packet)
    elif kind == "digest_ack":
        message.digest_list_ack.digest_list_ack.CopyFrom(request.digest_ack)
    else:
        message.other.SetInParent()
    return p4r.StreamMessageResponse(error=message)
