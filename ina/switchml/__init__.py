"""SwitchML: the switches add up what workers stream through them (Sapio et al., NSDI 2021)."""
