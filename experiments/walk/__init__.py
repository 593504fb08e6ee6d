"""`ringleaf trace`: a packet's walk through a switch, on the terminal or as a page."""
