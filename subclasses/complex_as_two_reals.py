"""ComplexPair: complex numbers as two real tensors, for what knows no complex numbers.

    z = ComplexPair(rd.tensor([3.0]), rd.tensor([4.0]))
    z * z.conj()                # real 25, imaginary 0, by real products and sums alone
    z.abs()                     # tensor([5.])

What it teaches: a face may have another dtype than what is inside, and one operator may become several. A rule is the
line of the textbook, (a + bi)(c + di) = (ac - bd) + (ad + bc)i, in operators on reals; what only moves elements is done
to both halves. Autograd sees complex tensors, and its formulas, with their conjugates, come back here as the same few
operators, so that gradients need no rule. How serious it is: useful in earnest, as a way to run complex programs on a
backend that has only reals; operators without a rule are refused by name.

Read next: two_tensor.py, for the wrapper without the arithmetic; docs/complex.md, for gradients of complex numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import return_and_correct_aliasing

aten = rd.ops.aten
COMPLEX = {rd.float32: rd.complex64, rd.float64: rd.complex128}


class ComplexPair(rd.Tensor):
    """The complex tensor with real part `re` and imaginary part `im`, of one shape and dtype.

    What moves elements gives views. `conj()`, `real` and `imag` are copies: writing to them does not write to this.
    Errors: TypeError where they are not floating-point tensors of one dtype; ValueError where shapes differ.
    """

    re: rd.Tensor
    im: rd.Tensor

    @staticmethod
    def __new__(cls: type, re: rd.Tensor, im: rd.Tensor) -> Any:
        if re.dtype != im.dtype or re.dtype not in COMPLEX:
            raise TypeError(
                f"ComplexPair: expected two tensors of one dtype of {', '.join(map(str, COMPLEX))}, but got {re.dtype} "
                f"and {im.dtype}"
            )
        if re.shape != im.shape:
            raise ValueError(f"ComplexPair: re has shape {list(re.shape)}, but im has {list(im.shape)}")
        return rd.Tensor._make_wrapper_subclass(
            cls, re.size(), strides=re.stride(), dtype=COMPLEX[re.dtype], device=re.device
        )

    def __init__(self, re: rd.Tensor, im: rd.Tensor) -> None:
        self.re, self.im = re.detach(), im.detach()

    @staticmethod
    def of(z: rd.Tensor) -> ComplexPair:
        """The pair of a plain complex tensor."""
        return ComplexPair(z.real.clone(), z.imag.clone())

    def to_complex(self) -> rd.Tensor:
        """The plain complex tensor."""
        return rd.complex(self.re, self.im)

    def __repr__(self) -> str:
        return f"ComplexPair({self.re!r}, {self.im!r})"

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        """The names of the inner tensors, and what else it takes to build the wrapper again: nothing."""
        return ["re", "im"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, rd.Tensor], context: Any, size: Any, stride: Any) -> ComplexPair:
        """The pair of other parts."""
        return ComplexPair(inner["re"], inner["im"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in BOTH:
            result = both(func, args, kwargs)
        elif func in RULES:
            result = RULES[func](*args, **kwargs)
        elif func in IN_PLACE:
            result = args[0]
            if not isinstance(result, ComplexPair):
                raise TypeError(f"{func}: a plain tensor cannot be written from a ComplexPair; use x.to_complex()")
            new = IN_PLACE[func](*args, **kwargs)
            result.re.copy_(new.re)
            result.im.copy_(new.im)
        else:
            raise NotImplementedError(
                f"{func}: ComplexPair has no rule that says it in real operators; use x.to_complex(), or add one"
            )
        pairs = pytree.tree_all(lambda x: isinstance(x, ComplexPair), result)
        return return_and_correct_aliasing(func, args, kwargs, result) if pairs else result


def both(func: Any, args: Any, kwargs: Any) -> Any:
    """Does to both halves what moves elements or adds them up."""
    halves = []
    for half in (real_part, imaginary_part):
        half_args, half_kwargs = pytree.tree_map_only(rd.Tensor, half, (args, kwargs))
        halves.append(pytree.tree_flatten(func(*half_args, **half_kwargs)))
    (re, spec), (im, _) = halves
    return pytree.tree_unflatten([ComplexPair(a, b) for a, b in zip(re, im, strict=True)], spec)


def real_part(x: Any) -> Any:
    """That of a pair, of a plain tensor or of a number."""
    if isinstance(x, ComplexPair):
        return x.re
    return x.real if isinstance(x, rd.Tensor | complex) else x


def imaginary_part(x: Any) -> Any:
    if isinstance(x, ComplexPair):
        return x.im
    if isinstance(x, rd.Tensor):
        return x.imag if x.is_complex() else rd.zeros_like(x)
    return x.imag if isinstance(x, complex) else 0


def is_real(x: Any) -> bool:
    return not isinstance(x, complex) and not (isinstance(x, rd.Tensor) and x.is_complex())


# The rules: lines of the textbook ----------------------------------------------------------------------------------


def add(x: Any, y: Any, *, alpha: Any = 1) -> Any:
    """(a + bi) + (c + di) = (a + c) + (b + d)i; a real number has no imaginary part to add."""
    y = y if alpha == 1 else times(y, alpha)
    re = real_part(x) + real_part(y)
    if is_real(x) or is_real(y):
        im = imaginary_part(y if is_real(x) else x).to(re.dtype).expand(re.shape).contiguous()
    else:
        im = imaginary_part(x) + imaginary_part(y)
    return ComplexPair(re, im)


def sub(x: Any, y: Any, *, alpha: Any = 1) -> Any:
    return add(x, y, alpha=-alpha)


def rsub(x: Any, y: Any, alpha: Any = 1) -> Any:
    return add(y, x, alpha=-alpha)


def times(x: Any, y: Any, product: Callable[[Any, Any], Any] = lambda a, b: a * b) -> Any:
    """(a + bi)(c + di) = (ac - bd) + (ad + bc)i, for any product that is linear in both."""
    if is_real(x) and is_real(y):
        return product(x, y)
    a, b, c, d = real_part(x), imaginary_part(x), real_part(y), imaginary_part(y)
    if is_real(y):  # two products, not four; and an infinity does not meet a zero that is not there
        return ComplexPair(product(a, c), product(b, c))
    if is_real(x):
        return ComplexPair(product(a, c), product(a, d))
    return ComplexPair(product(a, c) - product(b, d), product(a, d) + product(b, c))


def mm(x: Any, y: Any) -> Any:
    return times(x, y, rd.matmul)


def conj(x: Any) -> Any:
    return ComplexPair(x.re.clone(), -x.im)


def reciprocal(x: Any) -> Any:
    """1 / z = conj(z) / |z|^2, divided by |z| twice, since its square may overflow where it does not."""
    size = magnitude(x)
    return ComplexPair(x.re / size / size, -x.im / size / size)


def div(x: Any, y: Any) -> Any:
    if is_real(y):
        return ComplexPair(x.re / y, x.im / y)
    return times(x, reciprocal(y) if isinstance(y, ComplexPair) else 1 / y)


def magnitude(x: Any) -> rd.Tensor:
    return rd.hypot(x.re, x.im)


def sgn(x: Any) -> Any:
    """z / |z|, and zero for zero: the gradient of |z|."""
    size = magnitude(x)
    size = size.masked_fill(size == 0, 1)
    return ComplexPair(x.re / size, x.im / size)


def exp(x: Any) -> Any:
    """e^(a + bi) = e^a (cos b + i sin b)."""
    size = x.re.exp()
    return ComplexPair(size * x.im.cos(), size * x.im.sin())


def view_as_real(x: Any) -> rd.Tensor:
    return rd.stack([x.re, x.im], -1)


NOT_SUPPORTED = {"*": "no rule says it in real operators: run it on x.to_complex(), or add one to the tables below"}

RULES: dict[Any, Callable[..., Any]] = {
    aten.add.Tensor: add,
    aten.sub.Tensor: sub,
    aten.rsub.Tensor: rsub,
    aten.rsub.Scalar: rsub,
    aten.mul.Tensor: times,
    aten.div.Tensor: div,
    aten.mm.default: mm,
    aten.bmm.default: mm,
    aten.dot.default: mm,
    aten.mv.default: mm,
    aten._conj.default: conj,
    aten.reciprocal.default: reciprocal,
    aten.abs.default: magnitude,
    aten.sgn.default: sgn,
    aten.exp.default: exp,
    aten.view_as_real.default: view_as_real,
    aten.ones_like.default: lambda x, **look: ComplexPair(rd.ones_like(x.re), rd.zeros_like(x.im)),
}
IN_PLACE: dict[Any, Callable[..., Any]] = {
    aten.add_.Tensor: add,
    aten.sub_.Tensor: sub,
    aten.mul_.Tensor: times,
    aten.div_.Tensor: div,
}
BOTH: set[Any] = {
    aten.alias.default,
    aten.cat.default,
    aten.clone.default,
    aten.detach.default,
    aten.expand.default,
    aten.mean.default,
    aten.mean.dim,
    aten.neg.default,
    aten.permute.default,
    aten.select.int,
    aten.select_backward.default,
    aten.slice.Tensor,
    aten.slice_backward.default,
    aten.split.Tensor,
    aten.squeeze.dim,
    aten.stack.default,
    aten.sum.default,
    aten.sum.dim_IntList,
    aten.t.default,
    aten.transpose.int,
    aten.unbind.int,
    aten.unsqueeze.default,
    aten.view.default,
    aten.zeros_like.default,
}
