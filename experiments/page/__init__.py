"""What goes into pages: styles, scripts, and how data is put beside them."""
