"""DCQCN with the numbers of the HPCC paper's sample configuration.

alibaba-edu/High-Precision-Congestion-Control, mix/config.txt; marks as in `dcqcn_mellanox.py`.
"""

from ringleaf.hosts.congestion.dcqcn_nic import CardParameters, nic_controller
from ringleaf.hosts.controllers.dcqcn_mellanox import MARKING

NUMBERS = CardParameters(1 / 256, 1, 900, 1, 50_000_000, 100_000_000, clamp=False)

CONTROLLER = nic_controller("dcqcn-hpcc", NUMBERS, MARKING)
