"""When switches pause those that send to them: priority flow control (IEEE 802.1Qbb)."""

from __future__ import annotations

from dataclasses import dataclass

from ringleaf.core.units import parse_size
from ringleaf.errors import ConfigError

OFF = "off"


@dataclass(frozen=True, slots=True)
class Pausing:
    """Thresholds of the bytes that one port of a switch has brought in, in each of eight classes.

    The standard fixes the frames and what they mean. Thresholds are a device's own; these are
    counted per port and class, in bytes of packets without FCS, from the time when a packet joins
    a queue until it leaves it.

    Attributes:
        xoff_bytes: Above it, the sender at the other end of the link is told to pause the class.
        xon_bytes: Once it is no more than this, the sender is told to go on.
        headroom_bytes: Room above XOFF for what comes until the sender has stopped; None: as much
            as each link needs.

    Raises:
        ConfigError: If a number is out of range.

    Source:
        IEEE 802.1Qbb-2011, now in 802.1Q, clause 36 and annex O (headroom).
    """

    xoff_bytes: int
    xon_bytes: int
    headroom_bytes: int | None = None

    def __str__(self) -> str:
        """Return the text that `parse_pausing` reads."""
        more = "" if self.headroom_bytes is None else f":{self.headroom_bytes}"
        return f"{self.xoff_bytes}:{self.xon_bytes}{more}"

    def __post_init__(self) -> None:
        if not 0 < self.xon_bytes <= self.xoff_bytes:
            raise ConfigError(
                "pfc: XON must be above 0 and not above XOFF, got "
                f"{self.xoff_bytes}:{self.xon_bytes}; like 64K:48K"
            )


def parse_pausing(text: str, where: str) -> Pausing | None:
    """Read XOFF and XON, and perhaps the headroom: `64K:48K`, `64K:48K:100K`; `off` is None.

    Raises:
        ConfigError: If it is none of these, or a number is out of range.
    """
    if text.strip() == OFF:
        return None
    parts = text.split(":")
    if len(parts) not in (2, 3):
        raise ConfigError(
            f"{where}: must be two or three sizes, XOFF:XON:headroom, or {OFF}, got {text!r}; "
            "like 64K:48K"
        )
    return Pausing(*(parse_size(part.strip(), where) for part in parts))
