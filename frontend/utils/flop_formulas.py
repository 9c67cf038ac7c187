"""How many floating-point operations an operator does: the table of formulas, which is open to everyone.

A formula knows shapes only. What stands here is counted as PyTorch's `torch.utils.flop_counter` does: a product of
matrices of the sizes m×k and k×n costs 2·m·n·k, and a convolution and attention are made of such products; everything
else is left out. Read next: flop_counter.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from redispatch.dispatch import OpOverload, ops
from redispatch.dispatch.tensor import Tensor

from . import _pytree as pytree

Formula = Callable[..., int]
Shape = Sequence[int]

flop_registry: dict[Any, Formula] = {}  # operator packet, such as `ops.aten.mm` -> formula over raw values
_places: dict[Any, str] = {}


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Formula], Formula]:
    """A decorator which makes a function the formula of one operator packet, or of several (`redispatch.ops.aten.mm`).

    The function gets the operator's arguments with each tensor replaced by its shape, and the result's shape as
    `out_shape`; with `get_raw`, the tensors themselves, and the result as `out_val`. `flop_registry` holds all
    formulas; `FlopCounterMode(custom_mapping=...)` brings one for a single region.
    Errors: RuntimeError where the operator has a formula already; ValueError for a target that is no packet.
    """

    def register(formula: Formula) -> Formula:
        place = f"{formula.__code__.co_filename}:{formula.__code__.co_firstlineno}"
        for target in targets if isinstance(targets, list | tuple) else [targets]:
            if isinstance(target, OpOverload) or not callable(target):
                raise ValueError(
                    f"register_flop_formula(targets): expected each target to be an operator packet, such as "
                    f"redispatch.ops.aten.mm, which speaks for all its overloads; got {target!r}"
                )
            if target in flop_registry:
                raise RuntimeError(
                    f"duplicate registrations for {target}: it has a FLOP formula from {_places.get(target, '?')}, and "
                    f"another one was registered at {place}; `del flop_registry[...]` removes the first"
                )
            flop_registry[target] = formula if get_raw else shape_wrapper(formula)
            _places[target] = place
        return formula

    return register


def shape_wrapper(formula: Formula) -> Formula:
    """`formula`, which knows shapes only, made callable with tensors."""

    def raw(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = pytree.tree_map_only(Tensor, lambda x: tuple(x.shape), (args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)

    return raw


# --- products of matrices --------------------------------------------------------------------------------------------


@register_flop_formula(ops.aten.mm)
def mm_flop(a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """[m, k] @ [k, n]: a multiplication and an addition for each of the m·n·k terms."""
    (m, k), (_, n) = a_shape, b_shape
    return 2 * m * n * k


@register_flop_formula(ops.aten.addmm)
def addmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """The product's; the m·n additions of the bias are not counted."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(ops.aten.bmm)
def bmm_flop(a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """[batch, m, k] @ [batch, k, n]."""
    return a_shape[0] * mm_flop(a_shape[1:], b_shape[1:])


@register_flop_formula(ops.aten.baddbmm)
def baddbmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """The product's; additions of the bias are not counted."""
    return bmm_flop(a_shape, b_shape)


# --- convolution -----------------------------------------------------------------------------------------------------


def conv_flop_count(x_shape: Shape, w_shape: Shape, out_shape: Shape, transposed: bool = False) -> int:
    """Each weight meets each place of the result, or of the input where the convolution is transposed, in each example.

    x_shape: [batch, channels, *places]; w_shape: [channels, channels / groups, *window].
    """
    places = (x_shape if transposed else out_shape)[2:]
    return 2 * x_shape[0] * prod(places) * prod(w_shape)


@register_flop_formula([ops.aten.convolution, ops.aten._convolution])
def conv_flop(
    x_shape: Shape,
    w_shape: Shape,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    *args: Any,
    out_shape: Shape,
    **kwargs: Any,
) -> int:
    """The products; additions of the bias are not counted."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


@register_flop_formula(ops.aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape: Shape,
    x_shape: Shape,
    w_shape: Shape,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Sequence[bool],
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The gradient by the input costs what forward does; that by the weight, too, where there are no groups.

    With groups PyTorch counts the gradient by the weight as if all channels met: `groups` times what is computed. So
    does this, for the sake of counts that can be compared.
    """
    forward = conv_flop_count(x_shape, w_shape, grad_out_shape, transposed)
    return forward * output_mask[0] + forward * groups * output_mask[1]


# --- attention -------------------------------------------------------------------------------------------------------


def sdpa_flop_count(query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """query @ keyᵀ, and its softmax @ value. Shapes: [batch, heads, positions, size]; a mask spares nothing."""
    batch, heads, queries, size = query_shape
    keys, value_size = key_shape[-2], value_shape[-1]
    return 2 * batch * heads * queries * keys * (size + value_size)


@register_flop_formula(ops.aten._scaled_dot_product_flash_attention_for_cpu)
def sdpa_flop(
    query_shape: Shape, key_shape: Shape, value_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """The two products."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(grad_out_shape: Shape, query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """query @ keyᵀ once more, the gradients of value and of the softmax, and those of query and key: five products."""
    batch, heads, queries, size = query_shape
    keys, value_size = key_shape[-2], value_shape[-1]
    return 2 * batch * heads * queries * keys * (3 * size + 2 * value_size)


@register_flop_formula(ops.aten._scaled_dot_product_flash_attention_for_cpu_backward)
def sdpa_backward_flop(
    grad_out_shape: Shape,
    query_shape: Shape,
    key_shape: Shape,
    value_shape: Shape,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The five products."""
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)
