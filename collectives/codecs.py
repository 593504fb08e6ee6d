"""The codecs by name. A new one is a file of its own and a line here."""

from __future__ import annotations

from ringleaf.collectives.codec import Codec
from ringleaf.collectives.sparse.stream import SPARSE_STREAM

CODECS: dict[str, Codec] = {codec.name: codec for codec in (SPARSE_STREAM,)}
