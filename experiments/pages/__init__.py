"""The parts of pages: styles, scripts, and the data beside them."""
