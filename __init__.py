"""redispatch: PyTorch's dispatcher, small enough to read in an evening and open enough to change at run time."""
