"""The parts of fake_tensor.py: the tensor, its making, sizes as symbols, the cache of results, and a check of fakes."""
