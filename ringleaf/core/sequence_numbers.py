"""The packet sequence numbers (PSN) of queue pairs: constants that options need, too."""

from __future__ import annotations

MOST_WINDOW = (1 << 23) - 1
"""Packets in flight. PSNs have 24 bits, and `full_number` finds the right 64-bit number only while
fewer than half of them are."""
