"""`redispatch._decomp`: tables of what stands for an operator in a trace, for `make_fx(f, decomposition_table=...)`.

What the library knows is in them from the first: composites and operators whose one kernel calls others, by that
kernel; those that vmap takes to parts; forms that write, by those that do not; and formulas, which follow below. A
program registers its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import redispatch as rd
from redispatch.dispatch import DispatchKey, OpOverload, OpOverloadPacket, Tag, bind, call, operators, ops
from redispatch.dispatch.layers.transforms import BATCHING
from redispatch.dispatch.pytree import tree_leaves
from redispatch.dispatch.transforms.batched import Decomposition
from redispatch.kernels.batching.decompositions import by_its_kernel, scaled_sum
from redispatch.kernels.ops.functional_forms import MADE

__all__ = [
    "core_aten_decompositions",
    "decomposition_table",
    "get_decompositions",
    "global_decomposition_table",
    "meta_table",
    "pre_autograd_decomposition_table",
    "register_decomposition",
    "remove_decompositions",
]

Table = dict[OpOverload, Callable[..., Any]]
global_decomposition_table: dict[str, Table] = {"post_autograd": {}, "pre_autograd": {}, "meta": {}}
decomposition_table, pre_autograd_decomposition_table, meta_table = global_decomposition_table.values()
aten = ops.aten


def register_decomposition(
    aten_op: Any, registry: Table | None = None, *, type: str = "post_autograd", unsafe: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enters the decorated function as what stands for operators: overloads, or packets with all of theirs.

    It takes the place of what the library knows. Errors: RuntimeError where a program has registered one already.
    """
    table = global_decomposition_table[type] if registry is None else registry

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for op in overloads(tree_leaves(aten_op)):
            if op in table and not isinstance(table[op], Known):
                raise RuntimeError(f"duplicate registrations for {op}")
            table[op] = function
        return function

    return enter


def get_decompositions(aten_ops: Iterable[Any], type: str = "post_autograd") -> Table:
    """Returns the part of a table that is about some operators: overloads, or packets with all of theirs."""
    table = global_decomposition_table[type]
    return {op: table[op] for op in overloads(aten_ops) if op in table}


def remove_decompositions(decompositions: Table, aten_ops: Iterable[Any]) -> None:
    """Takes some operators out of a table."""
    for op in overloads(aten_ops):
        decompositions.pop(op, None)


def core_aten_decompositions() -> Table:
    """Returns what stands for operators that are not core ones, for traces of core operators."""
    return {op: function for op, function in decomposition_table.items() if Tag.core not in op.tags}


def overloads(ops: Iterable[Any]) -> list[OpOverload]:
    """Returns operators, and the overloads of packets."""
    return [
        one
        for op in ops
        for one in ([getattr(op, name) for name in op.overloads()] if isinstance(op, OpOverloadPacket) else [op])
    ]


# What the library knows -----------------------------------------------------------------------------------------------


class Known:
    """A decomposition of the library, `function` of all arguments; NotImplemented where it has nothing to say."""

    def __init__(self, op: OpOverload, function: Callable[..., Any]) -> None:
        self.op, self.function = op, function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*bind(self.op.schema, args, kwargs))

    def __repr__(self) -> str:
        return f"<decomposition of {self.op}>"


def known(op: OpOverload) -> Callable[..., Any] | None:
    """Returns what stands for an operator of the library, in terms of others; None where nothing does."""
    formula = FORMULAS.get(op._opname if op._overloadname == "default" else f"{op._opname}.{op._overloadname}")
    if formula is not None or (formula := FORMULAS.get(f"{op._opname}.*")):
        return formula
    if kernels := op.registrations.get(DispatchKey.CompositeImplicitAutograd):
        return lambda *stack: kernels[-1].boxed(op, 0, list(stack))
    rule = BATCHING.get(op) or by_its_kernel(op)
    if isinstance(rule, Decomposition):
        return lambda *stack: rule.function(op, list(stack))
    return written(op)


def written(op: OpOverload) -> Callable[..., Any] | None:
    """Returns what stands for a form that writes its first or last argument: a copy of what the other form gives."""
    schema = op.schema
    packet = getattr(aten, op._opname if schema.is_out else op._opname.removesuffix("_"), None)
    place = len(schema.arguments) - 1 if schema.is_out else 0
    if (
        op in MADE
        or Tag.inplace_view in op.tags
        or packet is None
        or schema.mutable_positions != (place,)
        or not (schema.is_out or op._opname.endswith("_"))
    ):
        return None
    end = len(schema.arguments) - schema.is_out
    for name in packet.overloads():
        other = getattr(packet, name)
        types = [argument.type for argument in other.schema.arguments]
        if not other.schema.is_mutable and types == [argument.type for argument in schema.arguments[:end]]:
            return lambda *stack: stack[place].copy_(call(other, list(stack[:end])))
    return None


# Formulas: of the values of all arguments, in the schema's order ------------------------------------------------------


def reduced(values: Any, reduction: int) -> Any:
    return values if reduction == 0 else values.mean() if reduction == 1 else values.sum()


def share(reduction: int, values: Any) -> float:
    """Returns the share of the gradient of a loss that an element has."""
    return 1 / values.numel() if reduction == 1 else 1.0


def positive(x: Any, slope: Any, otherwise: Any = 0) -> Any:
    return aten.where.self(x > 0, slope, otherwise) if hasattr(otherwise, "dtype") else slope.where(x > 0, otherwise)


def softplus(x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    return x.where(x * beta > threshold, (x * beta).exp().log1p() / beta)


def log_of_sum(x: Any, y: Any, exp: Any, scale: float) -> Any:
    larger = x.maximum(y)
    return x.where((x == y) & x.isinf(), larger + exp(-(x - y).abs()).log1p() / scale)


def with_log(x: Any, y: Any, log: Any) -> Any:
    """x log(y), which is 0 for an x of 0."""
    y = y if hasattr(y, "dtype") else x.new_full((), y)
    return y.where(y.isnan(), (x * log(y)).masked_fill(y.isnan() | (x == 0), 0))


def gelu_slope(grad: Any, x: Any, approximate: str) -> Any:
    if approximate == "tanh":
        k = math.sqrt(2 / math.pi)
        t = (k * (x + 0.044715 * x * x * x)).tanh()
        return grad * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * 0.044715 * x * x))
    return grad * (0.5 * (1 + (x * math.sqrt(0.5)).erf()) + x * (x * x * -0.5).exp() / math.sqrt(2 * math.pi))


def elu_slope(grad: Any, alpha: Any, scale: Any, input_scale: Any, is_result: bool, x: Any) -> Any:
    negative = x + alpha * scale if is_result else (x * input_scale).exp() * (alpha * scale)
    return (grad * scale).where(x > 0, grad * input_scale * negative)


def mish_slope(grad: Any, x: Any) -> Any:
    t = softplus(x).tanh()
    return grad * (t + x * x.sigmoid() * (1 - t * t))


def logit_slope(grad: Any, x: Any, eps: float | None) -> Any:
    low, high, outside = (0.0, 1.0, math.nan) if eps is None else (eps, 1 - eps, 0.0)
    return (grad / (x * (1 - x))).where((x >= low) & (x <= high), outside)


def gated(x: Any, dim: int) -> Any:
    own, gate = x.chunk(2, dim)
    return own * gate.sigmoid()


def gated_slope(grad: Any, x: Any, dim: int) -> Any:
    own, gate = x.chunk(2, dim)
    open_ = gate.sigmoid()
    return aten.cat.default([grad * open_, grad * own * open_ * (1 - open_)], dim)


def huber(x: Any, target: Any, reduction: int, delta: float) -> Any:
    apart = (x - target).abs()
    return reduced((0.5 * apart * apart).where(apart < delta, delta * (apart - 0.5 * delta)), reduction)


def smooth(x: Any, target: Any, reduction: int, beta: float) -> Any:
    apart = (x - target).abs()
    return reduced(
        apart if beta == 0 else (0.5 * apart * apart / beta).where(apart < beta, apart - 0.5 * beta), reduction
    )


def smooth_slope(grad: Any, x: Any, target: Any, reduction: int, beta: float) -> Any:
    apart = x - target
    slope = apart.sign() if beta == 0 else (apart / beta).where(apart.abs() < beta, apart.sign())
    return grad * slope * share(reduction, x)


def cross_entropy(x: Any, target: Any, weight: Any, reduction: int) -> Any:
    loss = -(target * x.log().clamp(min=-100) + (1 - target) * (-x).log1p().clamp(min=-100))
    return reduced(loss if weight is None else loss * weight, reduction)


def cross_entropy_slope(grad: Any, x: Any, target: Any, weight: Any, reduction: int) -> Any:
    slope = grad * (x - target) / (x * (1 - x)).clamp(min=1e-12) * share(reduction, x)
    return slope if weight is None else slope * weight


def cross_entropy_of_logits(x: Any, target: Any, weight: Any, pos_weight: Any, reduction: int) -> Any:
    often = 1 if pos_weight is None else 1 + (pos_weight - 1) * target
    loss = (1 - target) * x + often * ((-x.abs()).exp().log1p() + (-x).clamp(min=0))
    return reduced(loss if weight is None else loss * weight, reduction)


def everywhere(x: Any, *dims: Any) -> Any:
    found = x.logical_not().any(*dims).logical_not()
    return found.to(x.dtype) if x.dtype is rd.uint8 else found


def extremes(x: Any, dim: int | None, keepdim: bool) -> Any:
    dims = list(range(x.dim())) if dim is None else [dim]
    return x.amin(dims, keepdim), x.amax(dims, keepdim)


def log_of_exponentials(x: Any, dims: Any, keepdim: bool) -> Any:
    if not x.numel():
        return x.exp().sum(dims, keepdim).log()
    largest = x.amax(dims, True)
    largest = largest.where(largest.abs() != math.inf, 0)
    total = (x - largest).exp().sum(dims, keepdim).log()
    return total + (largest if keepdim else largest.sum(dims))


def of_layer(grad: Any, x: Any, shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, mask: Any) -> Any:
    outer, inner = list(range(x.dim() - len(shape))), list(range(x.dim() - len(shape), x.dim()))
    normal = (x - mean) * rstd
    to_normal = grad if weight is None else grad * weight
    own = to_normal - to_normal.mean(inner, True) - normal * (to_normal * normal).mean(inner, True)
    whole = [grad * normal, grad]
    parts = [one.sum(outer) if outer else one for one in whole]
    return rstd * own if mask[0] else None, *(
        part if wanted else None for part, wanted in zip(parts, mask[1:], strict=True)
    )


def places(x: Any, padding: Any, place: Callable[..., Any]) -> Iterator[tuple[int, Any]]:
    """Yields, for each dimension that is padded, which elements of its lines stand in the result."""
    for number in range(len(padding) // 2):
        dim = x.dim() - 1 - number
        low, high = padding[2 * number : 2 * number + 2]
        yield dim, place(aten.arange.start(-low, x.shape[dim] + high, device=x.device), x.shape[dim])


def padded(x: Any, padding: Any, place: Callable[..., Any]) -> Any:
    for dim, index in places(x, padding, place):
        x = x.index_select(dim, index)
    return x


def padded_slope(grad: Any, x: Any, padding: Any, place: Callable[..., Any]) -> Any:
    for dim, index in places(x, padding, place):
        shape = [*grad.shape]
        shape[dim] = x.shape[dim]
        grad = put(grad.new_zeros(shape), dim, index, grad, True)
    return grad


def mirrored(index: Any, size: int) -> Any:
    return -((size - 1) - index.abs()).abs() + (size - 1)


def clamped(index: Any, size: int) -> Any:
    return index.clamp(0, size - 1)


def put(x: Any, dim: int, index: Any, values: Any, accumulate: bool) -> Any:
    if x.dim() == 0:
        return put(x.unsqueeze(0), 0, index.reshape(-1), values.reshape(-1), accumulate).squeeze(0)
    return aten.index_put.default(x, [None] * (dim % x.dim()) + [index.reshape(-1)], values, accumulate)


def triangle(x: Any, keeps: Callable[..., Any]) -> Any:
    rows, columns = (aten.arange.default(size, device=x.device) for size in x.shape[-2:])
    return x.masked_fill(keeps(columns - rows.unsqueeze(-1)).logical_not(), 0)


def rolled(x: Any, shifts: Any, dims: Any) -> Any:
    if not dims:
        return rolled(x.reshape(-1), shifts, [0]).view(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        if x.numel():
            size = x.shape[dim]
            x = aten.cat.default(
                [x.narrow(dim, -shift % size, shift % size or size), x.narrow(dim, 0, -shift % size)], dim
            )
    return x


def crossed(x: Any, y: Any, dim: int) -> Any:
    x, y = aten.broadcast_tensors([x, y])
    one, two = (lambda t: rolled(t, [-1], [dim])), (lambda t: rolled(t, [-2], [dim]))
    return one(x) * two(y) - two(x) * one(y)


def swapped(x: Any, dim0: int, dim1: int) -> Any:
    order = list(range(x.dim()))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return x.permute(order)


def squeezed(x: Any, dims: Any) -> Any:
    return aten.squeeze.dims(x, [dim for dim in dims if x.dim() and x.shape[dim] == 1])


def shuffled(x: Any, groups: int) -> Any:
    return x.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2)


def to_pixels(x: Any, r: int) -> Any:
    *batch, channels, height, width = x.shape
    front = list(range(len(batch)))
    at = len(batch)
    parts = x.reshape([*batch, channels // (r * r), r, r, height, width])
    return parts.permute([*front, at, at + 3, at + 1, at + 4, at + 2]).reshape(
        [*batch, channels // (r * r), height * r, width * r]
    )


def from_pixels(x: Any, r: int) -> Any:
    *batch, channels, height, width = x.shape
    front = list(range(len(batch)))
    at = len(batch)
    parts = x.reshape([*batch, channels, height // r, r, width // r, r])
    return parts.permute([*front, at, at + 2, at + 4, at + 1, at + 3]).reshape(
        [*batch, channels * r * r, height // r, width // r]
    )


FORMULAS: dict[str, Callable[..., Any]] = {
    "addcdiv": lambda x, a, b, value: x + a / b * value,
    "addcmul": lambda x, a, b, value: x + a * b * value,
    "clamp_max": lambda x, high: x.clamp(max=high),
    "clamp_max.Tensor": lambda x, high: x.minimum(high),
    "clamp_min": lambda x, low: x.clamp(min=low),
    "clamp_min.Tensor": lambda x, low: x.maximum(low),
    "deg2rad": lambda x: x * (math.pi / 180),
    "rad2deg": lambda x: x * (180 / math.pi),
    "elu_backward": elu_slope,
    "floor_divide": lambda x, y: aten.div.Tensor_mode(x, y, rounding_mode="floor"),
    "frac": lambda x: x - x.trunc(),
    "gelu_backward": gelu_slope,
    "glu": gated,
    "glu_backward": gated_slope,
    "hardshrink": lambda x, lambd: x.where(x.abs().le(lambd).logical_not(), 0),
    "hardsigmoid": lambda x: (x + 3).clamp(0, 6) / 6,
    "hardsigmoid_backward": lambda grad, x: (grad / 6).where((x > -3) & (x < 3), 0),
    "hardswish": lambda x: x * (x + 3).clamp(0, 6) / 6,
    "hardswish_backward": lambda grad, x: grad.where(x >= 3, (grad * (x / 3 + 0.5)).where(x > -3, 0)),
    "hardtanh_backward": lambda grad, x, low, high: grad.where((x > low) & (x < high), 0),
    "heaviside": lambda x, values: values.where(x == 0, (x > 0).to(x.dtype)),
    "huber_loss": huber,
    "huber_loss_backward": lambda grad, x, target, reduction, delta: (
        grad * (x - target).clamp(-delta, delta) * share(reduction, x)
    ),
    "isneginf": lambda x: x == -math.inf,
    "isposinf": lambda x: x == math.inf,
    "leaky_relu_backward": lambda grad, x, slope, is_result: grad.where(x > 0, grad * slope),
    "lerp.*": lambda x, end, weight: x + weight * (end - x),
    "logaddexp": lambda x, y: log_of_sum(x, y, aten.exp.default, 1.0),
    "logaddexp2": lambda x, y: log_of_sum(x, y, aten.exp2.default, math.log(2)),
    "logit": lambda x, eps: (lambda x: (x / (1 - x)).log())(x if eps is None else x.clamp(eps, 1 - eps)),
    "logit_backward": logit_slope,
    "log_sigmoid_backward": lambda grad, x, buffer: grad * (-x).sigmoid(),
    "masked_fill.Scalar": lambda x, mask, value: x.where(mask.logical_not(), x.new_full((), value)),
    "masked_fill.Tensor": lambda x, mask, value: x.where(mask.logical_not(), value.to(x.dtype)),
    "mish": lambda x: x * softplus(x).tanh(),
    "mish_backward": mish_slope,
    "mvlgamma": lambda x, p: math.log(math.pi) * p * (p - 1) / 4 + sum((x - j / 2).lgamma() for j in range(p)),
    "nansum": lambda x, dims, keepdim, dtype: x.masked_fill(x.isnan(), 0).sum(dims, keepdim, dtype=dtype),
    "nan_to_num": lambda x, nan, high, low: (
        x.masked_fill(x.isnan(), nan or 0)
        .masked_fill(x == math.inf, rd.finfo(x.dtype).max if high is None else high)
        .masked_fill(x == -math.inf, rd.finfo(x.dtype).min if low is None else low)
        if x.is_floating_point()
        else NotImplemented
        if x.is_complex()
        else x.clone()
    ),
    "_prelu_kernel": lambda x, weight: x.where(x > 0, weight * x),
    "_prelu_kernel_backward": lambda grad, x, weight: (
        grad.where(x > 0, weight * grad),
        (x * grad).masked_fill(x > 0, 0),
    ),
    "rsub.*": lambda x, other, alpha: -(x * alpha) + other,
    "sgn": lambda x: (x / x.abs()).masked_fill(x == 0, 0) if x.is_complex() else x.sign(),
    "sigmoid_backward": lambda grad, y: grad * (y * (1 - y)).conj(),
    "silu": lambda x: x * x.sigmoid(),
    "silu_backward": lambda grad, x: grad * x.sigmoid() * (1 + x * (1 - x.sigmoid())),
    "sinc": lambda x: ((x * math.pi).sin() / (x * math.pi)).masked_fill(x == 0, 1),
    "smooth_l1_loss": smooth,
    "smooth_l1_loss_backward": smooth_slope,
    "softplus": softplus,
    "softplus_backward": lambda grad, x, beta, threshold: grad.where(x * beta > threshold, grad * (x * beta).sigmoid()),
    "softshrink": lambda x, lambd: (x - x.sign() * lambd).where(x.abs() > lambd, x * 0),
    "special_entr": lambda x: (-with_log(x, x, aten.log.default)).masked_fill(x < 0, -math.inf),
    "tanh_backward": lambda grad, y: grad * (1 - y * y).conj(),
    "threshold": lambda x, threshold, value: x.masked_fill(x <= threshold, value),
    "threshold_backward": lambda grad, x, threshold: grad.masked_fill(x <= threshold, 0),
    "binary_cross_entropy": cross_entropy,
    "binary_cross_entropy_backward": cross_entropy_slope,
    "binary_cross_entropy_with_logits": cross_entropy_of_logits,
    "mse_loss": lambda x, target, reduction: reduced((x - target) * (x - target), reduction),
    "mse_loss_backward": lambda grad, x, target, reduction: grad * 2 * (x - target) * share(reduction, x),
    "xlogy.Tensor": lambda x, y: with_log(x, y, aten.log.default),
    "special_xlog1py": lambda x, y: with_log(x, y, aten.log1p.default),
    "all": everywhere,
    "all.dim": everywhere,
    "aminmax": extremes,
    "baddbmm": lambda x, a, b, beta, alpha: scaled_sum(x, a.bmm(b), beta, alpha),
    "count_nonzero": lambda x, dim: (x != 0).sum() if dim is None else (x != 0).sum([dim]),
    "count_nonzero.dim_IntList": lambda x, dims: (x != 0).sum(dims),
    "dot": lambda x, y: (x * y).sum(0),
    "mv": lambda x, y: (x * y).sum(1),
    "logsumexp": log_of_exponentials,
    "_log_softmax_backward_data": lambda grad, y, dim, dtype: (grad - y.exp() * grad.sum(dim, True)).to(dtype),
    "_softmax_backward_data": lambda grad, y, dim, dtype: (grad * y - y * (grad * y).sum(dim, True)).to(dtype),
    "native_dropout_backward": lambda grad, mask, scale: grad * (mask * scale),
    "native_layer_norm_backward": of_layer,
    "std.correction": lambda x, dims, correction, keepdim: aten.var.correction(
        x, dims, correction=correction, keepdim=keepdim
    ).sqrt(),
    "std_mean.correction": lambda x, dims, correction, keepdim: (
        aten.std.correction(x, dims, correction=correction, keepdim=keepdim),
        x.mean(dims, keepdim),
    ),
    "sum": lambda x, dtype: aten.sum.dim_IntList(x, None, False, dtype=dtype),
    "index_add": lambda x, dim, index, source, alpha: put(x, dim, index, source * alpha, True),
    "index_copy": lambda x, dim, index, source: put(x, dim, index, source, False),
    "index_fill.int_Scalar": lambda x, dim, index, value: put(x, dim, index, x.new_full((), value), False),
    "index_fill.int_Tensor": lambda x, dim, index, value: put(x, dim, index, value.to(x.dtype), False),
    "take": lambda x, index: aten.index.Tensor(x.reshape(-1), [index]),
    "tril": lambda x, diagonal: triangle(x, lambda apart: apart <= diagonal),
    "triu": lambda x, diagonal: triangle(x, lambda apart: apart >= diagonal),
    "roll": rolled,
    "linalg_cross": crossed,
    **{
        f"{name}_pad{n}d{end}": partial(formula, place=place)
        for name, place in (("reflection", mirrored), ("replication", clamped))
        for end, formula in (("", padded), ("_backward", padded_slope))
        for n in (1, 2, 3)
    },
    "stack": lambda tensors, dim: aten.cat.default([x.unsqueeze(dim) for x in tensors], dim),
    "t": lambda x: swapped(x, 0, 1) if x.dim() == 2 else x.view(x.shape),
    "transpose.int": swapped,
    "squeeze": lambda x: squeezed(x, range(x.dim())),
    "squeeze.dim": lambda x, dim: squeezed(x, [dim]),
    "unbind.int": lambda x, dim: [x.select(dim, index) for index in range(x.shape[dim])],
    "_unsafe_view": lambda x, size: x.view(size),
    "detach": lambda x: aten.alias.default(x),
    "channel_shuffle": shuffled,
    "native_channel_shuffle": shuffled,
    "pixel_shuffle": to_pixels,
    "pixel_unshuffle": from_pixels,
}
# to copy is what forms that write are made of, and the gradient of pdist is found by a graph that a trace cannot hold
NOT_KNOWN = (aten.copy_.default, aten._pdist_backward.default)
decomposition_table.update(
    (op, Known(op, function))
    for op in operators()
    if op.namespace == "aten" and Tag.core not in op.tags and op not in NOT_KNOWN and (function := known(op))
)
