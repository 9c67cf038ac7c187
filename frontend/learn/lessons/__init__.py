"""The lessons, one a file, named after its row on the board."""
