"""The capabilities of this machine, under PyTorch's names: `redispatch.backends.cpu.get_cpu_capability()`."""

from . import cpu, cuda, cudnn, mkldnn

__all__ = ["cpu", "cuda", "cudnn", "mkldnn"]
