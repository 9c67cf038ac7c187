"""`torch.version`: the version of PyTorch that this library behaves as, and the parts that it was built with: none."""

from .torch_version import TorchVersion

__version__ = TorchVersion("2.13.0+redispatch")
cuda = hip = rocm = xpu = git_version = None
debug = False
