"""A2TP's two windows with the constants of its authors' ns-3 model, which differ from the code's.

Gains of 1/16, a threshold of 0.05, a divisor of 2 and steps of 5 packets; the formulas are those of
`a2tp`. The model's first window (340 packets) and its slow start are not taken over.

Source:
    A2TP, EuroSys 2023: ns-3 model, github.com/totoyoooooo/ns3Proj.
"""

from __future__ import annotations

from ringleaf.ina.congestion import Window
from ringleaf.ina.windows.a2tp import beginning, on_round

INA_WINDOW = Window("a2tp-ns3", beginning(1 / 16, 0.05, 2.0, 5), on_round=on_round, has_share=True)
