"""Attention as devices have it: one operator for heads of any kind, which never holds all scores there.

    _scaled_dot_product_efficient_attention     with a bias, dropout, heads that share keys
    _scaled_dot_product_flash_attention         without a bias; what it remembers looks otherwise

Their kernels for CUDA are kernels/cuda/ops/attention.py. Anywhere else they are what they are by definition, with
all scores in memory: what tests compare with, and what `vmap` and graphs take apart. Both draw the same choices of
dropout from the same seed and offset, which are results, so that backward makes them again.

Note [The choices of dropout]
Philox gives four words for a block; the columns of a row are counted in groups of 64, of which block j of 16 decides
columns j, j + 16, j + 32 and j + 48: those that a thread of a GPU has.

Note [Which kernel attention takes]
A device has some kernels, each with rules of what it takes, and takes the first that is allowed and fits. Programs
allow and forbid kernels (`nn.attention.sdpa_kernel`, `backends.cuda.enable_flash_sdp`), and may say in which order to
ask. Where nothing is left, each kernel's first reason is told as a warning, and the call is an error. The rules are
PyTorch's; what our kernels can do beyond those of its libraries, they may: heads of any width up to 256, and heads that
share keys in both. Read next: attention.py.
"""

from __future__ import annotations

import enum
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from redispatch.dispatch import dataclass, ops
from redispatch.dispatch.tensor import Tensor, dtypes

from ..declare.operator import planned_several
from ..declare.planned import PlannedSeveral
from ..declare.structured import Meta
from .generators import generator_at, position

NAME = "_scaled_dot_product_efficient_attention"
GROUP, LANES = 64, 16  # Note [The choices of dropout]
ROUNDED = 32  # logarithms are kept for so many rows, or a multiple

efficient_op = PlannedSeveral(
    f"{NAME}(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0., "
    "bool is_causal=False, *, float? scale=None) -> (Tensor output, Tensor log_sumexp, Tensor philox_seed, "
    "Tensor philox_offset)",
    tags=("nondeterministic_seeded",),
    refuses="whole complex",
    late_out=False,
)


def scale_of(query: Any, scale: float | None) -> float:
    """Returns what scores are multiplied by: 1 / sqrt(width), unless something else is asked for."""
    if scale is not None:
        return scale
    width = query._shape[-1]
    return 1 / math.sqrt(width) if width else math.inf


def broadcasts(shape: Any, to: Sequence[int]) -> bool:
    """Whether each dimension is 1 or that of the other shape, from the last one on."""
    return all(size in (1, other) for size, other in zip(reversed(shape), reversed(to), strict=False))


# --- what the results look like ---------------------------------------------------------------------------------------


def check(name: str, query: Tensor, key: Tensor, value: Tensor, bias: Any, dropout_p: float) -> None:
    """RuntimeError where the arguments do not belong together."""
    if any(len(x._shape) != 4 for x in (query, key, value)):
        raise RuntimeError(f"{name}: query, key and value must have 4 dimensions, [batch, heads, positions, width]")
    if not (query._dtype is key._dtype is value._dtype and query._dtype.is_floating_point):
        kinds = [x._dtype.tensor_name for x in (query, key, value)]
        raise RuntimeError(f"{name}: query, key and value must have one floating dtype, but got {', '.join(kinds)}")
    batch, heads, rows, width = query._shape
    shared, columns = key._shape[1:3]
    if key._shape[3] != width or key._shape[0] != batch or value._shape[:3] != key._shape[:3] or heads % max(shared, 1):
        raise RuntimeError(
            f"{name}: keys must have the batch size and the width of the query, values as many rows as keys, and both "
            f"a number of heads that divides the query's, but got {list(query._shape)}, {list(key._shape)} and "
            f"{list(value._shape)}"
        )
    if not 0 <= dropout_p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p:g}")
    if bias is not None and not bias._dtype.is_floating_point:
        raise RuntimeError(f"{name}: a bias must have a floating dtype, but got {bias._dtype.tensor_name}")
    if bias is not None and (len(bias._shape) > 4 or not broadcasts(bias._shape, [batch, heads, rows, columns])):
        raise RuntimeError(
            f"{name}: a bias of shape {list(bias._shape)} does not broadcast to the scores, "
            f"{[batch, heads, rows, columns]}"
        )


def beside(x: Tensor, width: int | None = None) -> Meta:
    """Heads whose rows lie side by side: what a layer behind sees as one row."""
    batch, heads, rows, own = x._shape
    width = own if width is None else width
    return Meta((batch, heads, rows, width), x._dtype, x._device, (rows * heads * width, width, heads * width, 1))


def wide(x: Tensor) -> Any:
    """The dtype in which scores are computed."""
    return dtypes.float64 if x._dtype is dtypes.float64 else dtypes.float32


def efficient_metadata(
    query: Tensor, key: Tensor, value: Tensor, attn_bias: Any, compute_log_sumexp: bool, dropout_p: float,
    is_causal: bool, scale: Any,
) -> tuple[Meta, Meta, Meta, Meta]:  # fmt: skip
    """(the result; the logarithms of each row's sum of exponentials, of a multiple of 32 rows; seed and offset)"""
    check(NAME, query, key, value, attn_bias, dropout_p)
    batch, heads, rows, _ = query._shape
    kept = -(-rows // ROUNDED) * ROUNDED if compute_log_sumexp else 0
    one = Meta((), dtypes.int64, query._device)
    logs = Meta((batch, heads, kept), wide(query), query._device)
    return beside(query, value._shape[3]), logs, one, one


efficient_op.meta(efficient_metadata)


@planned_several(
    f"{NAME}_backward(Tensor grad_out_, Tensor query, Tensor key, Tensor value, Tensor attn_bias, Tensor out, "
    "Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, float dropout_p, bool[4] grad_input_mask, "
    "bool is_causal=False, *, float? scale=None) -> (Tensor, Tensor, Tensor, Tensor)",
    refuses="whole complex",
    late_out=False,
    face=False,
)
def efficient_backward_op(grad, query, key, value, bias, out, logsumexp, seed, offset, dropout_p, asked, causal, scale):
    """The gradients that are asked for; that of the bias for each score. A bias of shape [0] stands for none."""
    bias = given_bias(bias)
    check(f"{NAME}_backward", query, key, value, bias, dropout_p)
    if tuple(grad._shape) != tuple(out._shape):
        raise RuntimeError(
            f"{NAME}_backward: the gradient must have the result's shape, {list(out._shape)}, but has "
            f"{list(grad._shape)}"
        )
    found: list[Meta | None] = [beside(x) for x in (query, key, value)]
    of_bias = None if bias is None else Meta((*query._shape[:3], key._shape[2]), bias._dtype, query._device)
    return tuple(one if wanted else None for one, wanted in zip([*found, of_bias], asked, strict=True))


def given_bias(bias: Tensor) -> Tensor | None:
    """The bias that backward is given, whose schema wants a tensor in any case."""
    return None if tuple(bias._shape) == (0,) else bias


# --- by definition ----------------------------------------------------------------------------------------------------


def random_count(query: Any, key: Any) -> int:
    """Counts the numbers that a call of dropout draws from a generator: two for a block."""
    rows = query._shape[0] * query._shape[1] * query._shape[2]
    return 2 * rows * -(-key._shape[2] // GROUP) * LANES


def choices(seed: Any, offset: Any, dropout_p: float, shape: Sequence[int], like: Any) -> Any:
    """Returns what each weight is multiplied by. Note [The choices of dropout]."""
    *rows, columns = shape
    groups = -(-columns // GROUP)
    words = like.new_empty([*rows, groups, LANES, GROUP // LANES])
    generator = generator_at(int(seed), int(offset), like._device)
    kept = words.bernoulli_(1 - dropout_p, generator=generator).transpose(-2, -1).reshape([*rows, groups * GROUP])
    return kept.narrow(-1, 0, columns) * (0.0 if dropout_p == 1 else 1 / (1 - dropout_p))


def for_each_head(x: Any, heads: int) -> Any:
    """Keys or values with each head as often as query heads share it."""
    return x if x._shape[1] == heads else x.repeat_interleave(heads // max(x._shape[1], 1), 1)


def scores_of(query: Any, key: Any, bias: Any, is_causal: bool, scale: Any) -> Any:
    """scale Q Kᵀ + bias, -inf where nothing is seen."""
    scores = query.matmul(key.transpose(-2, -1)) * scale_of(query, scale)
    if bias is not None:
        scores = scores + bias.to(scores._dtype)
    if not is_causal:
        return scores
    seen = ops.aten.ones.default(list(scores._shape[-2:]), dtype=dtypes.bool, device=scores._device).tril()
    return scores.masked_fill(seen.logical_not(), -math.inf)


@efficient_op.explicit
def efficient_definition(query, key, value, attn_bias, compute_log_sumexp, dropout_p, is_causal, scale):
    result, kept, seed, offset = (
        meta.allocate()
        for meta in efficient_metadata(query, key, value, attn_bias, compute_log_sumexp, dropout_p, is_causal, scale)
    )
    rows, heads = query._shape[2], query._shape[1]
    exact, to = wide(query), query._dtype
    q, k, v = query.to(exact), for_each_head(key.to(exact), heads), for_each_head(value.to(exact), heads)
    scores = scores_of(q, k, attn_bias, is_causal, scale)
    logs = logs_of(scores)
    weights = (scores - logs.unsqueeze(-1)).exp()
    drawn_at = position(random_count(query, key), query._device) if dropout_p > 0 else (0, 0)
    for one, number in zip((seed, offset), drawn_at, strict=True):
        one.fill_(number - (1 << 64) if number >> 63 else number)
    if dropout_p > 0:
        weights = weights * choices(drawn_at[0], drawn_at[1], dropout_p, weights._shape, weights)
    if compute_log_sumexp:
        kept.zero_().narrow(2, 0, rows).copy_(logs)
    return result.copy_(weights.matmul(v).to(to)), kept, seed, offset


def logs_of(scores: Any) -> Any:
    """The logarithm of each row's sum of exponentials; 0 for a row that sees nothing, whose weights then are 0."""
    if not scores._shape[-1]:
        return scores.new_zeros(list(scores._shape[:-1]))
    logs = scores.logsumexp(-1)
    return logs.masked_fill(logs == -math.inf, 0.0)


@efficient_backward_op.explicit
def efficient_backward_definition(
    grad_out, query, key, value, attn_bias, out, logsumexp, seed, offset, dropout_p, *how
):
    metas = efficient_backward_op.metas_function(
        grad_out, query, key, value, attn_bias, out, logsumexp, seed, offset, dropout_p, *how
    )
    _, is_causal, scale = how
    attn_bias = given_bias(attn_bias)
    heads, shared, exact = query._shape[1], key._shape[1], wide(query)
    q, grad = query.to(exact), grad_out.to(exact)
    k, v = for_each_head(key.to(exact), heads), for_each_head(value.to(exact), heads)
    scores = scores_of(q, k, attn_bias, is_causal, scale)
    weights = (scores - logsumexp.narrow(2, 0, query._shape[2]).unsqueeze(-1)).exp()
    slopes, dropped = grad.matmul(v.transpose(-2, -1)), weights
    if dropout_p > 0:
        factors = choices(seed.item(), offset.item(), dropout_p, weights._shape, weights)
        slopes, dropped = slopes * factors, weights * factors
    slopes = weights * (slopes - (grad * out.to(exact)).sum(-1, True))
    factor = scale_of(query, scale)
    found = (
        lambda: slopes.matmul(k) * factor,
        lambda: shared_heads(slopes.transpose(-2, -1).matmul(q) * factor, shared),
        lambda: shared_heads(dropped.transpose(-2, -1).matmul(grad), shared),
        lambda: slopes,
    )
    return tuple(None if m is None else m.allocate().copy_(f()) for m, f in zip(metas, found, strict=True))


def shared_heads(x: Any, shared: int) -> Any:
    """The sum over the query heads that share a head."""
    return x if x._shape[1] == shared else x.unflatten(1, [shared, -1]).sum(2)


def efficient_gradients(
    grad: Any, query: Any, key: Any, value: Any, attn_bias: Any, result0: Any, result1: Any, result2: Any, result3: Any,
    dropout_p: float, is_causal: bool, scale: Any, needs: Sequence[bool],
) -> Any:  # fmt: skip
    mask = [*needs[:3], needs[3] and attn_bias is not None]
    bias = query.new_empty([0]) if attn_bias is None else attn_bias
    found = efficient_backward_op.functional(
        grad, query, key, value, bias, result0, result1, result2, result3, dropout_p, mask, is_causal, scale=scale
    )
    if not mask[3]:
        return found
    return *found[:3], found[3].sum_to_size(list(attn_bias._shape))


efficient_op.derivative((("query", "key", "value", "attn_bias"), efficient_gradients), nondifferentiable=(1, 2, 3))

# --- which kernel scaled_dot_product_attention takes ------------------------------------------------------------------

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
    """Returns what is allowed where only these are."""
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
    """Returns what a message says of all three tensors."""
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
