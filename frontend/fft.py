"""`redispatch.fft`: discrete Fourier transforms under PyTorch's module path.

Each name is that of an operator: `fft.rfft` is `fft_rfft`. fft.pyi has their types. Read next: kernels/ops/fft.py.
"""

from redispatch.dispatch.tensor import Tensor as Tensor
from redispatch.kernels.declare.public import FUNCTIONS

globals().update(FUNCTIONS["fft"])
__all__ = [*sorted(FUNCTIONS["fft"])]
