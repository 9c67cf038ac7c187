"""The iterator and the loops: raw arrays and pointers, no tensors."""
