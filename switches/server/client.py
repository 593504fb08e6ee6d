"""A controller of one switch, of any make: program and entities over P4Runtime."""

from __future__ import annotations

import queue
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc  # type: ignore[import-untyped]
from finsy import P4Schema, P4TableEntry
from finsy.p4schema import P4UpdateType
from finsy.proto import p4r, rpc_status

from ringleaf.errors import BackendError, Code

SERVICE = "/p4.v1.P4Runtime"
TIMEOUT_S = 60.0
BATCH = 1000  # updates of a write
_ELECTION = p4r.Uint128(low=1)
_NO_ANSWER = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE)


class PrimaryController:
    """The primary controller of a device, with election id 1; use it as a context manager.

    Args:
        address: HOST:PORT, or unix:PATH.
        device: Its id.
        name: Its name in errors.
    """

    def __init__(self, address: str, device: int, name: str) -> None:
        self._name = name
        self._device = device
        self._channel = grpc.insecure_channel(address)
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._schema: P4Schema | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._requests.put(None)
        self._channel.close()

    def await_ready(self, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until the server answers.

        It is asked what it can, which needs no election. Watching the channel instead would leave a
        thread of gRPC behind, which fails if the channel is closed soon.

        Raises:
            BackendError: If it doesn't.
        """
        method = self._method("Capabilities", p4r.CapabilitiesRequest, p4r.CapabilitiesResponse)
        try:
            method(p4r.CapabilitiesRequest(), timeout=timeout_s, wait_for_ready=True)
        except grpc.RpcError as exc:
            if exc.code() in _NO_ANSWER:
                message = f"{self._name}: not ready, got {timeout_s} s of silence"
                raise BackendError(message) from exc

    def take_control(self) -> None:
        """Become primary (P4Runtime section 5).

        Raises:
            BackendError: If another controller is.
        """
        arbitration = p4r.MasterArbitrationUpdate(device_id=self._device, election_id=_ELECTION)
        self._requests.put(p4r.StreamMessageRequest(arbitration=arbitration))
        stream = self._channel.stream_stream(
            f"{SERVICE}/StreamChannel",
            request_serializer=p4r.StreamMessageRequest.SerializeToString,
            response_deserializer=p4r.StreamMessageResponse.FromString,
        )
        self._stream = stream(_until_none(self._requests))
        try:
            status = next(self._stream).arbitration.status
        except grpc.RpcError as exc:
            raise BackendError(f"{self._name}: election: {_reason(exc)}") from exc
        if status.code:
            raise BackendError(
                f"{self._name}: another controller is primary, got {status.message!r}"
            )

    def set_pipeline(self, program: Path, schema: P4Schema) -> None:
        """Give it a program: tables are empty then, and registers zero.

        Raises:
            BackendError: If the switch refuses it.
        """
        self._schema = schema
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self._device,
            election_id=_ELECTION,
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=p4r.ForwardingPipelineConfig(
                p4info=schema.p4info, p4_device_config=program.read_bytes()
            ),
        )
        kind = p4r.SetForwardingPipelineConfigResponse
        self._call("SetForwardingPipelineConfig", request, kind)

    def write(self, entities: Any, schema: P4Schema | None = None) -> None:
        """Write P4Runtime entities, as `Switch.write` does.

        Args:
            entities: One, or several in order.
            schema: The running program's, if `set_pipeline` was not called before.

        Raises:
            BackendError: If the switch refuses one.
        """
        items = entities if isinstance(entities, Iterable) else [entities]
        known = schema or self._schema
        assert known is not None, "without P4Info nothing can be encoded"
        updates = [_with_verb(item).encode_update(known) for item in items]
        for start in range(0, len(updates), BATCH):
            request = p4r.WriteRequest(
                device_id=self._device,
                election_id=_ELECTION,
                updates=updates[start : start + BATCH],
            )
            self._call("Write", request, p4r.WriteResponse)

    def _call(self, name: str, request: Any, response: Any) -> Any:
        method = self._method(name, type(request), response)
        try:
            return method(request, timeout=TIMEOUT_S)
        except grpc.RpcError as exc:
            raise BackendError(f"{self._name}: {name}: {_reason(exc)}") from exc

    def _method(self, name: str, request: Any, response: Any) -> Any:
        return self._channel.unary_unary(
            f"{SERVICE}/{name}",
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )


def _reason(error: Any) -> str:
    """Return the message of an RPC's error; for a batch, that of the first refused update."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            details = rpc_status.Status.FromString(value).details
            for number, packed in enumerate(details, start=1):
                item = p4r.Error()
                if packed.Unpack(item) and item.canonical_code:
                    code = Code(item.canonical_code).name
                    return f"update {number} of {len(details)}: {code}: {item.message}"
    return f"{error.code().name}: {error.details()}"


def _until_none(items: queue.SimpleQueue[Any]) -> Iterator[Any]:
    return iter(items.get, None)


def _with_verb(entity: Any) -> Any:
    """Return an entity with a verb: P4Runtime has no bare entities.

    What a program has from the start, like meters and registers, is only ever modified.
    """
    if getattr(entity, "_update_type", None) != P4UpdateType.UNSPECIFIED:
        return entity
    is_default = isinstance(entity, P4TableEntry) and entity.is_default_action
    return ~entity if is_default else +entity
