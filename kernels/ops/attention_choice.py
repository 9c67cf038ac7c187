"""Which kernel `scaled_dot_product_attention` takes, and what users say of it.

A device has some kernels, each with rules of what it takes, and takes the first that is allowed and fits. Programs
allow and forbid kernels (`nn.attention.sdpa_kernel`, `backends.cuda.enable_flash_sdp`), and may say in which order to
ask. Where nothing is left, each kernel's first reason is told as a warning, and the call is an error.

The rules are PyTorch's; what our kernels can do beyond those of its libraries, they may: heads of any width up to 256,
and heads that share keys in both. Read next: attention.py.
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from redispatch.dispatch.tensor import dtypes

from .fused_attention import broadcasts

WIDEST = 256  # elements of a head that kernels for devices take
WIDEST_WITH_ALL = 144  # where there is a bias and dropout: more would not fit into a lane's registers


class SDPBackend(enum.Enum):
    """A way to compute attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self) -> int:
        return self.value


MATH, FLASH, EFFICIENT = SDPBackend.MATH, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION
CUDNN, OVERRIDEABLE = SDPBackend.CUDNN_ATTENTION, SDPBackend.OVERRIDEABLE
NO_KERNEL = (
    "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both the math "
    "kernel and the fused kernels."
)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The kernels that may be taken, and the order in which a CUDA device is asked for them."""

    kernels: frozenset[SDPBackend] = frozenset({MATH, FLASH, EFFICIENT, CUDNN, OVERRIDEABLE})
    order: tuple[SDPBackend, ...] = (FLASH, EFFICIENT, MATH, CUDNN, OVERRIDEABLE)


AT_FIRST = Allowed()
ALLOWED: ContextVar[Allowed] = ContextVar("kernels of attention that are allowed", default=AT_FIRST)


def allow(kernel: SDPBackend, yes: bool) -> None:
    """Whether a kernel may be taken, from here on."""
    now = ALLOWED.get()
    kernels = now.kernels | {kernel} if yes else now.kernels - {kernel}
    ALLOWED.set(replace(now, kernels=kernels))


def is_allowed(kernel: SDPBackend) -> bool:
    return kernel in ALLOWED.get().kernels


def allowing(kernels: Iterable[SDPBackend], in_this_order: bool) -> Allowed:
    """What is allowed where only these are."""
    given = tuple(dict.fromkeys(kernels))
    order = ALLOWED.get().order
    if in_this_order:
        order = (*given, *(one for one in order if one not in given))
    return Allowed(frozenset(given), order)


@dataclass(frozen=True, slots=True)
class SDPAParams:
    """A call of attention, of which rules are asked."""

    query: Any
    key: Any
    value: Any
    attn_mask: Any
    dropout: float
    is_causal: bool
    enable_gqa: bool

    @property
    def three(self) -> tuple[Any, Any, Any]:
        return self.query, self.key, self.value


# --- rules: why a call does not fit, or None --------------------------------------------------------------------------


def each_of(call: SDPAParams, what: str, of: Callable[[Any], Any]) -> str:
    """What a message says of all three tensors."""
    named = zip(("Query", "Key", "Value"), call.three, strict=True)
    return ", ".join(f"{name}{what}: {of(x)}" for name, x in named)


def widths_of(call: SDPAParams) -> str:
    return each_of(call, ".size(-1)", lambda x: x._shape[3])


def has_heads(call: SDPAParams) -> str | None:
    if all(len(x._shape) == 4 for x in call.three):
        return None
    dims = each_of(call, " dim", lambda x: len(x._shape))
    return f"All fused kernels requires query, key and value to be 4 dimensional, but got {dims} instead."


def belongs_together(call: SDPAParams) -> str | None:
    q, k, v = (x._shape for x in call.three)
    alike = q[0] == k[0] == v[0] and k[1] == v[1] and k[2] == v[2]
    if alike and (q[1] == k[1] or (call.enable_gqa and k[1] and q[1] % k[1] == 0)):
        return None
    return (
        "For dense inputs, both fused kernels require query, key and value to have the same batch_size and num_heads. "
        f"{each_of(call, '.sizes()', lambda x: list(x._shape))} instead. To broadcast dense inputs, try using "
        "unsqueeze and expand_to before passing them into the kernel."
    )


def has_dense_rows(call: SDPAParams) -> str | None:
    if all(x._stride[3] == 1 for x in call.three):
        return None
    strides = each_of(call, ".stride(-1)", lambda x: x._stride[3])
    return f"All fused kernels require the last dimension of the input to have stride 1. Got {strides}"


def is_of(*kinds: Any) -> Callable[[SDPAParams], str | None]:
    """Whether all are of one of these dtypes."""

    def rule(call: SDPAParams) -> str | None:
        if call.query._dtype in kinds and call.query._dtype is call.key._dtype is call.value._dtype:
            return None
        names = ", ".join(kind.tensor_name for kind in kinds)
        found = each_of(call, " dtype", lambda x: x._dtype.tensor_name)
        return f"Expected query, key and value to all be of dtype: {{{names}}}. Got {found} instead."

    return rule


def is_not_masked(call: SDPAParams) -> str | None:
    return None if call.attn_mask is None else "Flash Attention does not support non-null attn_mask."


def is_masked_well(call: SDPAParams) -> str | None:
    mask = call.attn_mask
    if mask is None:
        return None
    scores = [*call.query._shape[:3], call.key._shape[2]]
    if len(mask._shape) > 4 or not broadcasts(mask._shape, scores):
        return f"Expected attn_mask to broadcast to the scores, {scores}, but got {list(mask._shape)}"
    return "A mask and is_causal cannot be given together." if call.is_causal else None


def has_one_width(call: SDPAParams) -> str | None:
    q, k, v = (x._shape[3] for x in call.three)
    if q == k == v <= WIDEST:
        return None
    return (
        "Flash attention requires q,k,v to have the same last dimension and to be less than or equal to "
        f"{WIDEST}. Got {widths_of(call)} instead."
    )


def has_widths(call: SDPAParams) -> str | None:
    q, k, v = (x._shape[3] for x in call.three)
    most = WIDEST_WITH_ALL if call.dropout > 0 and call.attn_mask is not None else WIDEST
    if q == k and q <= WIDEST and v <= most:
        return None
    return (
        f"Mem efficient attention requires query and key to have one last dimension of at most {WIDEST}, and value one "
        f"of at most {most}. Got {widths_of(call)} instead."
    )


def is_square_if_causal(call: SDPAParams) -> str | None:
    rows, columns = call.query._shape[2], call.key._shape[2]
    if not call.is_causal or rows == columns:
        return None
    return (
        "Flash attention does not support the is_causal flag when seqlen_q != seqlen_k. Got seqlen_q: "
        f"{rows} seqlen_k: {columns}."
    )


def has_positions(call: SDPAParams) -> str | None:
    if all(call.three[k]._shape[2] for k in range(3)):
        return None
    return "All fused kernels do not support zero seq_len_q or seq_len_kv."


def drops_nothing(call: SDPAParams) -> str | None:
    return None if call.dropout == 0 else "Both fused kernels do not support non-zero dropout."


def has_learned_no_mask(call: SDPAParams) -> str | None:
    mask = call.attn_mask
    if mask is None or not mask.requires_grad:
        return None
    return "Flash Attention does not support attn_mask that requires gradients on the CPU."


def fits_the_cpu(call: SDPAParams) -> str | None:
    """The rest of what the CPU's kernel asks for."""
    q, k, v = (x._shape for x in call.three)
    if k != v or q[3] != k[3]:
        return f"Flash attention requires q,k,v to have the same last dimension. Got {widths_of(call)} instead."
    mask = call.attn_mask
    if mask is not None and not (len(mask._shape) in (2, 4) and broadcasts(mask._shape, [*q[:3], k[2]])):
        return f"Expected attn_mask of 2 or 4 dimensions that broadcasts to the scores, {[*q[:3], k[2]]}"
    return None


FLOATS = dtypes.float16, dtypes.bfloat16, dtypes.float32
Rules = tuple[Callable[[SDPAParams], str | None], ...]
ON_CUDA: dict[SDPBackend, Rules] = {
    FLASH: (
        has_heads, is_of(dtypes.float16, dtypes.bfloat16), is_not_masked, has_one_width, belongs_together,
        is_square_if_causal, has_positions, has_dense_rows,
    ),
    EFFICIENT: (
        has_heads, is_of(*FLOATS), belongs_together, has_widths, is_masked_well, has_positions, has_dense_rows,
    ),
    CUDNN: (lambda call: "cuDNN attention has no kernel here.",),
}  # fmt: skip
ON_CPU: dict[SDPBackend, Rules] = {
    FLASH: (
        drops_nothing, has_heads, is_of(*FLOATS, dtypes.float64), belongs_together, has_dense_rows, fits_the_cpu,
        has_learned_no_mask,
    ),
}  # fmt: skip
TITLES = {FLASH: "Flash attention", EFFICIENT: "Memory Efficient attention", CUDNN: "CuDNN attention"}


def why_not(kernel: SDPBackend, call: SDPAParams, rules: dict[SDPBackend, Rules]) -> str | None:
    """The first reason for which a kernel does not take a call; None where it does."""
    if not is_allowed(kernel):
        return f"{TITLES[kernel]} has been runtime disabled."
    return next((reason for rule in rules[kernel] if (reason := rule(call)) is not None), None)


def chosen(call: SDPAParams) -> SDPBackend:
    """The kernel for a call. RuntimeError where none is allowed that takes it; the reasons are warnings."""
    now, on = ALLOWED.get(), call.query._device.type
    order: tuple[SDPBackend, ...]
    if on == "cpu":
        rules, order = ON_CPU, (FLASH, MATH)
    elif on == "cuda":
        rules, order = ON_CUDA, tuple(one for one in now.order if one is not OVERRIDEABLE)
    else:
        return MATH
    if now.kernels.isdisjoint(order):
        raise RuntimeError(NO_KERNEL)
    for kernel in order:
        if kernel is MATH:
            if MATH in now.kernels:
                return MATH
        elif kernel in now.kernels and why_not(kernel, call, rules) is None:
            return kernel
    for kernel in rules:
        warnings.warn(f"{TITLES[kernel]} kernel not used because:", stacklevel=3)
        warnings.warn(why_not(kernel, call, rules) or "", stacklevel=3)
    raise RuntimeError("No available kernel.  Aborting execution.")


def can_use(kernel: SDPBackend, call: SDPAParams, debug: bool) -> bool:
    """Whether a CUDA device takes a call by this kernel; with `debug` a warning says why not."""
    if call.query._device.type != "cuda":
        return False
    reason = why_not(kernel, call, ON_CUDA)
    if reason is not None and debug:
        warnings.warn(reason, stacklevel=3)
    return reason is None
