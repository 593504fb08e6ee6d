"""The six RPCs of p4.v1.P4Runtime, for any number of devices."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

import grpc  # type: ignore[import-untyped]
from finsy.proto import p4r

from ringleaf.errors import Code, ConfigError
from ringleaf.switches.engine.updates import DELETE, INSERT, MODIFY
from ringleaf.switches.server.device import Device
from ringleaf.switches.server.status import BatchError, batch_status, status_of
from ringleaf.switches.server.stream import Channel

API_VERSION = "1.5.0"
CHUNK = 256  # entities of one ReadResponse

_VERBS = {p4r.Update.INSERT: INSERT, p4r.Update.MODIFY: MODIFY, p4r.Update.DELETE: DELETE}


class Service:
    """Devices by their ids; each RPC holds the lock of its device."""

    def __init__(self, devices: Iterable[Device]) -> None:
        self._devices = {device.number: device for device in devices}

    @property
    def devices(self) -> list[Device]:
        return list(self._devices.values())

    def add(self, device: Device) -> None:
        self._devices[device.number] = device

    def remove(self, number: int) -> None:
        """Forget a device; streams to it stay until they end."""
        del self._devices[number]

    def find(self, number: int) -> Device:
        """Return a device; raise ConfigError (NOT_FOUND) if there is no such device."""
        if number not in self._devices:
            known = ", ".join(map(str, self._devices))
            raise ConfigError(f"no such device, got {number}; there are: {known}", Code.NOT_FOUND)
        return self._devices[number]

    def set_pipeline(self, request: Any) -> Any:
        device = self.find(request.device_id)
        with device.lock:
            device.controllers.check_primary(request)
            config = request.config if request.HasField("config") else None
            device.pipelines.set(request.action, config)
            device.digests.forget()
        return p4r.SetForwardingPipelineConfigResponse()

    def get_pipeline(self, request: Any) -> Any:
        device = self.find(request.device_id)
        with device.lock:
            config = device.pipelines.get(request.response_type)
        return p4r.GetForwardingPipelineConfigResponse(config=config)

    def write(self, request: Any) -> Any:
        device = self.find(request.device_id)
        with device.lock:
            device.controllers.check_primary(request)
            switch = device.writable()
            if request.atomicity != p4r.WriteRequest.CONTINUE_ON_ERROR:
                raise ConfigError(
                    f"batches are not atomic, got atomicity {request.atomicity}",
                    Code.UNIMPLEMENTED,
                )
            errors = [_attempt(switch.entities.write, update) for update in request.updates]
            # The next packet commits: large tables must not be laid out anew for each entry.
        if any(errors):
            raise BatchError("some updates were refused", errors)
        return p4r.WriteResponse()

    def read(self, request: Any) -> Iterator[Any]:
        device = self.find(request.device_id)
        found: list[Any] = []
        errors: list[ConfigError | None] = []
        with device.lock:
            read = device.writable().entities.read
            for entity in request.entities:
                try:
                    found.extend(read(entity))
                    errors.append(None)
                except ConfigError as exc:
                    errors.append(exc)
        for start in range(0, len(found), CHUNK):
            yield p4r.ReadResponse(entities=found[start : start + CHUNK])
        if any(errors):
            raise BatchError("some entities can't be read", errors)

    def stream(self, requests: Iterable[Any], context: Any) -> Iterator[Any]:
        channel = Channel(self.find)
        context.add_callback(channel.close)
        reader = threading.Thread(target=_receive, args=(channel, requests), daemon=True)
        reader.start()
        yield from channel.messages()

    def capabilities(self, request: Any) -> Any:
        if request.device_id:
            self.find(request.device_id)
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    def handlers(self) -> Any:
        """Return the RPC handlers for a gRPC server."""
        unary, answer_many = (
            grpc.unary_unary_rpc_method_handler,
            grpc.unary_stream_rpc_method_handler,
        )
        methods = {
            "Write": (unary, _unary(self.write), p4r.WriteRequest),
            "Read": (answer_many, _many(self.read), p4r.ReadRequest),
            "SetForwardingPipelineConfig": (
                unary,
                _unary(self.set_pipeline),
                p4r.SetForwardingPipelineConfigRequest,
            ),
            "GetForwardingPipelineConfig": (
                unary,
                _unary(self.get_pipeline),
                p4r.GetForwardingPipelineConfigRequest,
            ),
            "StreamChannel": (
                grpc.stream_stream_rpc_method_handler,
                _aborting(self.stream),
                p4r.StreamMessageRequest,
            ),
            "Capabilities": (unary, _unary(self.capabilities), p4r.CapabilitiesRequest),
        }
        return grpc.method_handlers_generic_handler(
            "p4.v1.P4Runtime",
            {
                name: kind(
                    method,
                    request_deserializer=request.FromString,
                    response_serializer=lambda message: message.SerializeToString(),
                )
                for name, (kind, method, request) in methods.items()
            },
        )


def _attempt(write: Callable[[str, Any], None], update: Any) -> ConfigError | None:
    """Try one update; return its error, if any."""
    try:
        if update.type not in _VERBS:
            raise ConfigError(f"update is neither insert nor modify nor delete, got {update.type}")
        write(_VERBS[update.type], update.entity)
    except ConfigError as exc:
        return exc
    return None


def _receive(channel: Channel, requests: Iterable[Any]) -> None:
    try:
        channel.receive(requests)
    except grpc.RpcError:
        channel.close()  # the controller is gone


def _unary(call: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a handler in which errors end the RPC with their status."""

    def handle(request: Any, context: Any) -> Any:
        try:
            return call(request)
        except ConfigError as exc:
            return context.abort(status_of(exc.code), str(exc))
        except BatchError as exc:
            return context.abort_with_status(batch_status(exc))

    return handle


def _many(call: Callable[[Any], Iterator[Any]]) -> Callable[[Any, Any], Iterator[Any]]:
    return _aborting(lambda request, context: call(request))


def _aborting(
    call: Callable[[Any, Any], Iterator[Any]],
) -> Callable[[Any, Any], Iterator[Any]]:
    @wraps(call)
    def handle(request: Any, context: Any) -> Iterator[Any]:
        try:
            yield from call(request, context)
        except ConfigError as exc:
            context.abort(status_of(exc.code), str(exc))
        except BatchError as exc:
            context.abort_with_status(batch_status(exc))

    return handle
