"""Complex numbers on a GPU: functions that numba-cuda has, by the names of `cmath`, and others made of them.

The CPU's loops call numpy's, which numba-cuda has not. `intrinsics.py` asks here.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

LN_2 = math.log(2)


def exp2(z):
    return cmath.exp(z * LN_2)


def log1p(z):
    return cmath.log(z + 1)


def log2(z):
    return cmath.log(z) / LN_2


def modulus(z):
    return math.hypot(z.real, z.imag)


def root(z):
    return cmath.sqrt(z)


def power(z, w):
    return z**w


IN_CMATH = "exp log log10 sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh".split()
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(cmath, name) for name in IN_CMATH},
    **{function.__name__: function for function in (exp2, log1p, log2)},
    "pow": power,
}


def register(ufuncs: dict[Any, dict[str, Callable[..., Any]]]) -> None:
    """Adds `np.abs` and `np.sqrt` of complex numbers to numba-cuda's table of numpy's functions."""
    import numpy as np

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return context.compile_internal(builder, function, signature, values)

        return emit

    for name, function, loops in ((np.abs, modulus, ("F->f", "D->d")), (np.sqrt, root, ("F->F", "D->D"))):
        known = ufuncs.setdefault(name, {})
        for loop in loops:
            known.setdefault(loop, compiled(function))
