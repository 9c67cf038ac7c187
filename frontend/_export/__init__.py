"""PyTorch's private package of its exporter, as far as files of tensor subclasses import it."""
