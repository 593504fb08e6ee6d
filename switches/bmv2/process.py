"""BMv2's `simple_switch_grpc` as a switch to compare with: packets in, packets out.

Entities are written over P4Runtime; packets go through the data plane's own gRPC service, which
says to which packet an output belongs, so neither interfaces nor root are needed.
"""

from __future__ import annotations

import re
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc  # type: ignore[import-untyped]
from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)

from ringleaf.errors import BackendError
from ringleaf.switches.bmv2.binaries import BINARY, COMMAND_LINE
from ringleaf.switches.bmv2.namespace import alone, beside
from ringleaf.switches.p4runtime.finsy_entities import make_schema, read_p4info
from ringleaf.switches.server.client import PrimaryController

CHUNK = 30  # packets at a time: a port's queue holds 64, and silently drops any more
PRIORITY_QUEUES = 8  # as many as v1model's three bits can name; without, it drops all but 0
READY_TIMEOUT_S = 20.0
_PROBE_S = 0.2  # until it is looked whether the process has ended
END_TIMEOUT_S = 10.0
DEVICE = 1
PACKETS = "/p4.bm.DataplaneInterface/PacketStream"

Out = list[tuple[int, bytes]]


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
        files_after_s: The time after which it begins to read them; until then entries can be
            written.
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
        self._schema = None if p4info is None else make_schema(read_p4info(Path(p4info)))
        self._files = files
        self._files_after_s = files_after_s

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="bmv2-")
        self._thrift_port = free_port()
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                alone(
                    BINARY,
                    *("--device-id", str(DEVICE), "--thrift-port", str(self._thrift_port)),
                    *("--log-file", str(Path(self._folder.name, "bmv2")), "-L", "off"),
                    *self._file_options(),
                    str(self._path),
                    "--",
                    *("--grpc-server-addr", self._address("p4runtime")),
                    *("--priority-queues", str(PRIORITY_QUEUES)),
                    *self._dataplane_options(),
                ),
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        self._controller = PrimaryController(self.address, DEVICE, f"bmv2 {self._path.name}")
        self._channel = grpc.insecure_channel(self._address("dataplane"))
        self._stream = self._channel.stream_stream(
            PACKETS,
            request_serializer=_Packet.SerializeToString,
            response_deserializer=_Packet.FromString,
        )
        with ExitStack() as stack:
            # Python does not call `__exit__` when `__enter__` fails, and the process must end then,
            # too.
            stack.push(self)
            try:
                self._await_ready()
                if self._schema is not None:
                    self._controller.take_control()
                    self._controller.set_pipeline(self._path, self._schema)
            except (BackendError, grpc.RpcError) as exc:
                raise BackendError(f"bmv2 {self._path.name}: does not start: {exc}") from exc
            stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._controller.__exit__(None, None, None)
            self._channel.close()
        finally:
            self._end()

    def _end(self) -> None:
        """End the process, whatever it does, and remove its files."""
        self._process.terminate()
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def write(self, entities: Any) -> None:
        """Write P4Runtime entities, as `Switch.write` does.

        Raises:
            BackendError: If BMv2 refuses one.
        """
        self._controller.write(entities)

    def process(
        self, packets: Sequence[tuple[int, bytes]], *, timeout_s: float | None = None
    ) -> list[Out]:
        """Send packets, each (port, bytes), in order; return the outputs of each.

        Outputs of one packet are in order of their ports.

        Args:
            packets: The packets; none may be empty, as BMv2 does not take such packets.
            timeout_s: The longest time that `CHUNK` of them may be under way.

        Raises:
            BackendError: If BMv2 ends, or does not finish in time.
        """
        try:
            return self._stream_all(packets, timeout_s)
        except grpc.RpcError as exc:
            raise BackendError(f"bmv2 {self._path.name}: {self._why(exc)}") from exc

    def _stream_all(
        self, packets: Sequence[tuple[int, bytes]], timeout_s: float | None
    ) -> list[Out]:
        out: list[Out] = [[] for _ in packets]
        for start in range(0, len(packets), CHUNK):
            requests = [
                _Packet(id=number + 1, device_id=DEVICE, port=port, packet=data)
                for number, (port, data) in enumerate(packets[start:][:CHUNK], start)
            ]
            for response in self._stream(iter(requests), timeout=timeout_s):
                out[response.id - 1].append((response.port, response.packet))
        # BMv2 works on copies for different ports in any order.
        return [sorted(outputs) for outputs in out]

    def read_registers(self, name: str) -> list[int]:
        """Return all cells of a register array of at most 64 bits."""
        text = self.command(f"register_read {name}")
        match = re.search(rf"{re.escape(name)}=\s*(.*)", text)
        if match is None:
            raise BackendError(f"bmv2 {self._path.name}: no register, got {text!r}")
        return [int(cell) for cell in match[1].split(",")]

    def command(self, *lines: str) -> str:
        """Return the output of lines of `simple_switch_CLI`."""
        done = subprocess.run(
            beside(self._process.pid, COMMAND_LINE, "--thrift-port", str(self._thrift_port)),
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    @property
    def _errors(self) -> Path:
        return Path(self._folder.name, "stderr")

    def _why(self, error: grpc.RpcError) -> str:
        """Return why a stream of packets has broken off."""
        if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
            return "a packet does not come to an end"
        return f"has ended: {self._last_words() or error}"

    def _last_words(self) -> str:
        """Return the last line of its standard error, empty if there is none."""
        return next(reversed(self._errors.read_text(errors="replace").splitlines()), "")

    def _file_options(self) -> list[str]:
        if self._files is None:
            return []
        pairs = [part for port, stem in self._files.items() for part in ("-i", f"{port}@{stem}")]
        return [*pairs, "--use-files", str(self._files_after_s)]

    def _dataplane_options(self) -> list[str]:
        return ["--dp-grpc-server-addr", self._address("dataplane")] if self._files is None else []

    @property
    def address(self) -> str:
        """The address of its P4Runtime server; our own controller there has election id 1."""
        return self._address("p4runtime")

    def _address(self, what: str) -> str:
        return f"unix:{Path(self._folder.name, what)}"

    def _await_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                status = f"status {self._process.returncode}"
                raise BackendError(f"ended at once, got {self._last_words() or status}")
            with suppress(BackendError, grpc.RpcError):
                self._probe()
                return
            time.sleep(0.05)  # its servers open one after another
        raise BackendError(f"not ready, got {READY_TIMEOUT_S} s of silence")

    def _probe(self) -> None:
        self._controller.await_ready(_PROBE_S)
        if self._files is None:
            # An empty stream fails until the server of packets listens, which opens by itself.
            list(self._stream(iter(())))


def free_port() -> int:
    """Return a TCP port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
