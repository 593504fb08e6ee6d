"""The codecs by name. A new one is a file of its own and a line here."""

from __future__ import annotations

from collectives.codec import Codec
from collectives.sparse.stream import SPARSE_STREAM

CODECS: dict[str, Codec] = {codec.name: codec for codec in (SPARSE_STREAM,)}
