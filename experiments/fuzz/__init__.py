"""`ringleaf fuzz`: look for packets that BMv2 treats otherwise."""
