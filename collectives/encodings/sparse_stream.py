"""Positions and values of the elements that are not zero (SparCML)."""

from __future__ import annotations

from ringleaf.collectives.sparse.stream import SPARSE_STREAM

CODEC = SPARSE_STREAM
