"""PyTorch's private package of its transforms, `torch._functorch`: all modules but `make_functional` are api.py."""

from .._names import late
from . import config as config

_PLACES, __getattr__, __dir__ = late(
    globals(),
    {".": "aot_autograd apis autograd_function eager_transforms functional_call pyfunctorch utils vmap"},
)
