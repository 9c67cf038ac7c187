"""The functions of `redispatch.fft`, written in three transforms: from reals, to reals, and complex both ways.

    fft, ifft        of complex numbers (or of reals, all of whose frequencies are given)
    rfft, irfft      of reals, by the half of the frequencies that says all; and back
    hfft, ihfft      the other way round: of numbers with that symmetry, whose transform is real; and back
    ...2, ...n       the same over two dimensions, over several
    fftfreq, ...     the frequencies that belong to a transform's elements; fftshift puts frequency 0 in the middle

The inverse of a transform is its conjugate but for the factor, so that a transform of reals "backward" is the one
forward, conjugated; conjugates are lazy. `norm` says where the factor 1 / n goes: "backward" to the inverse, "forward"
to the other one, "ortho" half to each.

numpy's FFT computes the three, in float64 for float64 and else in float32. A transform is a symmetric matrix times the
elements, so that its derivative is the same transform again (see dispatch/autograd/formulas.py for what becomes of it
for complex numbers). Where half of what a transform of reals gives is left out, the derivative takes care of it.

Note [Transformed dimensions lie innermost]
The result is dense: the dimensions that are transformed change fastest, and among these, as among the others, the order
is that of the input's strides. It is PyTorch's, with the library that it uses on the CPU.

Read next: stft.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, as_numpy, dtype, dtypes, get_default_dtype, wrap_dim

from ..declare.declare import Operator
from ..declare.operator import CPU_FP32, EXPLICIT, composite, structured
from ..declare.public import public
from ..declare.structured import Meta
from .complex_numbers import conj_physical_copy_op, conj_physical_op
from .creation import empty_op
from .padding import constant_pad_nd

NONE, ROOT, ALL = 0, 1, 2  # `normalization`, which factor a transform has: 1, 1 / sqrt(n), 1 / n

# --- the three transforms ---------------------------------------------------------------------------------------------

COMPLEX = {"float32": dtypes.complex64, "float64": dtypes.complex128}
REAL = {"complex64": dtypes.float32, "complex128": dtypes.float64}

# numpy's words for a normalization. What it calls "forward" has the factor on the way there, none on the way back.
THERE: Any = ("backward", "ortho", "forward")
BACK: Any = ("forward", "ortho", "backward")


def in_kind(self: Tensor, kinds: dict[str, dtype], wanted: str) -> dtype:
    if self._dtype.name not in kinds:
        raise RuntimeError(f"Only supports {wanted} dtypes, but found: {self._dtype.tensor_name}")
    return kinds[self._dtype.name]


def axes_of(self: Tensor, dim: Sequence[int]) -> list[int]:
    """The dimensions from the front. RuntimeError for an empty one, or one twice."""
    axes = [wrap_dim(d, len(self._shape)) for d in dim]
    if len({*axes}) < len(axes):
        raise RuntimeError("FFT dims must be unique")
    if any(self._shape[d : d + 1] == (0,) for d in axes):
        raise RuntimeError("Invalid number of data points (0) specified")
    return axes


def scaling(words: Any, normalization: int) -> Any:
    if normalization not in (NONE, ROOT, ALL):
        raise RuntimeError(f"Expected a normalization of 0, 1 or 2, but got {normalization}")
    return words[normalization]


def strides_behind(
    shape: Sequence[int], stride: Sequence[int], axes: Sequence[int], last: int | None = None
) -> tuple[int, ...]:
    """The strides of a result of this shape: Note [Transformed dimensions lie innermost]. `last` changes fastest."""
    others = sorted((d for d in range(len(shape)) if d not in axes), key=lambda d: -stride[d])
    order = [*others, *sorted((d for d in axes if d != last), key=lambda d: -stride[d])]
    order += [] if last is None else [last]
    steps, step = [0] * len(shape), 1
    for d in reversed(order):
        steps[d] = step
        step *= max(shape[d], 1)
    return tuple(steps)


@structured(
    "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
    out="out",
    forward="linear",
    core=True,
    refuses="whole halves complex",
)
def fft_r2c_op(self, dim, normalization, onesided):
    kind = in_kind(self, COMPLEX, "floating-point")
    shape, axes = list(self._shape), axes_of(self, dim)
    last = axes[-1] if axes else None
    if onesided and last is not None:
        shape[last] = shape[last] // 2 + 1
    return Meta(tuple(shape), kind, self._device, strides_behind(shape, self._stride, axes, last))


@fft_r2c_op.body
def fft_r2c_body(out, self, dim, normalization, onesided):
    """The transform over `dim`; `onesided` leaves out the half of the last one that follows from the other."""
    axes, x = axes_of(self, dim), as_numpy(self)
    transform = np.fft.rfftn if onesided else np.fft.fftn
    as_numpy(out)[...] = transform(x, axes=axes, norm=scaling(THERE, normalization)) if axes else x


@structured(
    "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
    out="out",
    forward="linear",
    core=True,
    refuses="whole floating",
)
def fft_c2r_op(self, dim, normalization, last_dim_size):
    kind = in_kind(self, REAL, "complex")
    shape, axes = list(self._shape), axes_of(self, dim)
    stride = strides_behind(shape, self._stride, axes[:-1]) if axes[:-1] else self._stride
    if not axes or last_dim_size < 1:
        raise RuntimeError(f"Invalid number of data points ({last_dim_size if axes else 0}) specified")
    shape[axes[-1]] = last_dim_size
    return Meta(tuple(shape), kind, self._device, strides_behind(shape, stride, axes[-1:]))


@fft_c2r_op.body
def fft_c2r_body(out, self, dim, normalization, last_dim_size):
    """The inverse of a onesided transform of reals, which had `last_dim_size` elements along the last of `dim`."""
    axes = axes_of(self, dim)
    sizes = [self._shape[d] for d in axes[:-1]] + [last_dim_size]
    as_numpy(out)[...] = np.fft.irfftn(as_numpy(self), s=sizes, axes=axes, norm=scaling(BACK, normalization))


@structured(
    "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
    out="out",
    forward="linear",
    refuses="whole floating",
)
def fft_c2c_op(self, dim, normalization, forward):
    in_kind(self, REAL, "complex")
    strides = strides_behind(self._shape, self._stride, axes_of(self, dim))
    return Meta(self._shape, self._dtype, self._device, strides)


@fft_c2c_op.body
def fft_c2c_body(out, self, dim, normalization, forward):
    axes, x = axes_of(self, dim), as_numpy(self)
    transform, norms = (np.fft.fftn, THERE) if forward else (np.fft.ifftn, BACK)
    as_numpy(out)[...] = transform(x, axes=axes, norm=scaling(norms, normalization)) if axes else x


@fft_c2c_op.gradient("self")
def fft_c2c_gradient(grad, dim, normalization, forward):
    return fft_c2c_op.functional(grad, dim, normalization, forward)


@fft_r2c_op.gradient("self", for_complex=True)
def fft_r2c_gradient(grad, self_shape, dim, normalization, onesided):
    """The inverse transform of what is there; zeros stand for the half that was left out. Of it, the real part."""
    missing = self_shape[dim[-1]] - grad.shape[dim[-1]] if onesided else 0
    if missing:
        shape = [*grad.shape]
        shape[dim[-1]] = missing
        grad = ops.aten.cat.default([grad, grad.new_zeros(shape)], dim[-1])
    return fft_c2c_op.functional(grad, dim, normalization, False).real


@fft_c2r_op.gradient("self", for_complex=True)
def fft_c2r_gradient(grad, dim, normalization, last_dim_size):
    """The onesided transform. What the inverse has counted twice, since the other half follows from it, is doubled."""
    found = fft_r2c_op.functional(grad, dim, normalization, True)
    last, twice = dim[-1], last_dim_size - found.shape[dim[-1]]
    if twice <= 0:
        return found
    once, rest = found.narrow(last, 0, 1), found.shape[last] - 1 - twice
    parts = [once, found.narrow(last, 1, twice) * 2]
    return ops.aten.cat.default([*parts, found.narrow(last, 1 + twice, rest)] if rest else parts, last)


# --- arguments --------------------------------------------------------------------------------------------------------


def factor(norm: str | None, forward: bool) -> int:
    """The normalization that a word stands for."""
    match norm:
        case None | "backward":
            return NONE if forward else ALL
        case "forward":
            return ALL if forward else NONE
        case "ortho":
            return ROOT
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def promoted(x: Any, to_complex: bool = False) -> Any:
    """The tensor in a dtype that can be transformed."""
    kind = get_default_dtype() if x._dtype.category < dtypes.FLOATING else x._dtype
    if kind.itemsize == 2:
        raise RuntimeError(f"Unsupported dtype {kind.tensor_name}")
    kind = kind.to_complex() if to_complex else kind
    return x if kind is x._dtype else x.to(kind)


def resized(x: Any, dims: Sequence[int], sizes: Sequence[int]) -> Any:
    """Cut off, or filled up with zeros, to these sizes."""
    missing = [0] * (2 * x.dim())
    for d, size in zip(dims, sizes, strict=True):
        if x.shape[d] < size:
            missing[-2 * d - 1] = size - x.shape[d]
        elif x.shape[d] > size:
            x = x.narrow(d, 0, size)
    return constant_pad_nd.op.functional(x, missing) if any(missing) else x


def check_points(n: int) -> None:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")


def one_dim(x: Any, dim: int) -> int:
    return wrap_dim(dim, len(x._shape), wrap_scalar=False)


def sizes_and_dims(x: Any, s: Any, dim: Any) -> tuple[list[int], list[int]]:
    """Over which dimensions a transform goes, and with how many points of each; -1 stands for all that there are."""
    dims = None if dim is None else [one_dim(x, d) for d in dim]
    if dims is not None and len(set(dims)) < len(dims):
        raise RuntimeError("FFT dims must be unique")
    if s is not None:
        if dims is not None and len(dims) != len(s):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        if len(s) > len(x._shape):
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {len(x._shape)} dimensions.")
        dims = [*range(len(x._shape) - len(s), len(x._shape))] if dims is None else dims
        sizes = [x._shape[d] if n == -1 else n for n, d in zip(s, dims, strict=True)]
    else:
        dims = [*range(len(x._shape))] if dims is None else dims
        sizes = [x._shape[d] for d in dims]
    for n in sizes:
        check_points(n)
    return sizes, dims


def sizes_back(name: str, x: Any, s: Any, dim: Any) -> tuple[list[int], list[int], int]:
    """Returns sizes and dimensions of a transform to reals, and how many reals it gives along the last of these."""
    sizes, dims = sizes_and_dims(x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    last = 2 * (x._shape[dims[-1]] - 1) if s is None or s[-1] == -1 else sizes[-1]
    check_points(last)
    return [*sizes[:-1], last // 2 + 1], dims, last


def check_output(name: str, out: Tensor | None, is_complex: bool) -> None:
    if out is not None and (out._dtype.is_complex if is_complex else out._dtype.is_floating_point) is False:
        kind = "complex" if is_complex else "floating point"
        raise RuntimeError(f"{name} expects a {kind} output tensor, but got {out._dtype.tensor_name}")


def ran(op: Operator, out: Tensor | None, *args: Any) -> Any:
    """The result of a transform; in `out`, if there is one."""
    return op.functional(*args) if out is None else op.out(*args, out=out)  # type: ignore[misc]  # it has that form


# --- transforms along one dimension -----------------------------------------------------------------------------------

RESULT, INPUT = "result", "input"  # of which half is left out, since it follows from the rest


def over_line(name: str, forward: bool, half: str, out: Any, x: Any, n: int | None, dim: int, norm: Any) -> Any:
    """A transform along one dimension: from reals, if the half of the result is left out; to reals, if that of the
    input is, of which there are `n`, since it may be one more or less."""
    if half == RESULT and x._dtype.is_complex:
        raise RuntimeError(f"{name} expects a real input tensor, but got {x._dtype.tensor_name}")
    check_output(name, out, half != INPUT)
    d = one_dim(x, dim)
    size = 2 * (x._shape[d] - 1) if half == INPUT else x._shape[d]
    points = size if n is None else n
    check_points(points)
    of_complex = half == INPUT or x._dtype.is_complex
    x = promoted(x, to_complex=of_complex)
    x = x if n is None else resized(x, [d], [points // 2 + 1 if half == INPUT else points])
    way = factor(norm, forward)
    if half == INPUT:
        return ran(fft_c2r_op, out, x.conj() if forward else x, [d], way, points)
    if of_complex:
        return ran(fft_c2c_op, out, x, [d], way, forward)
    if forward:
        return ran(fft_r2c_op, out, x, [d], way, half == RESULT)
    found: Any = fft_r2c_op.functional(x, [d], way, half == RESULT)
    return found.conj() if out is None else ran(conj_physical_op, out, found)


# --- transforms over several dimensions -------------------------------------------------------------------------------


def all_complex(forward: bool, out: Any, x: Any, s: Any, dim: Any, norm: Any) -> Any:
    check_output("fftn" if forward else "ifftn", out, True)
    sizes, dims = sizes_and_dims(x, s, dim)
    x = resized(promoted(x, to_complex=True), dims, sizes)
    return ran(fft_c2c_op, out, x, dims, factor(norm, forward), forward)


def from_reals_nd(name: str, x: Any, s: Any, dim: Any) -> tuple[Any, list[int]]:
    """The reals to be transformed, and over which dimensions."""
    sizes, dims = sizes_and_dims(x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    return resized(promoted(x), dims, sizes), dims


def rfft_nd(out: Any, x: Any, s: Any, dim: Any, norm: Any) -> Any:
    if x._dtype.is_complex:
        raise RuntimeError(f"rfftn expects a real-valued input tensor, but got {x._dtype.tensor_name}")
    check_output("rfftn", out, True)
    x, dims = from_reals_nd("rfftn", x, s, dim)
    return ran(fft_r2c_op, out, x, dims, factor(norm, True), True)


def irfft_nd(out: Any, x: Any, s: Any, dim: Any, norm: Any) -> Any:
    check_output("irfftn", out, False)
    sizes, dims, last = sizes_back("irfftn", x, s, dim)
    x = resized(promoted(x, to_complex=True), dims, sizes)
    return ran(fft_c2r_op, out, x, dims, factor(norm, False), last)


def hfft_nd(out: Any, x: Any, s: Any, dim: Any, norm: Any) -> Any:
    """Complex transforms over all dimensions but the last, which then gives reals."""
    check_output("hfftn", out, False)
    sizes, dims, last = sizes_back("hfftn", x, s, dim)
    x, way = resized(promoted(x, to_complex=True), dims, sizes), factor(norm, True)
    if dims[:-1]:
        x = fft_c2c_op.functional(x, dims[:-1], way, True)
    return ran(fft_c2r_op, out, x.conj(), dims[-1:], way, last)


def ihfft_nd(out: Any, x: Any, s: Any, dim: Any, norm: Any) -> Any:
    """Transforms back: the last dimension first."""
    check_output("ihfftn", out, True)
    x, dims = from_reals_nd("ihfftn", x, s, dim)
    way = factor(norm, False)
    half = fft_r2c_op.functional(x, dims[-1:], way, True)
    if not dims[:-1]:
        return half.conj() if out is None else ran(conj_physical_op, out, half)
    return ran(fft_c2c_op, out, conj_physical_copy_op.functional(half), dims[:-1], way, False)


# --- the operators ----------------------------------------------------------------------------------------------------


def transform(name: str, arguments: str, body: Callable[..., Any], doc: str, **facts: Any) -> Any:
    """The public function of a transform, of which `body(out or None, x, n or s, dim, norm)` gives the result."""

    def into_out(self: Any, points: Any, dim: Any, norm: Any, out: Any) -> Any:
        return body(out, self, points, dim, norm)

    @composite(
        f"fft_{name}(Tensor self, {arguments}, str? norm=None) -> Tensor",
        out="out",
        out_by=lambda op: op.composite(op.out)(into_out),
        refuses="halves complex" if name.startswith(("rfft", "ihfft")) else "halves",
        doc=doc,
        **facts,
    )
    def functional(self, points, dim, norm):
        return body(None, self, points, dim, norm)

    return functional


def line(name: str, forward: bool, half: str, doc: str) -> Any:
    """A transform along one dimension."""
    arguments = "SymInt? n=None, int dim=-1"
    body = partial(over_line, name, forward, half)
    return transform(name, arguments, body, f"Returns {doc} along one dimension.", autocast=CPU_FP32)


def several(name: str, body: Callable[..., Any], doc: str, **facts: Any) -> tuple[Any, Any]:
    """A transform over two dimensions, and one over any."""
    return (
        transform(f"{name}2", "SymInt[1]? s=None, int[1] dim=[-2,-1]", body, doc.format("two dimensions"), **facts),
        transform(f"{name}n", "SymInt[1]? s=None, int[1]? dim=None", body, doc.format("several dimensions"), **facts),
    )


fft_fft = line("fft", True, "", "the discrete Fourier transform")
fft_ifft = line("ifft", False, "", "the inverse Fourier transform")
fft_rfft = line("rfft", True, RESULT, "the nonnegative frequencies of reals")
fft_irfft = line("irfft", False, INPUT, "the reals of these nonnegative frequencies")
fft_hfft = line("hfft", True, INPUT, "the real Fourier transform of a Hermitian signal")
fft_ihfft = line("ihfft", False, RESULT, "half of the Hermitian signal whose transform is real")
fft_fft2, fft_fftn = several(
    "fft", partial(all_complex, True), "Returns the discrete Fourier transform along {}.", autocast=CPU_FP32
)
fft_ifft2, fft_ifftn = several(
    "ifft", partial(all_complex, False), "Returns the inverse Fourier transform along {}.", autocast=CPU_FP32
)
fft_rfft2, fft_rfftn = several(
    "rfft", rfft_nd, "Returns the Fourier transform of reals along {}, half of the last.", autocast=CPU_FP32
)
fft_irfft2, fft_irfftn = several(
    "irfft", irfft_nd, "Returns the reals that have this transform along {}.", autocast=CPU_FP32
)
fft_hfft2, fft_hfftn = several("hfft", hfft_nd, "Returns the real Fourier transform of a Hermitian signal along {}.")
fft_ihfft2, fft_ihfftn = several(
    "ihfft", ihfft_nd, "Returns half of the Hermitian signal whose transform is real along {}."
)

# --- frequencies ------------------------------------------------------------------------------------------------------

FACTORY = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


def frequencies(name: str, negative: bool, doc: str) -> Any:
    """A function that gives frequencies in cycles per unit, where `d` is the distance of two points: 0, 1, ..., and
    then the negative ones, ..., -1, or none of these."""
    schema = f"fft_{name}(int n, float d=1., *, {FACTORY}) -> Tensor"
    op = Operator(schema, out="out", refuses="whole complex", doc=doc)

    def check(kind: Any) -> None:
        if kind.category < dtypes.FLOATING:
            raise RuntimeError(f"{name} requires a floating point or complex dtype")

    def count(n: int) -> int:
        return n if negative else n // 2 + 1

    @op.kernel_out(EXPLICIT)
    def into_out(n, d, out):
        check(out._dtype)
        ops.aten.arange.start_out(0, count(n), 1, out=out)
        if negative:
            ops.aten.arange.start_out(-(n // 2), 0, 1, out=out.narrow(0, (n + 1) // 2, n // 2))
        return out.mul_(1.0 / (n * d) if n and d else float("inf"))

    @op.explicit
    def made(n, d, dtype, layout, device, pin_memory):
        check(dtype or get_default_dtype())
        return into_out(n, d, empty_op.functional([count(n)], dtype=dtype, device=device))

    return public(op)


fft_fftfreq = frequencies("fftfreq", True, "Returns the frequencies of `n` samples that lie `d` apart.")
fft_rfftfreq = frequencies("rfftfreq", False, "Returns the nonnegative frequencies of `n` samples that lie `d` apart.")


def rolled(x: Any, dim: Any, shift: Callable[[int], int]) -> Any:
    dims = [*range(x.dim())] if dim is None else list(dim)
    return x.roll([shift(x._shape[wrap_dim(d, x.dim())]) for d in dims], dims)


@composite("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor")
def fft_fftshift(self, dim):
    """Returns the frequencies with 0 moved to the middle."""
    return rolled(self, dim, lambda size: size // 2)


@composite("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor")
def fft_ifftshift(self, dim):
    """Returns the frequencies with 0 moved from the middle to the front."""
    return rolled(self, dim, lambda size: (size + 1) // 2)
