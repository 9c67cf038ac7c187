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

import functools
import math
from collections.abc import Callable
from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import return_and_correct_aliasing

from .schemas import is_view, overloads, through_functional_form

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
        if func in RULES:
            result = RULES[func](*args, **kwargs)
        elif func in BOTH:
            result = both(func, args, kwargs)
        elif func._schema.is_mutable:
            result = through_functional_form(func, args, kwargs, functools.partial(written, func))
        elif (is_view(func) or rd.Tag.view_copy in func.tags) and func not in BITS:
            result = both(func, args, kwargs)
        else:  # in other operators, where it is made of some
            result = func.decompose(*args, **kwargs)
        if result is NotImplemented:
            raise NotImplementedError(
                f"{func}: ComplexPair has no rule that says it in real operators; use x.to_complex(), or add one"
            )
        pairs = pytree.tree_all(lambda x: isinstance(x, ComplexPair), result)
        return return_and_correct_aliasing(func, args, kwargs, result) if pairs else result


def written(func: Any, target: Any, result: Any) -> None:
    """Writes a result into a pair, or a real one into a plain tensor."""
    if isinstance(target, ComplexPair):
        target.re.copy_(real_part(result))
        target.im.copy_(imaginary_part(result))
    elif isinstance(result, ComplexPair):
        raise TypeError(f"{func}: a plain tensor cannot be written from a ComplexPair; use x.to_complex()")
    else:
        target.copy_(result)


def both(func: Any, args: Any, kwargs: Any) -> Any:
    """Does to both halves what moves elements or adds them up. Indices and masks are the same for both."""
    halves, dtype = [], kwargs.get("dtype")
    if dtype is not None and not dtype.is_complex:  # as a real dtype a complex number is its real part
        args = pytree.tree_map_only(ComplexPair, real_part, args)
        return func(*args, **kwargs)
    kwargs = kwargs if dtype is None else {**kwargs, "dtype": dtype.to_real()}
    for part in (real_part, imaginary_part):

        def half(x: Any, part: Any = part) -> Any:
            return part(x) if x.is_floating_point() or x.is_complex() else x

        half_args, half_kwargs = pytree.tree_map_only(rd.Tensor, half, (args, kwargs))
        halves.append(pytree.tree_flatten(func(*half_args, **half_kwargs)))
    (re, spec), (im, _) = halves
    return pytree.tree_unflatten([ComplexPair(a, b) for a, b in zip(re, im, strict=True)], spec)


def real_part(x: Any) -> Any:
    """Returns the real part of a pair, of a plain tensor or of a number."""
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
    return ComplexPair(x.re.clone(), -x.im) if isinstance(x, ComplexPair) else rd.conj(x)


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


def angle(x: Any) -> rd.Tensor:
    return rd.atan2(x.im, x.re)


def exp(x: Any) -> Any:
    """e^(a + bi) = e^a (cos b + i sin b)."""
    return polar(x.re.exp(), x.im)


def polar(size: Any, turn: Any) -> Any:
    return ComplexPair(size * turn.cos(), size * turn.sin())


def log(x: Any) -> Any:
    """log z = log |z| + i arg z."""
    return ComplexPair(magnitude(x).log(), angle(x))


def sqrt(x: Any) -> Any:
    """The root with a real part of at least zero; of the two halves the one without cancellation gives the other."""
    large = ((magnitude(x) + x.re.abs()) / 2).sqrt()
    small = (x.im.abs() / (2 * large)).masked_fill(large == 0, 0)
    right = x.re >= 0
    return ComplexPair(rd.where(right, large, small), rd.copysign(rd.where(right, small, large), x.im))


def power(x: Any, y: Any) -> Any:
    """z^w = e^(w log z), and by products where w is a small whole number."""
    if isinstance(y, int | float) and y == int(y) and 0 < y <= 8:
        return x if y == 1 else times(power(x, int(y) - 1), x)
    logs = log(x) if isinstance(x, ComplexPair) else rd.log(rd.as_tensor(x))
    return exp(times(y, logs)) if not isinstance(y, int | float) or y else aten.ones_like.default(x)


def sin(x: Any) -> Any:
    """sin(a + bi) = sin a cosh b + i cos a sinh b."""
    return ComplexPair(x.re.sin() * x.im.cosh(), x.re.cos() * x.im.sinh())


def sinh(x: Any) -> Any:
    return turned(sin(turned(x)), -1)


def cosh(x: Any) -> Any:
    """cosh(a + bi) = cosh a cos b + i sinh a sin b."""
    return ComplexPair(x.re.cosh() * x.im.cos(), x.re.sinh() * x.im.sin())


def asinh(x: Any) -> Any:
    return log(x + sqrt(x * x + 1))


def atanh(x: Any) -> Any:
    return (log(1 + x) - log(1 - x)) / 2


def acos(x: Any) -> Any:
    """pi / 2 - asin z, and asin z = -i asinh(iz)."""
    return math.pi / 2 - turned(asinh(turned(x)), -1)


def turned(x: Any, way: int = 1) -> Any:
    """i z, or -i z."""
    return ComplexPair(-x.im, x.re) if way == 1 else ComplexPair(x.im, -x.re)


def product(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The product of elements, one after another."""
    x, dim, keep = (x.flatten(), 0, False) if dim is None else (x, dim, keepdim)
    found = functools.reduce(times, x.unbind(dim)) if x.dim() else x
    return found.unsqueeze(dim) if keep else found


def variance(x: Any, dim: Any = None, **options: Any) -> rd.Tensor:
    """The mean of |z - mean|^2: that of both parts together."""
    return rd.var(x.re, dim, **options) + rd.var(x.im, dim, **options)


def by(part: Callable[[Any], Any], names: str) -> dict[Any, Callable[..., Any]]:
    """Rules for operators that need to see no more than one real tensor made of each pair."""

    def rule(op: Any, *args: Any, **options: Any) -> Any:
        return op(*pytree.tree_map_only(ComplexPair, part, args), **options)

    return {op: functools.partial(rule, op) for op in overloads(names)}


def converted(x: Any, *, dtype: Any = None, **look: Any) -> Any:
    if dtype is not None and not dtype.is_complex:
        return x.re.to(dtype, copy=True)
    return ComplexPair(*(part.to(dtype and dtype.to_real(), copy=True) for part in (x.re, x.im)))


def chosen(condition: Any, x: Any, y: Any) -> Any:
    return ComplexPair(*(rd.where(condition, part(x), part(y)) for part in (real_part, imaginary_part)))


def masked_fill(x: Any, mask: Any, value: Any) -> Any:
    return ComplexPair(x.re.masked_fill(mask, real_part(value)), x.im.masked_fill(mask, imaginary_part(value)))


def pad(x: Any, pads: Any, value: Any = 0) -> Any:
    return ComplexPair(*(aten.constant_pad_nd(part(x), pads, part(value)) for part in (real_part, imaginary_part)))


def equal(x: Any, y: Any) -> rd.Tensor:
    return (real_part(x) == real_part(y)) & (imaginary_part(x) == imaginary_part(y))


def added(rule: Callable[..., Any]) -> Callable[..., Any]:
    """`addmm` and its like: beta times a tensor, plus alpha times a product."""
    return lambda x, *factors, beta=1, alpha=1: add(x if beta == 1 else times(x, beta), rule(*factors), alpha=alpha)


def like(x: Any, value: Any = 0, *, dtype: Any = None, **look: Any) -> Any:
    """A pair of the same shape, filled with a number."""
    if dtype is not None and not dtype.is_complex:
        return rd.full_like(x.re, value, dtype=dtype)
    real = dtype and dtype.to_real()
    return ComplexPair(*(rd.full_like(x.re, part(value), dtype=real) for part in (real_part, imaginary_part)))


def view_as_real(x: Any) -> rd.Tensor:
    return rd.stack([x.re, x.im], -1)


NOT_SUPPORTED = {
    "@cholesky @lu @matri* @pseudo_inverse @solving @spectra": "use x.to_complex()",
    "@fft @stft @ranges": "makes complex tensors of PyTorch's own kind: use x.to_complex()",
    "@convolution* @*padding @folding @grid_sampling @recurrent": "a layer of real numbers",
    "*shuffle bilinear _trilinear": "a layer of real numbers",
    "@random @dropout": "draws numbers: draw both parts",
    "*_reduce scatter.*reduce scatter.value index_fill embedding_renorm_ renorm": "no line of the textbook",
    "log*exp sinc ldexp cumprod addbmm addr soft_margin_loss* *norm*dtype dist": "no line of the textbook",
    "var_mean std_mean block_diag allclose _foreach* nonzero_static": "no line of the textbook",
    "#inplace_view resize* set_* as_strided*": "goes by memory, and a pair has two",
    "slice_inverse/mixed": "goes by memory, and a pair has two",
    "*.dtype _neg_view*": "another meaning of the same bits, and a pair has others",
    "conj _conj mH matrix_H adjoint real imag view_as_real/aliasing": "made anew of the two parts, for reading",
}

RULES: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys(overloads("add.Tensor add.Scalar"), add),
    **dict.fromkeys(overloads("sub.Tensor sub.Scalar"), sub),
    **dict.fromkeys(overloads("rsub.Tensor rsub.Scalar"), rsub),
    **dict.fromkeys(overloads("mul.Tensor mul.Scalar"), times),
    **dict.fromkeys(overloads("div.Tensor div.Scalar"), div),
    **dict.fromkeys(overloads("pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar"), power),
    **dict.fromkeys(overloads("mm bmm dot mv"), mm),
    **dict.fromkeys(overloads("addmm addmv baddbmm"), added(mm)),
    aten.vdot.default: lambda x, y: mm(conj(x), y),
    aten.addcmul.default: lambda x, y, z, value=1: add(x, times(y, z), alpha=value),
    aten.addcdiv.default: lambda x, y, z, value=1: add(x, div(y, z), alpha=value),
    **dict.fromkeys(overloads("lerp.Scalar lerp.Tensor"), lambda x, y, weight: add(x, times(weight, y - x))),
    **dict.fromkeys(overloads("_conj _conj_copy conj_physical _conj_physical"), conj),
    aten.reciprocal.default: reciprocal,
    aten.rsqrt.default: lambda x: reciprocal(sqrt(x)),
    aten.abs.default: magnitude,
    aten.angle.default: angle,
    aten.sgn.default: sgn,
    aten.exp.default: exp,
    aten.expm1.default: lambda x: exp(x) - 1,
    aten.exp2.default: lambda x: exp(x * math.log(2)),
    aten.log.default: log,
    aten.log1p.default: lambda x: log(x + 1),
    aten.log2.default: lambda x: log(x) / math.log(2),
    aten.log10.default: lambda x: log(x) / math.log(10),
    aten.sqrt.default: sqrt,
    aten.sigmoid.default: lambda x: reciprocal(1 + exp(-x)),
    aten.sigmoid_backward.default: lambda grad, y: grad * conj(y * (1 - y)),
    aten.silu.default: lambda x: x * x.sigmoid(),
    aten.silu_backward.default: lambda grad, x: grad * x.sigmoid() * (1 + x * (1 - x.sigmoid())),
    aten.sin.default: sin,
    aten.cos.default: lambda x: cosh(turned(x)),
    aten.tan.default: lambda x: div(sin(x), x.cos()),
    aten.sinh.default: sinh,
    aten.cosh.default: cosh,
    aten.tanh.default: lambda x: div(sinh(x), cosh(x)),
    aten.tanh_backward.default: lambda grad, y: grad * conj(1 - y * y),
    aten.asinh.default: asinh,
    aten.acosh.default: lambda x: log(x + sqrt(x + 1) * sqrt(x - 1)),
    aten.atanh.default: atanh,
    aten.asin.default: lambda x: turned(asinh(turned(x)), -1),
    aten.acos.default: acos,
    aten.atan.default: lambda x: turned(atanh(turned(x)), -1),
    **dict.fromkeys(overloads("prod prod.dim_int"), product),
    aten.var.correction: variance,
    aten.std.correction: lambda x, dim=None, **options: variance(x, dim, **options).sqrt(),
    aten._to_copy.default: converted,
    **by(magnitude, "linalg_vector_norm norm.Scalar norm.ScalarOpt_dim"),
    **by(lambda x: ~equal(x, 0), "any any.dim any.dims all all.dim all.dims count_nonzero count_nonzero.dim_IntList"),
    **by(lambda x: ~equal(x, 0), "nonzero logical_not logical_and logical_or logical_xor"),
    **by(real_part, "is_same_size is_pinned"),
    **dict.fromkeys(overloads("eq.Tensor eq.Scalar"), equal),
    **dict.fromkeys(overloads("ne.Tensor ne.Scalar"), lambda x, y: ~equal(x, y)),
    aten.isnan.default: lambda x: x.re.isnan() | x.im.isnan(),
    aten.isinf.default: lambda x: x.re.isinf() | x.im.isinf(),
    aten.where.self: chosen,
    **dict.fromkeys(overloads("masked_fill.Scalar masked_fill.Tensor"), masked_fill),
    **dict.fromkeys(overloads("full_like fill.Scalar fill.Tensor"), like),
    aten.ones_like.default: lambda x, **look: like(x, 1, **look),
    aten.new_full.default: lambda x, size, value, **look: like(aten.new_empty.default(x, size), value, **look),
    aten.new_ones.default: lambda x, size, **look: like(aten.new_empty.default(x, size), 1, **look),
    aten.constant_pad_nd.default: pad,
    **dict.fromkeys(overloads("view_as_real view_as_real_copy"), view_as_real),
    aten._local_scalar_dense.default: lambda x: complex(x.re.item(), x.im.item()),
    aten.equal.default: lambda x, y: (
        rd.equal(real_part(x), real_part(y)) and rd.equal(imaginary_part(x), imaginary_part(y))
    ),
}

# The same bits under another dtype: these move no elements.
BITS = {*overloads("view.dtype view_copy.dtype _neg_view _neg_view_copy")}
BOTH = {
    *overloads(
        "cat stack clone copy zero zero_ zeros_like empty_like lift_fresh_copy _unsafe_view new_zeros new_empty "
        "new_empty_strided"
    ),
    *overloads("neg sum sum.dim_IntList mean mean.dim cumsum trace nan_to_num"),
    *overloads(
        "flip roll rot90 repeat tril triu diag_embed unsafe_split.Tensor unsafe_split_with_sizes unfold_backward"
    ),
    *overloads("select_backward slice_backward diagonal_backward slice_scatter select_scatter diagonal_scatter"),
    *overloads(
        "index.Tensor index_select gather take masked_select embedding index_put index_add scatter_add index_copy"
    ),
    *overloads("scatter.src masked_scatter masked_scatter_backward put embedding_dense_backward"),
}
