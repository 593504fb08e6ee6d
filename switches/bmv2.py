"""BMv2's `simple_switch_grpc` as a switch to compare with: packets in, packets out.

Entities are written over P4Runtime; packets go through the data plane's own gRPC service, which
says to which packet an output belongs, so neither interfaces nor root are needed.
"""

from __future__ import annotations

import queue
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc  # type: ignore[import-untyped]
from finsy import P4Schema, P4TableEntry
from finsy.p4schema import P4UpdateType
from finsy.proto import p4r
from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)

from ringleaf.errors import BackendError

BINARY = "simple_switch_grpc"
COMMAND_LINE = "simple_switch_CLI"
CHUNK = 30  # packets at a time: a port's queue holds 64, and silently drops what is more
READY_TIMEOUT_S = 20.0
DEVICE = 1
PACKETS = "/p4.bm.DataplaneInterface/PacketStream"
P4RUNTIME = "/p4.v1.P4Runtime"

Out = list[tuple[int, bytes]]


def is_there() -> bool:
    """Whether BMv2 is on this machine, with P4Runtime and its command line."""
    return shutil.which(BINARY) is not None and shutil.which(COMMAND_LINE) is not None


def _packet_class() -> Any:
    """Return the message of `services/p4/bm/dataplane_interface.proto`, both ways alike."""
    file = descriptor_pb2.FileDescriptorProto(name="dataplane.proto", package="p4.bm")
    message = file.message_type.add(name="Packet")
    kinds = descriptor_pb2.FieldDescriptorProto
    for number, (name, kind) in enumerate(
        [
            ("id", kinds.TYPE_UINT64),
            ("device_id", kinds.TYPE_UINT64),
            ("port", kinds.TYPE_UINT32),
            ("packet", kinds.TYPE_BYTES),
        ],
        start=1,
    ):
        message.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p4.bm.Packet"))


_Packet = _packet_class()


class Bmv2:
    """A running BMv2 with one program; use it as a context manager.

    Args:
        path: BMv2 JSON.
        p4info: P4Info as text; without it, there is no P4Runtime, only the command line.
        files: Per port the stem of two pcap files: packets are read from STEM_in.pcap and written
            to STEM_out.pcap, instead of going through `process`.
        files_after_s: When it begins to read them; until then entries can be written.
    """

    def __init__(
        self,
        path: str | Path,
        p4info: str | Path | None,
        *,
        files: Mapping[int, Path] | None = None,
        files_after_s: int = 0,
    ) -> None:
        self._path = Path(path)
        self._schema = None if p4info is None else P4Schema(Path(p4info))
        self._files = files
        self._files_after_s = files_after_s

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="bmv2-")
        self._thrift_port = _free_port()
        self._process = subprocess.Popen(
            [
                BINARY,
                *("--device-id", str(DEVICE), "--thrift-port", str(self._thrift_port)),
                *("--log-file", str(Path(self._folder.name, "bmv2")), "-L", "off"),
                *self._file_options(),
                str(self._path),
                "--",
                *("--grpc-server-addr", self._address("p4runtime")),
                *self._dataplane_options(),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._control = grpc.insecure_channel(self.address)
        self._channel = grpc.insecure_channel(self._address("dataplane"))
        self._stream = self._channel.stream_stream(
            PACKETS,
            request_serializer=_Packet.SerializeToString,
            response_deserializer=_Packet.FromString,
        )
        self._arbitration: queue.SimpleQueue[Any] = queue.SimpleQueue()
        try:
            self._await_ready()
            if self._schema is not None:
                self._take_control()
        except (BackendError, grpc.RpcError) as exc:
            self.__exit__(None, None, None)
            raise BackendError(f"bmv2 {self._path.name}: does not start: {exc}") from exc
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._arbitration.put(None)
        self._control.close()
        self._channel.close()
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()

    def write(self, entities: Any) -> None:
        """Write P4Runtime entities, as `Switch.write` does.

        Raises:
            BackendError: If BMv2 refuses one.
        """
        items = entities if isinstance(entities, Iterable) else [entities]
        assert self._schema is not None, "P4Runtime needs P4Info"
        updates = [_with_verb(item).encode_update(self._schema) for item in items]
        request = p4r.WriteRequest(device_id=DEVICE, election_id=_ELECTION, updates=updates)
        try:
            self._call("Write", request, p4r.WriteResponse)
        except grpc.RpcError as exc:
            raise BackendError(f"bmv2 {self._path.name}: write: {exc}") from exc

    def process(self, packets: Sequence[tuple[int, bytes]]) -> list[Out]:
        """Send packets, each (port, bytes), in order; return what each has led to.

        Outputs of one packet are in order of their ports.
        """
        out: list[Out] = [[] for _ in packets]
        for start in range(0, len(packets), CHUNK):
            requests = [
                _Packet(id=number + 1, device_id=DEVICE, port=port, packet=data)
                for number, (port, data) in enumerate(packets[start:][:CHUNK], start)
            ]
            for response in self._stream(iter(requests)):
                out[response.id - 1].append((response.port, response.packet))
        return [sorted(outputs) for outputs in out]

    def read_registers(self, name: str) -> list[int]:
        """Return all cells of a register array of at most 64 bits."""
        text = self.command(f"register_read {name}")
        match = re.search(rf"{re.escape(name)}=\s*(.*)", text)
        if match is None:
            raise BackendError(f"bmv2 {self._path.name}: no register, got {text!r}")
        return [int(cell) for cell in match[1].split(",")]

    def command(self, *lines: str) -> str:
        """Return what lines of `simple_switch_CLI` print."""
        done = subprocess.run(
            [COMMAND_LINE, "--thrift-port", str(self._thrift_port)],
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    def _file_options(self) -> list[str]:
        if self._files is None:
            return []
        pairs = [part for port, stem in self._files.items() for part in ("-i", f"{port}@{stem}")]
        return [*pairs, "--use-files", str(self._files_after_s)]

    def _dataplane_options(self) -> list[str]:
        return ["--dp-grpc-server-addr", self._address("dataplane")] if self._files is None else []

    @property
    def address(self) -> str:
        """Where its P4Runtime server listens; our own controller there has election id 1."""
        return self._address("p4runtime")

    def _address(self, what: str) -> str:
        return f"unix:{Path(self._folder.name, what)}"

    def _await_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise BackendError(f"ended at once, got status {self._process.returncode}")
            try:
                self._probe()
            except (grpc.RpcError, grpc.FutureTimeoutError):
                time.sleep(0.05)  # its servers open one after another
            else:
                return
        raise BackendError(f"not ready, got {READY_TIMEOUT_S} s of silence")

    def _probe(self) -> None:
        grpc.channel_ready_future(self._control).result(timeout=READY_TIMEOUT_S)
        if self._files is None:
            list(self._stream(iter(())))

    def _take_control(self) -> None:
        """Become primary (P4Runtime section 5), and say which P4Info the program has."""
        assert self._schema is not None
        arbitration = p4r.MasterArbitrationUpdate(device_id=DEVICE, election_id=_ELECTION)
        self._arbitration.put(p4r.StreamMessageRequest(arbitration=arbitration))
        stream = self._control.stream_stream(
            f"{P4RUNTIME}/StreamChannel",
            request_serializer=p4r.StreamMessageRequest.SerializeToString,
            response_deserializer=p4r.StreamMessageResponse.FromString,
        )
        self._mastership = stream(_until_none(self._arbitration))
        next(self._mastership)
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=DEVICE,
            election_id=_ELECTION,
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=p4r.ForwardingPipelineConfig(
                p4info=self._schema.p4info, p4_device_config=self._path.read_bytes()
            ),
        )
        kind = p4r.SetForwardingPipelineConfigResponse
        self._call("SetForwardingPipelineConfig", request, kind)

    def _call(self, name: str, request: Any, response: Any) -> Any:
        method = self._control.unary_unary(
            f"{P4RUNTIME}/{name}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString,
        )
        return method(request, timeout=READY_TIMEOUT_S)


_ELECTION = p4r.Uint128(low=1)


def _until_none(items: queue.SimpleQueue[Any]) -> Iterator[Any]:
    return iter(items.get, None)


def _with_verb(entity: Any) -> Any:
    """Return an entity that says what is to be done: P4Runtime has no bare ones."""
    if entity._update_type != P4UpdateType.UNSPECIFIED:
        return entity
    is_default = isinstance(entity, P4TableEntry) and entity.is_default_action
    return ~entity if is_default else +entity


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
