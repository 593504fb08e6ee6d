"""Embedding exchange of recommendation models on SmartNICs: caches of rows, and sums of bags.

A table's rows are dealt to ranks (row r to rank r modulo n). A batch's look-ups go to the owners by
an all-to-all, vectors come back by another, gradients go by a third. A NIC caches rows of other
ranks that were looked up; it caches rows of its own rank, so that they need not be read from the
host's memory; and it adds up the vectors of a bag for whoever asked, so that one vector travels for
each bag and owner.

Source:
    Guo, Geng, Herbordt et al., ICS 2023, pp. 336-347, doi 10.1145/3577193.3593724.

The paper's text was not at hand: these three uses are from a survey. Chosen here: the directory by
which owners know who caches a row (to update or to invalidate it when an iteration ends); that LFU
counts all look-ups, and keeps a row only if it was looked up more often than the least used one
that is cached; that a row that will be cached travels by itself, not in a sum; and that a rank
answers when all ranks' look-ups have come, as two all-to-alls in turn do.
"""

from __future__ import annotations

from ringleaf.hosts.nic.registry import Offload

OFFLOAD = Offload("embedding exchange (Guo et al.)", "ringleaf.experiments.workloads.nic.embedding")
