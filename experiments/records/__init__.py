"""What runs leave: their folder, its files, tables, pages and timelines."""
