"""OmniReduce: hosts that aggregate, and workers that send them only blocks that aren't zero."""

from ina.omnireduce.system import SYSTEM

__all__ = ["SYSTEM"]
