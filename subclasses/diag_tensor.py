"""DiagTensor: a square matrix that is zero off its diagonal, stored as the diagonal.

    d = DiagTensor(rd.tensor([1.0, 2.0]))
    d @ rd.ones(2, 2)           # scales the rows: no matrix is made, no product is run
    rd.linalg.inv(d)            # DiagTensor([1.0, 0.5])

What it teaches: `__torch_function__` alone. It is asked before any dispatch key, of the function that the user wrote
and not of the operators inside, and by any object: this class is no Tensor at all. A table says which functions know
the structure; every other function gets the dense matrix. Since rules run above autograd, what they are made of is
differentiated as usual, and gradients arrive at the diagonal with no line written for them. How serious it is: a
teaching toy with right answers; the way in which structured-matrix libraries are built.

Read next: masked.py, for rules below autograd and the doors that lead there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree

from .schemas import written_by

RULES: dict[Any, Callable[..., Any]] = {}


def implements(*functions: Any) -> Callable[[Any], Any]:
    """Enters a rule for functions. A rule answers NotImplemented where it does not know these arguments."""

    def enter(rule: Any) -> Any:
        RULES.update(dict.fromkeys(functions, rule))
        return rule

    return enter


class DiagTensor:
    """The n x n matrix whose diagonal is the vector `diagonal` of n elements; its gradients are the diagonal's.

    What is off the diagonal is zero by structure, not by value: times infinity it is zero still, never NaN.
    Errors: ValueError where `diagonal` is no vector.
    """

    def __init__(self, diagonal: rd.Tensor) -> None:
        if diagonal.dim() != 1:
            raise ValueError(
                f"DiagTensor: expected the diagonal, a tensor of 1 dimension, but got shape {list(diagonal.shape)}; "
                "of a matrix, pass matrix.diagonal()"
            )
        self.diagonal = diagonal

    @property
    def shape(self) -> Any:
        return rd.Size([len(self.diagonal)] * 2)

    @property
    def dtype(self) -> Any:
        return self.diagonal.dtype

    @property
    def T(self) -> DiagTensor:
        return self

    def to_dense(self) -> rd.Tensor:
        """The whole matrix, as a tensor."""
        return rd.diag(self.diagonal)

    def __repr__(self) -> str:
        return f"DiagTensor({self.diagonal.tolist()})"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not all(issubclass(kind, rd.Tensor | DiagTensor) for kind in types):
            return NotImplemented  # another class of this kind: let it answer
        if func in RULES:
            result = RULES[func](*args, **kwargs)
            if result is not NotImplemented:
                return result
        name, targets = getattr(func, "__name__", ""), pytree.tree_leaves(kwargs.get("out"))
        if isinstance(func, rd._ops.OpOverload):
            name, targets = str(func), written_by(func, args, kwargs)
        elif name.endswith("_") and not name.endswith("__"):
            targets = list(args[:1])
        if any(isinstance(x, DiagTensor) for x in targets):
            raise TypeError(f"{name}: a DiagTensor cannot be written, as it holds its diagonal only; use to_dense()")
        args, kwargs = pytree.tree_map_only(DiagTensor, DiagTensor.to_dense, (args, kwargs))
        return func(*args, **kwargs)

    def __add__(self, other: Any) -> Any:
        return rd.add(self, other)  # type: ignore[arg-type]  # a number or a tensor

    def __sub__(self, other: Any) -> Any:
        return rd.sub(self, other)  # type: ignore[arg-type]  # a number or a tensor

    def __mul__(self, other: Any) -> Any:
        return rd.mul(self, other)  # type: ignore[arg-type]  # a number or a tensor

    def __matmul__(self, other: Any) -> Any:
        return rd.matmul(self, other)  # type: ignore[arg-type]  # a number or a tensor

    __radd__, __rmul__ = __add__, __mul__  # for numbers: tensors on the left come through `__torch_function__`


NOT_SUPPORTED = {
    "*/vmap": "it is no tensor, so that there is nothing to batch",
    "addbmm as_strided tril triu/functionalization": "it is no tensor, so that it cannot be cloned to be written",
    "#writes": "it holds its diagonal only: write to to_dense()",
    "(*/attributes": "it is no tensor: it holds one, which is the parameter",
}


@implements(rd.add, rd.Tensor.add)
def add(a: Any, b: Any, **rest: Any) -> Any:
    if isinstance(a, DiagTensor) and isinstance(b, DiagTensor) and a.shape == b.shape:
        return DiagTensor(rd.add(a.diagonal, b.diagonal, **rest))
    return NotImplemented  # with a number, or a full matrix, zeros do not stay zeros


@implements(rd.sub, rd.Tensor.sub)
def sub(a: Any, b: Any, **rest: Any) -> Any:
    if isinstance(a, DiagTensor) and isinstance(b, DiagTensor) and a.shape == b.shape:
        return DiagTensor(rd.sub(a.diagonal, b.diagonal, **rest))
    return NotImplemented


@implements(rd.mul, rd.Tensor.mul)
def mul(a: Any, b: Any) -> Any:
    """Elementwise: a zero times anything is zero, so the result is diagonal whatever the other is."""
    if not isinstance(a, DiagTensor):
        a, b = b, a
    if isinstance(b, DiagTensor):
        return DiagTensor(a.diagonal * b.diagonal) if a.shape == b.shape else NotImplemented
    if isinstance(b, rd.Tensor) and b.dim() > 0:
        return DiagTensor(a.diagonal * b.diagonal()) if a.shape == b.shape else NotImplemented
    return DiagTensor(a.diagonal * b)


@implements(rd.matmul, rd.Tensor.matmul, rd.mm, rd.Tensor.mm)
def matmul(a: Any, b: Any) -> Any:
    """Scales the rows of what stands on the right, or the columns of what stands on the left."""
    left, right = isinstance(a, DiagTensor), isinstance(b, DiagTensor)
    n = len(a.diagonal if left else b.diagonal)
    if left and right:
        return DiagTensor(a.diagonal * b.diagonal) if a.shape == b.shape else NotImplemented
    if left and b.dim() == 1 and b.shape[0] == n:
        return a.diagonal * b
    if left and b.dim() > 1 and b.shape[-2] == n:
        return a.diagonal[:, None] * b
    if right and a.dim() > 0 and a.shape[-1] == n:
        return a * b.diagonal
    return NotImplemented  # the shapes do not fit: the dense product says so in its own words


@implements(rd.linalg.inv, rd.inverse)
def inv(a: Any) -> Any:
    # A singular matrix is refused by the dense inverse, in its own words.
    return NotImplemented if (a.diagonal == 0).any() else DiagTensor(1 / a.diagonal)


@implements(rd.linalg.solve)
def solve(a: Any, b: Any, *, left: bool = True) -> Any:
    known = isinstance(a, DiagTensor) and isinstance(b, rd.Tensor) and left
    return rd.linalg.inv(a) @ b if known and not (a.diagonal == 0).any() else NotImplemented


@implements(rd.linalg.det, rd.det)
def det(a: Any) -> Any:
    return a.diagonal.prod()


@implements(rd.trace)
def trace(a: Any) -> Any:
    return a.diagonal.sum()


@implements(rd.diagonal)
def diagonal(a: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    return a.diagonal if (offset, dim1, dim2) == (0, 0, 1) else NotImplemented


@implements(rd.t)
def t(a: Any) -> Any:
    return a
