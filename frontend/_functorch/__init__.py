"""PyTorch's private package `torch._functorch`: its transforms, whose modules are all api.py, and graphs traced ahead.

Read aot_autograd.py, partitioners.py and max_flow.py for these; api.py and make_functional.py only have names.
"""

from .._names import late
from . import config as config

_PLACES, __getattr__, __dir__ = late(
    globals(),
    {".": "aot_autograd apis autograd_function eager_transforms functional_call partitioners pyfunctorch utils vmap"},
)
