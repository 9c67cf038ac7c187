"""The layers, from the top of the key stack down: one boxed function per key, for every operator.

function modes and `__torch_function__` come before the dispatcher (`dispatch/protocols/override.py`); then
transforms > python (its snapshot key) > autocast > tracer > autograd > ad_inplace_or_view > zero_tensor > negative >
conjugate > functionalize > python > backend_select > rare_dtypes > backends, meta.
"""

from . import (
    ad_inplace_or_view,
    autocast,
    autograd,
    backend_select,
    functionalize,
    layer,
    lazy_bit,
    python,
    rare_dtypes,
    tracer,
    transforms,
)

__all__ = [
    "ad_inplace_or_view",
    "autocast",
    "autograd",
    "backend_select",
    "functionalize",
    "layer",
    "lazy_bit",
    "python",
    "rare_dtypes",
    "tracer",
    "transforms",
]
