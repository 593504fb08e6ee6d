"""The errors of RPCs (section 10): google.rpc.Status in the trailing metadata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import grpc  # type: ignore[import-untyped]
from finsy.proto import p4r, rpc_status
from google.protobuf import any_pb2  # type: ignore[import-untyped]

from ringleaf.errors import Code, ConfigError

DETAILS = "grpc-status-details-bin"
SPACE = "ringleaf-v1model"
ROOM = 6000  # bytes: gRPC's clients take 8 KiB of metadata unless told otherwise

_BY_NUMBER = {status.value[0]: status for status in grpc.StatusCode}


class BatchError(Exception):
    """Some items of a batch were refused; `errors` has each item's error, or None."""

    def __init__(self, message: str, errors: Sequence[ConfigError | None]) -> None:
        super().__init__(message, errors)
        self.message = message
        self.errors = errors


@dataclass(frozen=True)
class Status(grpc.Status):  # type: ignore[misc]
    """A status for `abort_with_status`."""

    code: grpc.StatusCode
    details: str
    trailing_metadata: tuple[tuple[str, bytes], ...]


def status_of(code: int) -> grpc.StatusCode:
    return _BY_NUMBER[code]


def batch_status(error: BatchError) -> Status:
    """Return the status of a batch: one p4.v1.Error per item, in order.

    Messages are left out where they'd make it too long; codes never are.
    """
    packed = _pack(error, with_messages=True)
    if len(packed) > ROOM:
        packed = _pack(error, with_messages=False)
    return Status(grpc.StatusCode.UNKNOWN, error.message, ((DETAILS, packed),))


def _pack(error: BatchError, *, with_messages: bool) -> bytes:
    status = rpc_status.Status(code=Code.UNKNOWN, message=error.message)
    for item in error.errors:
        detail = any_pb2.Any()
        detail.Pack(_detail(item, with_messages))
        status.details.append(detail)
    return bytes(status.SerializeToString())


def _detail(error: ConfigError | None, with_messages: bool) -> Any:
    if error is None:
        return p4r.Error()
    message = str(error) if with_messages else ""
    return p4r.Error(canonical_code=error.code, message=message, space=SPACE, code=error.code)
