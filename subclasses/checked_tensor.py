"""CheckedTensor: a tensor that refuses to become NaN or infinite, and names the operator that tried.

    x = CheckedTensor(rd.tensor([1.0, 0.0]))
    x.log()                     # NonFiniteError: aten.log.default made the first value that is not finite: ...

What it teaches: a subclass need not wrap anything. This one *is* the memory that it is made of, under another class
(`_make_subclass`); its handler switches itself off for the length of a call, runs the operator on the very same
tensors, and looks at what comes back. There is nothing to take apart and nothing to put together. Gradients are made
of such tensors, too, so a NaN born in backward is caught as well, which a look at the loss misses. How serious it
is: a real tool for hunting a NaN; it reads each result once, so go back to plain tensors once it is found.

Read next: two_tensor.py, for subclasses that do wrap something.
"""

from __future__ import annotations

from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree


class NonFiniteError(FloatingPointError):
    """An operator made a NaN or an infinity. Fields: `op`, the operator; `value`, its result as a plain tensor."""

    def __init__(self, message: str, op: Any, value: rd.Tensor) -> None:
        super().__init__(message)
        self.op, self.value = op, value


class CheckedTensor(rd.Tensor):
    """The memory of `data` under a class that checks the result of every operator.

    Shape, dtype and device are those of `data`; it is a leaf, and requires grad where `data` does.
    Errors: NonFiniteError from the operator that makes the first NaN or infinity.
    """

    @staticmethod
    def __new__(cls: type, data: rd.Tensor) -> Any:
        return rd.Tensor._make_subclass(cls, data, data.requires_grad)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        with rd._C._DisableTorchDispatch():  # from here on they are plain tensors, or we would come back here
            result = func(*args, **kwargs)
            if not holds_garbage(func):
                check(func, result, args, kwargs)

        def checked(x: rd.Tensor) -> rd.Tensor:
            """An argument that comes back, as in-place operators give it, stays the object that it is."""
            return x if isinstance(x, cls) else rd.Tensor._make_subclass(cls, x)

        return pytree.tree_map_only(rd.Tensor, checked, result)


def holds_garbage(func: Any) -> bool:
    """Whether the operator gives out memory as it finds it, which may look like anything: `empty_like` and its kin."""
    return "empty" in str(func)


def check(func: Any, result: Any, args: Any, kwargs: Any) -> None:
    """Raises NonFiniteError where a floating-point result holds a NaN or an infinity."""
    for value in pytree.tree_leaves(result):
        if not isinstance(value, rd.Tensor) or not value.is_floating_point():
            continue
        if rd.isfinite(value).all():
            continue
        nans, size = int(rd.isnan(value).sum()), value.numel()
        infinities = size - int(rd.isfinite(value).sum()) - nans
        inputs = [list(x.shape) for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, rd.Tensor)]
        plain = rd.Tensor._make_subclass(rd.Tensor, value.detach())
        raise NonFiniteError(
            f"{func} made the first value that is not finite: of {size} elements {nans} are NaN and {infinities} "
            f"infinite; the result has shape {list(value.shape)}, its tensor arguments have {inputs}",
            func,
            plain,
        )


# Whatever comes out of these checks: the calls of the table have results, or buffers, that are not finite.
NOT_SUPPORTED = {
    "isfinite nanmean logdet linalg_solve_triangular *cholesky_solve* *ctc_loss*/values,vmap": "what is not finite is "
    "there to be refused",
    "_scaled_dot_product_attention_math/values": "it masks by minus infinity",
}
