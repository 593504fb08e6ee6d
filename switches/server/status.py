"""The errors of RPCs (section 10): google.rpc.Status in the trailing metadata."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import grpc  # type: ignore[import-untyped]
from finsy.proto import p4r, rpc_status
from google.protobuf import any_pb2  # type: ignore[import-untyped]

from ringleaf.errors import Code, ConfigError

DETAILS = "grpc-status-details-bin"
SPACE = "ringleaf-v1model"
ROOM = 6000  # bytes: gRPC's clients take 8 KiB of metadata unless told otherwise

LONGEST_FIRST = 200  # letters of a message in the status itself
LONGEST_TOLD = 1000  # letters of an item's message
MOST_TOLD = 200  # items; ROOM has no place for more

_BY_NUMBER = {status.value[0]: status for status in grpc.StatusCode}


class BatchOutcome:
    """The outcome of a batch: how many items failed, and the errors of the first items.

    A client hears of no more than fit into `ROOM`, so a batch of any length costs no more memory.

    Args:
        errors: Each item's error, or None.
    """

    def __init__(self, errors: Iterable[ConfigError | None] = ()) -> None:
        self.errors: list[ConfigError | None] = []
        self.total = 0
        self.failed = 0
        self.first: tuple[int, ConfigError] | None = None  # the first that failed, and its number
        for error in errors:
            self.add(error)

    def add(self, error: ConfigError | None) -> None:
        """Take the next item's error, without the traceback, which would keep the item alive."""
        if error is not None:
            error = ConfigError(str(error)[:LONGEST_TOLD], error.code)
            self.failed += 1
            self.first = self.first or (self.total, error)
        if self.total < MOST_TOLD:
            self.errors.append(error)
        self.total += 1

    def check(self, message: str) -> None:
        """Raise BatchError if any item failed."""
        if self.failed:
            raise BatchError(message, self)


class BatchError(Exception):
    """Some items of a batch were refused; `errors` has the first items' errors, or None."""

    def __init__(self, message: str, outcome: BatchOutcome | Sequence[ConfigError | None]) -> None:
        super().__init__(message)
        self.message = message
        self.outcome = outcome if isinstance(outcome, BatchOutcome) else BatchOutcome(outcome)

    @property
    def errors(self) -> list[ConfigError | None]:
        """Return an error or None for each of the first items of the batch."""
        return self.outcome.errors


@dataclass(frozen=True)
class Status(grpc.Status):  # type: ignore[misc]
    """A status for `abort_with_status`."""

    code: grpc.StatusCode
    details: str
    trailing_metadata: tuple[tuple[str, bytes], ...]


def status_of(code: int) -> grpc.StatusCode:
    """Return gRPC's status code with the number of a google.rpc.Code."""
    return _BY_NUMBER[code]


def batch_status(error: BatchError) -> Status:
    """Return the status of a batch: one p4.v1.Error per item, in order.

    Messages are left out where they'd make it too long. If the codes alone are, the first items
    have their errors, with messages, and the status says how many: a client drops trailers that
    are longer than it takes.
    """
    items, summary = error.errors, _summary(error)
    forms = ((error.message, True), (summary, False), (error.message, False))
    for message, with_messages in forms if len(items) == error.outcome.total else ():
        packed = _pack(message, items, with_messages)
        if len(packed) <= ROOM:
            return Status(grpc.StatusCode.UNKNOWN, message, ((DETAILS, packed),))

    def first(count: int) -> tuple[str, bytes]:
        message = f"{summary}; details of the first {count}"
        return message, _pack(message, items[:count], with_messages=True)

    counts = range(len(items) + 1)
    count = bisect_right(counts, ROOM, key=lambda count: len(first(count)[1])) - 1
    message, packed = first(count)
    return Status(grpc.StatusCode.UNKNOWN, message, ((DETAILS, packed),))


def _summary(error: BatchError) -> str:
    """Return how many items failed, and the first of them."""
    outcome = error.outcome
    assert outcome.first is not None, "a batch in which nothing failed has no error"
    number, first = outcome.first
    return (
        f"{error.message}: {outcome.failed} of {outcome.total}; "
        f"the first is number {number}: {first!s:.{LONGEST_FIRST}}"
    )


def _pack(message: str, items: Sequence[ConfigError | None], with_messages: bool) -> bytes:
    status = rpc_status.Status(code=Code.UNKNOWN, message=message)
    for item in items:
        detail = any_pb2.Any()
        detail.Pack(_detail(item, with_messages))
        status.details.append(detail)
    return bytes(status.SerializeToString())


def _detail(error: ConfigError | None, with_messages: bool) -> Any:
    if error is None:
        return p4r.Error()
    message = str(error) if with_messages else ""
    return p4r.Error(canonical_code=error.code, message=message, space=SPACE, code=error.code)
