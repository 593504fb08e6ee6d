"""The work of P4Runtime's RPCs, for any number of devices, without gRPC.

Long work is a generator, each step of which takes a slice of time and the device's lock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from finsy.proto import p4r

from ringleaf.errors import Code, ConfigError
from ringleaf.switches.engine.updates import DELETE, INSERT, MODIFY
from ringleaf.switches.server.device import SharedDevice
from ringleaf.switches.server.limits import LIMITS, ServerLimits
from ringleaf.switches.server.memory import ProcessMemory
from ringleaf.switches.server.status import BatchOutcome

API_VERSION = "1.5.0"
CHUNK = 256  # entities of one ReadResponse
FIRST_SLICE_S = 0.00025  # of a call; later ones are longer, up to the limit
CHUNK_BYTES = 256 << 10  # clients take 4 MiB unless told otherwise

_Request = p4r.SetForwardingPipelineConfigRequest
_LEAVE_RUNNING = (_Request.VERIFY, _Request.VERIFY_AND_SAVE)  # the pipeline goes on as it is
_VERBS = {p4r.Update.INSERT: INSERT, p4r.Update.MODIFY: MODIFY, p4r.Update.DELETE: DELETE}


class Service:
    """Devices by their ids; each RPC takes the lock of its device, a slice at a time.

    Args:
        devices: The devices at the start.
        limits: Of these, the time of a slice, and what clients' entries may take.
    """

    def __init__(self, devices: Iterable[SharedDevice], limits: ServerLimits = LIMITS) -> None:
        self._devices = {device.number: device for device in devices}
        self._limits = limits
        self.memory = ProcessMemory(limits.state_bytes)

    @property
    def devices(self) -> list[SharedDevice]:
        """Return the devices that are served now."""
        return list(self._devices.values())

    def add(self, device: SharedDevice) -> None:
        """Serve a device, in place of the former one with its number."""
        self._devices[device.number] = device

    def remove(self, number: int) -> None:
        """Forget a device; streams to it stay until they end."""
        del self._devices[number]

    def find(self, number: int) -> SharedDevice:
        """Return a device; raise ConfigError (NOT_FOUND) if there is no such device."""
        if number not in self._devices:
            known = ", ".join(map(str, self._devices))
            raise ConfigError(f"no such device, got {number}; there are: {known}", Code.NOT_FOUND)
        return self._devices[number]

    def set_pipeline(self, request: Any) -> Any:
        """Carry out a SetForwardingPipelineConfigRequest; it is read without the device's lock.

        Raises:
            ConfigError: If the client may not, or the program can't be run.
        """
        device = self.find(request.device_id)

        def permit() -> None:
            device.controllers.check_primary(request)
            self.memory.check_now("a program")

        with device.lock:
            permit()
        config = request.config if request.HasField("config") else None
        device.pipelines.set(request.action, config, permit)
        if request.action not in _LEAVE_RUNNING:
            with device.lock:
                device.digests.forget()
        return p4r.SetForwardingPipelineConfigResponse()

    def get_pipeline(self, request: Any) -> bytes:
        """Return a GetForwardingPipelineConfigResponse, encoded."""
        device = self.find(request.device_id)
        with device.lock:
            return device.pipelines.get_encoded(request.response_type)

    def write(self, request: Any) -> Any:
        """Carry out a WriteRequest.

        Raises:
            ConfigError: If the client may not write.
            BatchError: If updates were refused.
        """
        for _ in self.writing(request, request.updates):
            pass
        return p4r.WriteResponse()

    def writing(self, request: Any, updates: Iterable[Any]) -> Iterator[None]:
        """Carry out updates of a request a slice at a time: others use the device in between.

        Batches are not atomic. If the client stops being the primary, the rest is refused.
        """
        device = self.find(request.device_id)
        outcome = BatchOutcome()
        left = iter(updates)
        goes_on, slice_s = True, FIRST_SLICE_S
        while goes_on:
            with device.lock:
                device.controllers.check_primary(request)
                switch = device.writable()
                _check_atomicity(request)
                write = switch.entities.write
                goes_on = _take(self._attempts(write, left, outcome), slice_s)
                slice_s = min(2 * slice_s, self._limits.slice_s)
                # The next packet commits: large tables must not be laid out for each entry.
            yield
        outcome.check("some updates were refused")

    def read(self, request: Any) -> Iterator[Any]:
        """Carry out a ReadRequest.

        Raises:
            ConfigError: If there is nothing to read.
            BatchError: After all answers, if entities can't be read.
        """
        return (answer for answer in self.reading(request, request.entities) if answer is not None)

    def reading(self, request: Any, entities: Iterable[Any]) -> Iterator[Any]:
        """Read a slice at a time: yield an answer, or None after a slice that found nothing.

        Others use the device in between, so an answer is of one moment, and all of them are not.
        """
        device = self.find(request.device_id)
        outcome = BatchOutcome()
        with device.lock:
            selected = _selected(device.writable().entities.search, iter(entities), outcome)
        goes_on, slice_s = True, FIRST_SLICE_S
        while goes_on:
            answer = p4r.ReadResponse()
            with device.lock:
                goes_on = _take(_gather(selected, answer.entities), slice_s)
            slice_s = min(2 * slice_s, self._limits.slice_s)
            yield answer if answer.entities else None
        outcome.check("some entities can't be read")

    def _attempts(
        self, write: Callable[[str, Any], None], updates: Iterator[Any], outcome: BatchOutcome
    ) -> Iterator[bool]:
        """Try updates, a step each; yield whether to stop, which is never."""
        for update in updates:
            outcome.add(self._attempt(write, update))
            yield False

    def _attempt(self, write: Callable[[str, Any], None], update: Any) -> ConfigError | None:
        """Try one update; return its error, if any, or the error that it is."""
        try:
            if isinstance(update, ConfigError):
                return update
            if update.type not in _VERBS:
                got = update.type
                raise ConfigError(f"update is neither insert nor modify nor delete, got {got}")
            if update.type != p4r.Update.DELETE:
                self.memory.check("an update")
            write(_VERBS[update.type], update.entity)
        except ConfigError as exc:
            return exc
        return None

    def capabilities(self, request: Any) -> Any:
        """Answer the Capabilities RPC with the version of P4Runtime that is served."""
        if request.device_id:
            self.find(request.device_id)
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)


def _take(steps: Iterator[bool], slice_s: float) -> bool:
    """Take steps until one says so or time is over; return whether there may be more."""
    end_s = time.monotonic() + slice_s
    return any(full or time.monotonic() >= end_s for full in steps)


def _check_atomicity(request: Any) -> None:
    if request.atomicity != p4r.WriteRequest.CONTINUE_ON_ERROR:
        raise ConfigError(
            f"batches are not atomic, got atomicity {request.atomicity}", Code.UNIMPLEMENTED
        )


def _selected(
    search: Callable[[Any], Iterator[Any]], entities: Iterator[Any], outcome: BatchOutcome
) -> Iterator[Any]:
    """Yield what each of the entities selects, and None for steps that found nothing."""
    for entity in entities:
        try:
            if isinstance(entity, ConfigError):
                raise entity
            yield from search(entity)
            outcome.add(None)
        except ConfigError as exc:
            outcome.add(exc)
        yield None


def _gather(selected: Iterator[Any], answer: Any) -> Iterator[bool]:
    """Put entities into an answer, a step each; yield whether it is full."""
    size = 0
    for entity in selected:
        if entity is not None:
            answer.append(entity)
            size += entity.ByteSize()
        yield len(answer) >= CHUNK or size >= CHUNK_BYTES
