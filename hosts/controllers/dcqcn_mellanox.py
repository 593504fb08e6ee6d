"""DCQCN with a Mellanox card's numbers, as the HPCC paper's simulator has them by default.

alibaba-edu/High-Precision-Congestion-Control, attributes of rdma-hw.cc; marks are its sample
configuration's for lines of 100 Gbit/s, 400 kB, 1,600 kB and 0.2 with packets of 1 kB, in packets
of 4 KiB.
"""

from ringleaf.core.marking import Marking
from ringleaf.hosts.congestion.dcqcn_nic import CardParameters, nic_controller

NUMBERS = CardParameters(1 / 16, 55, 1500, 5, 5_000_000, 50_000_000, clamp=False)
MARKING = Marking(98, 391, 0.8)

CONTROLLER = nic_controller("dcqcn-mellanox", NUMBERS, MARKING)
