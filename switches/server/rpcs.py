"""The six RPCs of p4.v1.P4Runtime over gRPC: bytes in and out, within the limits of a server.

To gRPC each of them is a stream of bytes both ways, which looks the same to clients. So no message
is received before its caller is known, nor parsed before it is measured.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import grpc  # type: ignore[import-untyped]
from finsy.proto import p4r

from ringleaf.errors import ConfigError
from ringleaf.switches.server.calls import RunningRpc, ServerRpcs
from ringleaf.switches.server.limits import ServerLimits
from ringleaf.switches.server.messages import parse, parse_pipeline, split
from ringleaf.switches.server.service import Service
from ringleaf.switches.server.status import BatchError, batch_status, status_of
from ringleaf.switches.server.stream import Channel
from ringleaf.switches.server.worker import ServerThread

STRANGER_S = 0.002  # for each that is turned away: 500 a second take a tenth of a processor
LONGEST_DETAILS = 2000  # letters: clients take 8 KiB of metadata unless told otherwise
DENIED = (
    "this server wants metadata 'authorization: Bearer TOKEN'; its token is in the file that"
    " --token named"
)

Rpc = Callable[[RunningRpc], Awaitable[None]]

_END = object()


class Rpcs:
    """The RPCs of one server.

    Args:
        service: Their work.
        limits: The limits of clients.
        token: What each call must bring, as metadata `authorization: Bearer TOKEN`.
        calls: The open calls.
        worker: Does short work.
        loader: Does long work, which is to read and compile programs.
    """

    def __init__(
        self,
        service: Service,
        limits: ServerLimits,
        token: str | None,
        calls: ServerRpcs,
        worker: ServerThread,
        loader: ServerThread,
    ) -> None:
        self._service = service
        self._limits = limits
        self._authorization = None if token is None else f"Bearer {token}".encode()
        self._calls = calls
        self._worker = worker
        self._loader = loader
        self._strangers = 0  # who wait to be turned away

    def handlers(self) -> Any:
        """Return the RPC handlers for a gRPC server."""
        methods: dict[str, Rpc] = {
            "Write": self._write,
            "Read": self._read,
            "SetForwardingPipelineConfig": self._set_pipeline,
            "GetForwardingPipelineConfig": self._get_pipeline,
            "StreamChannel": self._stream,
            "Capabilities": self._capabilities,
        }
        return grpc.method_handlers_generic_handler(
            "p4.v1.P4Runtime",
            {
                name: grpc.stream_stream_rpc_method_handler(partial(self._handle, rpc))
                for name, rpc in methods.items()
            },
        )

    async def _handle(self, rpc: Rpc, _: Any, context: Any) -> None:
        """Carry out an RPC; errors end it with their status."""
        if not self._is_known(context):
            await self._turn_away(context)
        call = RunningRpc(self._calls, context)
        self._calls.enter(call)
        try:
            status = await _status(rpc, call)
        finally:
            self._calls.leave(call)
            call.close()
        if status is not None:
            # Not while the error is handled: its frames hold the request.
            await context.abort(*status)

    def _is_known(self, context: Any) -> bool:
        if self._authorization is None:
            return True
        token = dict(context.invocation_metadata() or ()).get("authorization", "")
        token = token if isinstance(token, bytes) else token.encode()
        return hmac.compare_digest(token, self._authorization)

    async def _turn_away(self, context: Any) -> None:
        """Abort a stranger's call, later the more of them there are, as each may call again."""
        self._strangers += 1
        try:
            if self._strangers < self._limits.calls:
                await asyncio.sleep(self._strangers * STRANGER_S)
        finally:
            self._strangers -= 1
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, DENIED)

    async def _write(self, call: RunningRpc) -> None:
        steps = self._writing(await call.request())
        while await self._step(call, steps) is not _END:
            pass
        await call.send(p4r.WriteResponse().SerializeToString())

    def _writing(self, data: bytes) -> Iterator[None]:
        request, updates = yield from split(data, p4r.WriteRequest, "updates", self._limits)
        yield from self._service.writing(request, updates)

    async def _read(self, call: RunningRpc) -> None:
        steps = self._reading(await call.request())
        while (answer := await self._step(call, steps)) is not _END:
            if answer is not None:
                await call.send(answer)

    def _reading(self, data: bytes) -> Iterator[bytes | None]:
        request, entities = yield from split(data, p4r.ReadRequest, "entities", self._limits)
        for answer in self._service.reading(request, entities):
            yield answer and answer.SerializeToString()

    async def _step(self, call: RunningRpc, steps: Iterator[Any]) -> Any:
        """Have the worker take the next step, after what is more urgent; `_END` after the last."""
        return await self._worker.do(partial(next, steps, _END), call.effort)

    async def _set_pipeline(self, call: RunningRpc) -> None:
        load = partial(self._load, [await call.request()])
        await call.send(await self._loader.do(load, call.effort))

    def _load(self, data: list[bytes]) -> bytes:
        """Set a pipeline; the request, in a list, is taken out of it, so that it can be freed."""
        request = parse_pipeline(data.pop(), self._limits)
        return bytes(self._service.set_pipeline(request).SerializeToString())

    async def _get_pipeline(self, call: RunningRpc) -> None:
        kind = p4r.GetForwardingPipelineConfigRequest
        async with call.effort.turn:
            await self._answer(call, kind, self._service.get_pipeline)

    async def _capabilities(self, call: RunningRpc) -> None:
        def encoded(request: Any) -> bytes:
            return bytes(self._service.capabilities(request).SerializeToString())

        await self._answer(call, p4r.CapabilitiesRequest, encoded)

    async def _answer(self, call: RunningRpc, kind: Any, work: Callable[[Any], bytes]) -> None:
        request = parse(await call.request(), kind, self._limits.entity_bytes)
        await call.send(await self._worker.do(partial(work, request), call.effort))

    async def _stream(self, call: RunningRpc) -> None:
        loop, ready = asyncio.get_running_loop(), asyncio.Event()

        def notify() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(ready.set)

        channel = Channel(self._service.find, self._limits, notify)
        room = asyncio.Event()
        listener = asyncio.create_task(self._listen(call, channel, room))
        try:
            while not channel.is_over:
                await ready.wait()
                ready.clear()
                await _send_all(call, channel, room)
            await _send_all(call, channel, room)
            channel.check()
        finally:
            listener.cancel()
            self._worker.submit(channel.close)

    async def _listen(self, call: RunningRpc, channel: Channel, room: asyncio.Event) -> None:
        """Take a controller's messages while it reads ours."""
        try:
            while (data := await call.receive()) is not None and not channel.is_over:
                if channel.is_primary and channel.device and not channel.device.is_compiled:
                    await self._loader.do(channel.device.compile)
                await self._worker.do(partial(channel.receive_data, data), call.effort)
                del data
                if channel.device:
                    self._calls.settle(call, lambda: channel.rank)
                while channel.is_full and not channel.is_over:
                    room.clear()
                    await room.wait()
        finally:
            self._worker.submit(channel.close)


async def _status(rpc: Rpc, call: RunningRpc) -> tuple[Any, ...] | None:
    """Carry out an RPC; return the arguments of `abort`, or None if all went well."""
    try:
        await rpc(call)
    except ConfigError as exc:
        return status_of(exc.code), str(exc)[:LONGEST_DETAILS]
    except BatchError as exc:
        status = batch_status(exc)
        return status.code, status.details, status.trailing_metadata
    except asyncio.CancelledError:
        if call.reason is None:
            raise  # the client is gone, or the server ends
        return grpc.StatusCode.RESOURCE_EXHAUSTED, call.reason
    return None


async def _send_all(call: RunningRpc, channel: Channel, room: asyncio.Event) -> None:
    while (data := channel.next_data()) is not None:
        await call.send(data)
        room.set()
