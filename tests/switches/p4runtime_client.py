"""A plain P4Runtime client, which sends whatever it is told, right or wrong."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

import grpc  # type: ignore[import-untyped]
from finsy.proto import U128, p4r, p4r_grpc, rpc_status

from ringleaf.errors import Code

PATIENCE_S = 20.0
INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE


class Client:
    """One controller: its calls, and the stream by which it is elected."""

    def __init__(self, address: str, device: int = 1, election_id: int | None = 1) -> None:
        self.device = device
        self.election_id = election_id
        self._channel = grpc.insecure_channel(address)
        self.stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._stream: Any = None

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

    # The stream.

    def send(self, **update: Any) -> None:
        if self._stream is None:
            requests: Iterator[Any] = iter(self._requests.get, None)
            self._stream = self.stub.StreamChannel(requests, timeout=PATIENCE_S)
        self._requests.put(p4r.StreamMessageRequest(**update))

    def receive(self) -> Any:
        return next(self._stream)

    def leave(self) -> None:
        """End the stream, and wait until the server has, too."""
        self._requests.put(None)
        for _ in self._stream:
            pass
        self._stream = None
        self._requests = queue.SimpleQueue()

    def bid(self, election_id: int | None, *, role: Any = None, device: int | None = None) -> Any:
        """Ask to be elected; return the answer."""
        self.election_id = election_id
        update = p4r.MasterArbitrationUpdate(
            device_id=self.device if device is None else device,
            role=role,
            election_id=None if election_id is None else U128.encode(election_id),
        )
        self.send(arbitration=update)
        return self.receive().arbitration

    # Calls.

    def set_pipeline(self, action: str, config: Any = None) -> None:
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device,
            election_id=self._election(),
            action=action,
            config=config,
        )
        self.stub.SetForwardingPipelineConfig(request, timeout=PATIENCE_S)

    def get_pipeline(self, kind: str = "ALL") -> Any:
        request = p4r.GetForwardingPipelineConfigRequest(device_id=self.device, response_type=kind)
        return self.stub.GetForwardingPipelineConfig(request, timeout=PATIENCE_S)

    def write(self, *updates: tuple[int, Any], **more: Any) -> None:
        """Write (type, entity) pairs."""
        request = p4r.WriteRequest(
            device_id=self.device,
            election_id=self._election(),
            updates=[p4r.Update(type=kind, entity=entity) for kind, entity in updates],
            **more,
        )
        self.stub.Write(request, timeout=PATIENCE_S)

    def read(self, *entities: Any) -> list[Any]:
        request = p4r.ReadRequest(device_id=self.device, entities=entities)
        responses = self.stub.Read(request, timeout=PATIENCE_S)
        return [entity for response in responses for entity in response.entities]

    def write_codes(self, *updates: tuple[int, Any]) -> list[int]:
        """Write; return the code of each update."""
        try:
            self.write(*updates)
        except grpc.RpcError as error:
            return codes_of(error)
        return [0] * len(updates)

    def read_codes(self, *entities: Any) -> list[int]:
        try:
            self.read(*entities)
        except grpc.RpcError as error:
            return codes_of(error)
        return [0] * len(entities)

    def _election(self) -> Any:
        return None if self.election_id is None else U128.encode(self.election_id)


def codes_of(error: Any) -> list[int]:
    """Return the code of each item of a batch that was refused."""
    assert error.code() is grpc.StatusCode.UNKNOWN, error
    (packed,) = [value for key, value in error.trailing_metadata() if key.endswith("-bin")]
    status = rpc_status.Status.FromString(packed)
    assert (status.code, status.message) == (Code.UNKNOWN, error.details())
    return [_unpack(detail).canonical_code for detail in status.details]


def _unpack(detail: Any) -> Any:
    error = p4r.Error()
    assert detail.Unpack(error)
    assert error.canonical_code or not error.message
    return error


def sorted_messages(messages: Sequence[Any]) -> list[bytes]:
    """Return messages so that two lists of them compare, whatever their order."""
    return sorted(message.SerializeToString(deterministic=True) for message in messages)
