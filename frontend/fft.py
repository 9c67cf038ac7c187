"""`redispatch.fft`: discrete Fourier transforms under PyTorch's module path.

Each name is that of an operator: `fft.rfft` is `fft_rfft`. Read next: kernels/ops/fft.py.
"""

from redispatch.kernels.ops.fft import fft_fft as fft
from redispatch.kernels.ops.fft import fft_fft2 as fft2
from redispatch.kernels.ops.fft import fft_fftfreq as fftfreq
from redispatch.kernels.ops.fft import fft_fftn as fftn
from redispatch.kernels.ops.fft import fft_fftshift as fftshift
from redispatch.kernels.ops.fft import fft_hfft as hfft
from redispatch.kernels.ops.fft import fft_hfft2 as hfft2
from redispatch.kernels.ops.fft import fft_hfftn as hfftn
from redispatch.kernels.ops.fft import fft_ifft as ifft
from redispatch.kernels.ops.fft import fft_ifft2 as ifft2
from redispatch.kernels.ops.fft import fft_ifftn as ifftn
from redispatch.kernels.ops.fft import fft_ifftshift as ifftshift
from redispatch.kernels.ops.fft import fft_ihfft as ihfft
from redispatch.kernels.ops.fft import fft_ihfft2 as ihfft2
from redispatch.kernels.ops.fft import fft_ihfftn as ihfftn
from redispatch.kernels.ops.fft import fft_irfft as irfft
from redispatch.kernels.ops.fft import fft_irfft2 as irfft2
from redispatch.kernels.ops.fft import fft_irfftn as irfftn
from redispatch.kernels.ops.fft import fft_rfft as rfft
from redispatch.kernels.ops.fft import fft_rfft2 as rfft2
from redispatch.kernels.ops.fft import fft_rfftfreq as rfftfreq
from redispatch.kernels.ops.fft import fft_rfftn as rfftn

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
