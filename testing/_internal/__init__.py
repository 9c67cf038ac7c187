"""PyTorch's private names for what its own tests use, over `redispatch.testing`."""
