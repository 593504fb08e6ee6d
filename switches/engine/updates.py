"""The updates that a control plane may ask of a switch: from P4Runtime, STF or Python.

Tables, actions and externs go by their names in the BMv2 JSON, actions by their numbers there.
`Switch.apply` takes any of these; `switches/control/plane.py` has the reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

INSERT, MODIFY, DELETE = "insert", "modify", "delete"

Match = tuple[tuple[int, int], ...]
"""Per key (value, mask); for a range key (low, high)."""

PER_MICROSECOND = 1_000_000  # BMv2's meters count per microsecond, ours per second


@dataclass(frozen=True, slots=True)
class MeterRates:
    """A meter's configuration, in bytes or packets, each rate per second (RFC 2698)."""

    committed: float
    committed_burst: int
    peak: float
    peak_burst: int


@dataclass(frozen=True, slots=True)
class ProfileMember:
    """A reference from a table entry to a member of the table's action profile."""

    number: int


@dataclass(frozen=True, slots=True)
class MemberGroup:
    """A reference from a table entry to a group, of which the profile's selector picks a member."""

    number: int


@dataclass(slots=True)
class InstalledEntry:
    """One row of a table; the highest `precedence` wins, then the entry that came first.

    `indirect` takes the place of `action` and `arguments` where the table has an action profile.
    """

    match: Match
    action: int
    arguments: tuple[int, ...]
    precedence: int = 0
    prefix: int = 0  # bits, of the longest-prefix key
    counter: int = 0  # which of the table's direct counters (and meters) it has
    indirect: ProfileMember | MemberGroup | None = None
    idle_timeout_ns: int = 0  # 0: it never becomes idle


@dataclass(frozen=True, slots=True)
class TableUpdate:
    """Insert, modify or delete an entry of a table, or set its default action."""

    verb: str
    table: str
    entry: InstalledEntry | None  # None: restore the program's default action
    is_default: bool


@dataclass(frozen=True, slots=True)
class MemberUpdate:
    """A member of an action profile."""

    verb: str
    profile: str
    member: int
    action: int = 0
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MemberGroupUpdate:
    """A group of an action profile that has a selector; a member's weight is its share."""

    verb: str
    profile: str
    group: int
    members: tuple[tuple[int, int], ...] = ()  # (member, weight)
    max_size: int = 0  # sum of weights; 0: as the profile allows


@dataclass(frozen=True, slots=True)
class GroupUpdate:
    """A multicast group."""

    verb: str
    group: int
    members: tuple[tuple[int, int], ...]  # (port, egress_rid)


@dataclass(frozen=True, slots=True)
class CloneUpdate:
    """A clone session."""

    verb: str
    session: int
    replicas: tuple[tuple[int, int], ...]  # (port, egress_rid, or KEPT_RID of the layout)
    length_bytes: int = 0  # to keep of the packet; 0: all
    class_of_service: int = 0  # of the clones of a PSA program; v1model has none


@dataclass(frozen=True, slots=True)
class CounterUpdate:
    """Set a counter; an indirect one has an `index`, a direct one an `entry` of its table."""

    counter: str
    index: int | None
    packets: int
    bytes: int
    entry: InstalledEntry | None = None


@dataclass(frozen=True, slots=True)
class MeterUpdate:
    """Configure a meter; `rates` of None make it green again for every packet."""

    meter: str
    index: int | None
    rates: MeterRates | None
    entry: InstalledEntry | None = None


@dataclass(frozen=True, slots=True)
class RegisterUpdate:
    """Set one cell of a register array; a value has as many bits as the array's cells."""

    register: str
    index: int
    value: int


@dataclass(frozen=True, slots=True)
class ValueSetUpdate:
    """The members of a parser value set: per member, (value, mask) of each part of its key."""

    value_set: str
    members: tuple[Match, ...]


@dataclass(frozen=True, slots=True)
class DigestUpdate:
    """Enable or disable the keeping of a digest's messages for `take_digests`."""

    verb: str
    digest: str


Update = (
    TableUpdate
    | MemberUpdate
    | MemberGroupUpdate
    | GroupUpdate
    | CloneUpdate
    | CounterUpdate
    | MeterUpdate
    | RegisterUpdate
    | ValueSetUpdate
    | DigestUpdate
)


class Count(NamedTuple):
    """The counts of a counter; packets and bytes are both kept, whatever its type."""

    packets: int
    bytes: int


@dataclass(frozen=True, slots=True)
class DigestMessage:
    """The message of one packet's `digest` call to the control plane."""

    digest: str
    values: tuple[int, ...]  # per field, in the order of the struct
    time_ps: int


@dataclass(frozen=True, slots=True)
class IdleEntry:
    """An entry that no packet has hit for its `idle_timeout_ns`."""

    table: str
    entry: InstalledEntry


def prefix_mask(width: int, prefix: int) -> int:
    """Return the mask of a key of `width` bits whose first `prefix` bits are matched."""
    return ((1 << prefix) - 1) << (width - prefix)
