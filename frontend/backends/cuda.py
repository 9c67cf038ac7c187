"""`redispatch.backends.cuda`: the precision of products, and the kernels that attention may take.

frontend/utils/settings.py keeps the first, kernels/ops/fused_attention.py the second.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from enum import Enum
from typing import Any

from redispatch.kernels.first_use import is_built as is_built
from redispatch.kernels.ops.fused_attention import (
    ALLOWED,
    CUDNN,
    EFFICIENT,
    FLASH,
    MATH,
    SDPAParams,
    allow,
    can_use,
    is_allowed,
)
from redispatch.utils.settings import get_float32_matmul_precision, set_float32_matmul_precision


class _LinalgBackend(Enum):
    """The libraries of PyTorch's that could factorise matrices. Which one does, follows from the device."""

    Default = 0
    Cusolver = 1
    Magma = 2

    def __str__(self) -> str:
        return f"_LinalgBackend.{self.name}"


def preferred_linalg_library(backend: str | _LinalgBackend | None = None) -> _LinalgBackend:
    """Returns the default, which can be asked for; RuntimeError for another library, of which there is no choice."""
    name = backend.name.lower() if isinstance(backend, _LinalgBackend) else backend or "default"
    if name not in ("default", "cusolver", "magma"):
        raise RuntimeError("Unknown input value. Choose from: default, cusolver, magma.")
    if name != "default":
        library = {"cusolver": "cuSOLVER", "magma": "MAGMA"}[name]
        raise RuntimeError(f"Cannot set preferred backend to {library}: each device has one library of matrices")
    return _LinalgBackend.Default


def checked(enabled: Any) -> bool:
    if not isinstance(enabled, bool):
        raise RuntimeError(f"set_sdp_use_math expects a bool, but got {type(enabled).__name__}")
    return enabled


def enable_flash_sdp(enabled: bool) -> None:
    """Sets whether attention may take the kernel for 16-bit floats without a mask; on the CPU, its own fused kernel."""
    allow(FLASH, checked(enabled))


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Sets whether it may take the kernel for masks and float32, too."""
    allow(EFFICIENT, checked(enabled))


def enable_math_sdp(enabled: bool) -> None:
    """Sets whether it may be made of other operators."""
    allow(MATH, checked(enabled))


def enable_cudnn_sdp(enabled: bool) -> None:
    """Sets whether it may take cuDNN's kernel, which there is not here."""
    allow(CUDNN, checked(enabled))


def flash_sdp_enabled() -> bool:
    return is_allowed(FLASH)


def mem_efficient_sdp_enabled() -> bool:
    return is_allowed(EFFICIENT)


def math_sdp_enabled() -> bool:
    return is_allowed(MATH)


def cudnn_sdp_enabled() -> bool:
    return is_allowed(CUDNN)


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Returns whether a CUDA device takes the call by that kernel; with `debug` a warning says why not."""
    return can_use(FLASH, params, debug)


def can_use_efficient_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Says whether the kernel for masks and float32 takes these arguments."""
    return can_use(EFFICIENT, params, debug)


def can_use_cudnn_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Says whether cuDNN's kernel takes these arguments."""
    return can_use(CUDNN, params, debug)


def is_flash_attention_available() -> bool:
    """Returns whether there are fused kernels, and a device for them."""
    from redispatch.kernels.cuda import driver  # here, because an import of the library asks for no device

    return driver() is not None


def is_ck_sdpa_available() -> bool:
    """Returns whether there are kernels for AMD's cards: no."""
    return False


_REDUCED = [False]


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Sets whether sums of 16-bit floats may be 16-bit floats in attention made of other operators; here none is."""
    _REDUCED[0] = checked(enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    return _REDUCED[0]


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[dict[str, Any]]:
    """A region in which these kernels are allowed. Deprecated: `nn.attention.sdpa_kernel` says which."""
    warnings.warn(
        "`redispatch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. "
        "Please see `redispatch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.",
        FutureWarning,
        stacklevel=3,
    )
    token = ALLOWED.set(ALLOWED.get())
    try:
        for kernel, yes in (
            (FLASH, enable_flash), (MATH, enable_math), (EFFICIENT, enable_mem_efficient), (CUDNN, enable_cudnn),
        ):  # fmt: skip
            allow(kernel, yes)
        yield {}
    finally:
        ALLOWED.reset(token)


class MatmulSettings:
    """allow_tf32: whether float32 products may be made of factors rounded to TF32, by NVIDIA's library on a card; the
    same as `set_float32_matmul_precision("high")`.

    The others are as PyTorch has them at first, and cannot be changed: sums are always float32.
    """

    FIXED = {
        "allow_fp16_reduced_precision_reduction": False,
        "allow_bf16_reduced_precision_reduction": False,
        "allow_fp16_accumulation": False,
    }

    def __getattr__(self, name: str) -> Any:
        if name == "allow_tf32":
            return get_float32_matmul_precision() != "highest"
        if name == "fp32_precision":
            return "tf32" if get_float32_matmul_precision() != "highest" else "none"
        if name in self.FIXED:
            return self.FIXED[name]
        raise AttributeError(f"Unknown attribute {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "allow_tf32":
            set_float32_matmul_precision("high" if value else "highest")
        elif name == "fp32_precision" and value in ("none", "ieee", "tf32"):
            set_float32_matmul_precision("high" if value == "tf32" else "highest")
        elif name in self.FIXED:
            if value is not self.FIXED[name] and value is not True:
                raise RuntimeError(f"{name} is {self.FIXED[name]} here, whatever is asked for, and got {value!r}")
        else:
            raise AttributeError(f"Unknown attribute {name}")


matmul = MatmulSettings()
