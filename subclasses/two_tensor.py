"""TwoTensor: one tensor that is really two of the same shape; every operator runs on both.

    x = TwoTensor(rd.ones(3), rd.zeros(3))
    y = (x + 1).exp()           # y.a is exp(2), y.b is exp(1)

What it teaches: the least that a well-behaved *wrapper* needs. It has a tensor's face (`_make_wrapper_subclass`) and
no data of its own; its handler takes the wrappers apart, runs the operator on what is inside, and puts the results
together again. Three things make it a good citizen: pytrees, so that tensors inside lists are found;
`return_and_correct_aliasing`, so that `x.add_(1)` is `x` and a view of `x` shares its storage; `__tensor_flatten__`
and `__tensor_unflatten__`, by which transforms take it apart. How serious it is: of no use in itself, but the
sharpest test of a framework, since it shows whatever treats a subclass as a plain tensor.

Read next: logging_tensor.py, the same with something to tell; checked_tensor.py, a subclass that wraps nothing.
"""

from __future__ import annotations

from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import (
    TorchDispatchMode,
    _is_tensor_constructor,
    return_and_correct_aliasing,
)


class TwoTensor(rd.Tensor):
    """Two tensors `a` and `b` under one face: the shape, strides, dtype and device that they share.

    Requires grad where they do; the graph is then the wrapper's, and its `grad` is a TwoTensor.
    Errors: ValueError where `a` and `b` do not look alike.

    >>> import redispatch as rd
    >>> from redispatch.subclasses import TwoTensor
    >>> pair = TwoTensor(rd.zeros(2), rd.ones(2)) + 1
    >>> pair.a, pair.b
    (tensor([1., 1.]), tensor([2., 2.]))
    """

    a: rd.Tensor
    b: rd.Tensor

    @staticmethod
    def __new__(cls: type, a: rd.Tensor, b: rd.Tensor, outer_size: Any = None, outer_stride: Any = None) -> Any:
        for look in ("shape", "dtype", "device", "layout", "requires_grad"):
            if getattr(a, look) != getattr(b, look):
                raise ValueError(f"TwoTensor: a has {look} {getattr(a, look)}, but b has {getattr(b, look)}")
        if a.stride() != b.stride() or a.storage_offset() != b.storage_offset():
            raise ValueError(
                f"TwoTensor: a has strides {a.stride()} from offset {a.storage_offset()}, but b has {b.stride()} from "
                f"{b.storage_offset()}; pass a.contiguous() and b.contiguous()"
            )
        return rd.Tensor._make_wrapper_subclass(
            cls,
            a.size() if outer_size is None else outer_size,
            strides=a.stride() if outer_stride is None else outer_stride,
            storage_offset=a.storage_offset(),
            dtype=a.dtype,
            layout=a.layout,
            device=a.device,
            requires_grad=a.requires_grad,
        )

    def __init__(self, a: rd.Tensor, b: rd.Tensor, outer_size: Any = None, outer_stride: Any = None) -> None:
        self.a, self.b = a, b

    def __repr__(self) -> str:
        return f"TwoTensor({self.a!r}, {self.b!r})"

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        """The names of the inner tensors, and what else it takes to build the wrapper again: nothing."""
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(
        inner: dict[str, rd.Tensor], context: Any, outer_size: Any, outer_stride: Any
    ) -> TwoTensor:
        """The wrapper around other inner tensors."""
        return TwoTensor(inner["a"], inner["b"], outer_size, outer_stride)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        args_a, kwargs_a = pytree.tree_map_only(TwoTensor, lambda x: x.a, (args, kwargs))
        args_b, kwargs_b = pytree.tree_map_only(TwoTensor, lambda x: x.b, (args, kwargs))
        results_a, spec = pytree.tree_flatten(func(*args_a, **kwargs_a))
        results_b = pytree.tree_leaves(func(*args_b, **kwargs_b))
        # A number, such as that of `item()`, can be one only: it is a's.
        both = [cls(a, b) if isinstance(a, rd.Tensor) else a for a, b in zip(results_a, results_b, strict=True)]
        return return_and_correct_aliasing(func, args, kwargs, pytree.tree_unflatten(both, spec))


class TwoTensorMode(TorchDispatchMode):
    """A mode in which tensors that are made of no others are TwoTensors of two copies."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        return TwoTensor(made, made.clone()) if _is_tensor_constructor(func) else made


TWICE = "what is plain is written twice, once for each half"
NOT_SUPPORTED = {
    "_foreach_add_/mixed": TWICE,
    "_amp_foreach_non_finite_check_and_unscale_/mixed": TWICE,
    "_fused_adam*/mixed": TWICE,
    "_native_batch_norm_legit/mixed": TWICE,
    "rrelu_with_noise*/mixed": TWICE,
    "gru*/mixed": f"{TWICE}: the plain hidden state in its cells",
    "lstm*/mixed": f"{TWICE}: the plain hidden state in its cells",
    "rnn_*/mixed": f"{TWICE}: the plain hidden state in its cells",
}
