"""The first use of a CUDA device, which brings the room `cuda/` along: importing the library brings nothing of it.

Until then a factory at the key CUDA and `x.to("cuda")` lead here, and say what is missing where there is no device.
Read next: cuda/runtime/.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from redispatch.dispatch import call, impl, place_of
from redispatch.dispatch.tensor import FOREIGN, PINNERS, STARTERS

from .ops.creation import empty_op, empty_strided_op

RUNTIME = "redispatch.kernels.cuda.runtime"


def start() -> Any:
    """Makes the devices usable. AssertionError, as PyTorch's, where there is none; it says what to install."""
    return import_module(f"{RUNTIME}.devices").start()


def is_built() -> bool:
    """Whether CUDA devices can be used, if the machine has any: the library has its kernels always."""
    return True


def starting(op: Any) -> Callable[..., Any]:
    """A factory's kernel at the key CUDA before there is a device: makes it usable, which registers the real kernel."""

    def kernel(*args: Any) -> Any:
        start()
        return call(op, [*args])

    return kernel


for _op in (empty_op, empty_strided_op):
    impl(
        _op.functional,
        "CUDA",
        starting(_op.functional),
        convention="positional",
        place=place_of(starting),
        name="starts CUDA",
    )


def pinned(nbytes: int) -> Any:
    """Pinned memory, None where there is no device."""
    return import_module(f"{RUNTIME}.devices").pinned(nbytes)


def over_foreign(name: str, given: Any) -> Any:
    """A tensor over memory of another library's."""
    start()
    return getattr(import_module(f"{RUNTIME}.interop"), name)(given)


STARTERS["cuda"] = start
PINNERS.append(pinned)
FOREIGN |= {
    "__cuda_array_interface__": lambda producer: over_foreign("from_interface", producer),
    0: lambda capsule: over_foreign("from_capsule", capsule),
    2: lambda producer: over_foreign("from_dlpack", producer),  # DLPack's code of CUDA
}
