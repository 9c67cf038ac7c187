"""Python modes, one idea per file, written with public names only."""
