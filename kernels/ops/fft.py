"""The functions of `redispatch.fft`, written in the three transforms of fourier.py.

    fft, ifft        of complex numbers (or of reals, all of whose frequencies are given)
    rfft, irfft      of reals, by the half of the frequencies that says all; and back
    hfft, ihfft      the other way round: of numbers with that symmetry, whose transform is real; and back
    ...2, ...n       the same over two dimensions, over several
    fftfreq, ...     the frequencies that belong to a transform's elements; fftshift puts frequency 0 in the middle

The inverse of a transform is its conjugate but for the factor, so that a transform of reals "backward" is the one
forward, conjugated; conjugates are lazy. `norm` says where the factor 1 / n goes: "backward" to the inverse, "forward"
to the other one, "ortho" half to each.

Read next: stft.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, dtypes, get_default_dtype, wrap_dim

from ..declare.declare import Operator
from ..declare.operator import kernel
from ..declare.public import public
from .complex_numbers import conj_physical_copy_op, conj_physical_op
from .constant_pad import constant_pad_nd_op
from .creation import empty_op
from .fourier import fft_c2c_op, fft_c2r_op, fft_r2c_op

NONE, ROOT, ALL = 0, 1, 2  # which factor a transform has: 1, 1 / sqrt(n), 1 / n

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
    return constant_pad_nd_op.functional(x, missing) if any(missing) else x


def check_points(n: int) -> None:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")


def one_dim(x: Any, dim: int) -> int:
    if not x._shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, len(x._shape))


def sizes_and_dims(x: Any, s: Any, dim: Any) -> tuple[list[int], list[int]]:
    """Over which dimensions a transform goes, and with how many points of each; -1 stands for all that there are."""
    dims = None if dim is None else [wrap_dim(d, len(x._shape)) for d in dim]
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
    """The same for a transform to reals; and how many reals it gives along the last of the dimensions."""
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


def complex_to_complex(name: str, out: Any, x: Any, n: int | None, dim: int, norm: Any, forward: bool) -> Any:
    check_output(name, out, True)
    d = one_dim(x, dim)
    points = x._shape[d] if n is None else n
    check_points(points)
    x = promoted(x, to_complex=True)
    x = x if n is None else resized(x, [d], [points])
    return ran(fft_c2c_op, out, x, [d], factor(norm, forward), forward)


def from_reals(name: str, out: Any, x: Any, n: int | None, dim: int, norm: Any, forward: bool, onesided: bool) -> Any:
    if x._dtype.is_complex:
        raise RuntimeError(f"{name} expects a real input tensor, but got {x._dtype.tensor_name}")
    check_output(name, out, True)
    d = one_dim(x, dim)
    points = x._shape[d] if n is None else n
    check_points(points)
    x = promoted(x)
    x = x if n is None else resized(x, [d], [points])
    args = x, [d], factor(norm, forward), onesided
    if forward:
        return ran(fft_r2c_op, out, *args)
    found: Any = fft_r2c_op.functional(*args)
    return found.conj() if out is None else ran(conj_physical_op, out, found)


def to_reals(name: str, out: Any, x: Any, n: int | None, dim: int, norm: Any, forward: bool) -> Any:
    check_output(name, out, False)
    d = one_dim(x, dim)
    points = 2 * (x._shape[d] - 1) if n is None else n
    check_points(points)
    x = promoted(x, to_complex=True)
    x = x if n is None else resized(x, [d], [points // 2 + 1])
    return ran(fft_c2r_op, out, x.conj() if forward else x, [d], factor(norm, forward), points)


def fft_1d(out: Any, x: Any, n: Any, dim: int, norm: Any) -> Any:
    """All frequencies of complex numbers, or of reals."""
    if x._dtype.is_complex:
        return complex_to_complex("fft", out, x, n, dim, norm, True)
    return from_reals("fft", out, x, n, dim, norm, True, False)


def ifft_1d(out: Any, x: Any, n: Any, dim: int, norm: Any) -> Any:
    """The numbers that have these frequencies."""
    if x._dtype.is_complex:
        return complex_to_complex("ifft", out, x, n, dim, norm, False)
    return from_reals("ifft", out, x, n, dim, norm, False, False)


def rfft_1d(out: Any, x: Any, n: Any, dim: int, norm: Any) -> Any:
    """The frequencies of reals that are not negative."""
    return from_reals("rfft", out, x, n, dim, norm, True, True)


def irfft_1d(out: Any, x: Any, n: Any, dim: int, norm: Any) -> Any:
    """The reals that have these frequencies and their conjugates: `n` of them, since it may be one more or less."""
    return to_reals("irfft", out, x, n, dim, norm, False)


def hfft_1d(out: Any, x: Any, n: Any, dim: int, norm: Any) -> Any:
    """The frequencies of numbers of which one half is given, the other half being their conjugates."""
    return to_reals("hfft", out, x, n, dim, norm, True)


def ihfft_1d(out: Any, x: Any, n: Any, dim: int, norm: Any) -> Any:
    """One half of the numbers that have these real frequencies."""
    return from_reals("ihfft", out, x, n, dim, norm, False, True)


# --- transforms over several dimensions -------------------------------------------------------------------------------


def over_complex(name: str, out: Any, x: Any, s: Any, dim: Any, norm: Any, forward: bool) -> Any:
    check_output(name, out, True)
    sizes, dims = sizes_and_dims(x, s, dim)
    x = resized(promoted(x, to_complex=True), dims, sizes)
    return ran(fft_c2c_op, out, x, dims, factor(norm, forward), forward)


def fft_nd(out: Any, x: Any, s: Any, dim: Any, norm: Any) -> Any:
    return over_complex("fftn", out, x, s, dim, norm, True)


def ifft_nd(out: Any, x: Any, s: Any, dim: Any, norm: Any) -> Any:
    return over_complex("ifftn", out, x, s, dim, norm, False)


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
    """The same back: the last dimension first."""
    check_output("ihfftn", out, True)
    x, dims = from_reals_nd("ihfftn", x, s, dim)
    way = factor(norm, False)
    half = fft_r2c_op.functional(x, dims[-1:], way, True)
    if not dims[:-1]:
        return half.conj() if out is None else ran(conj_physical_op, out, half)
    return ran(fft_c2c_op, out, conj_physical_copy_op.functional(half), dims[:-1], way, False)


# --- the operators ----------------------------------------------------------------------------------------------------

Transform = Callable[..., Any]  # (out or None, x, n or s, dim, norm)


def operator(name: str, arguments: str, transform: Transform) -> Operator:
    """The composite operator of a transform, and its out= form."""
    refused = "halves complex" if name.startswith(("rfft", "ihfft")) else "halves"
    op = Operator(f"fft_{name}(Tensor self, {arguments}, str? norm=None) -> Tensor", out="out", refuses=refused)

    def composite(self: Any, points: Any, dim: Any, norm: Any) -> Any:
        return transform(None, self, points, dim, norm)

    def composite_out(self: Any, points: Any, dim: Any, norm: Any, out: Any) -> Any:
        return transform(out, self, points, dim, norm)

    composite.__name__, composite_out.__name__ = transform.__name__, f"{transform.__name__}_out"
    op.implicit(composite)
    assert op.out is not None
    op.composite(op.out)(composite_out)
    if name not in ("hfft2", "ihfft2", "hfftn", "ihfftn"):
        op.autocast(cpu="fp32")
    return op


LINE = "SymInt? n=None, int dim=-1"
PLANE = "SymInt[1]? s=None, int[1] dim=[-2,-1]"
SPACE = "SymInt[1]? s=None, int[1]? dim=None"

fft_fft_op, fft_ifft_op = operator("fft", LINE, fft_1d), operator("ifft", LINE, ifft_1d)
fft_rfft_op, fft_irfft_op = operator("rfft", LINE, rfft_1d), operator("irfft", LINE, irfft_1d)
fft_hfft_op, fft_ihfft_op = operator("hfft", LINE, hfft_1d), operator("ihfft", LINE, ihfft_1d)
fft_fft2_op, fft_ifft2_op = operator("fft2", PLANE, fft_nd), operator("ifft2", PLANE, ifft_nd)
fft_rfft2_op, fft_irfft2_op = operator("rfft2", PLANE, rfft_nd), operator("irfft2", PLANE, irfft_nd)
fft_hfft2_op, fft_ihfft2_op = operator("hfft2", PLANE, hfft_nd), operator("ihfft2", PLANE, ihfft_nd)
fft_fftn_op, fft_ifftn_op = operator("fftn", SPACE, fft_nd), operator("ifftn", SPACE, ifft_nd)
fft_rfftn_op, fft_irfftn_op = operator("rfftn", SPACE, rfft_nd), operator("irfftn", SPACE, irfft_nd)
fft_hfftn_op, fft_ihfftn_op = operator("hfftn", SPACE, hfft_nd), operator("ihfftn", SPACE, ihfft_nd)

fft_fft, fft_ifft = (
    public(fft_fft_op, method=False, doc="Returns the discrete Fourier transform along one dimension."),
    public(fft_ifft_op, method=False, doc="Returns the inverse Fourier transform along one dimension."),
)
fft_rfft, fft_irfft = (
    public(fft_rfft_op, method=False, doc="Returns the nonnegative frequencies of reals along one dimension."),
    public(fft_irfft_op, method=False, doc="Returns the reals of these nonnegative frequencies along one dimension."),
)
fft_hfft, fft_ihfft = (
    public(
        fft_hfft_op, method=False, doc="Returns the real Fourier transform of a Hermitian signal along one dimension."
    ),
    public(
        fft_ihfft_op,
        method=False,
        doc="Returns half of the Hermitian signal whose transform is real along one dimension.",
    ),
)
fft_fft2, fft_ifft2 = (
    public(fft_fft2_op, method=False, doc="Returns the discrete Fourier transform along two dimensions."),
    public(fft_ifft2_op, method=False, doc="Returns the inverse Fourier transform along two dimensions."),
)
fft_rfft2, fft_irfft2 = (
    public(
        fft_rfft2_op, method=False, doc="Returns the Fourier transform of reals along two dimensions, half of the last."
    ),
    public(fft_irfft2_op, method=False, doc="Returns the reals that have this transform along two dimensions."),
)
fft_hfft2, fft_ihfft2 = (
    public(
        fft_hfft2_op, method=False, doc="Returns the real Fourier transform of a Hermitian signal along two dimensions."
    ),
    public(
        fft_ihfft2_op,
        method=False,
        doc="Returns half of the Hermitian signal whose transform is real along two dimensions.",
    ),
)
fft_fftn, fft_ifftn = (
    public(fft_fftn_op, method=False, doc="Returns the discrete Fourier transform along several dimensions."),
    public(fft_ifftn_op, method=False, doc="Returns the inverse Fourier transform along several dimensions."),
)
fft_rfftn, fft_irfftn = (
    public(
        fft_rfftn_op,
        method=False,
        doc="Returns the Fourier transform of reals along several dimensions, half of the last.",
    ),
    public(fft_irfftn_op, method=False, doc="Returns the reals that have this transform along several dimensions."),
)
fft_hfftn, fft_ihfftn = (
    public(
        fft_hfftn_op,
        method=False,
        doc="Returns the real Fourier transform of a Hermitian signal along several dimensions.",
    ),
    public(
        fft_ihfftn_op,
        method=False,
        doc="Returns half of the Hermitian signal whose transform is real along several dimensions.",
    ),
)

# --- frequencies ------------------------------------------------------------------------------------------------------

FACTORY = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
fft_fftfreq_out_op = Operator(
    "fft_fftfreq.out(int n, float d=1., *, Tensor(a!) out) -> Tensor(a!)", refuses="whole complex"
)
fft_rfftfreq_out_op = Operator(
    "fft_rfftfreq.out(int n, float d=1., *, Tensor(a!) out) -> Tensor(a!)", refuses="whole complex"
)


def check_frequencies(name: str, kind: Any) -> None:
    if kind.category < dtypes.FLOATING:
        raise RuntimeError(f"{name} requires a floating point or complex dtype")


@fft_fftfreq_out_op.explicit
def fftfreq_out(n, d, out):
    """0, 1, ... and then the negative ones, ..., -1, in cycles per unit; `d` is the distance of two points."""
    check_frequencies("fftfreq", out._dtype)
    ops.aten.arange.start_out(0, n, 1, out=out)
    ops.aten.arange.start_out(-(n // 2), 0, 1, out=out.narrow(0, (n + 1) // 2, n // 2))
    return out.mul_(1.0 / (n * d) if n and d else float("inf"))


@fft_rfftfreq_out_op.explicit
def rfftfreq_out(n, d, out):
    """Those that are not negative."""
    check_frequencies("rfftfreq", out._dtype)
    ops.aten.arange.start_out(0, n // 2 + 1, 1, out=out)
    return out.mul_(1.0 / (n * d) if n and d else float("inf"))


@kernel(f"fft_fftfreq(int n, float d=1., *, {FACTORY}) -> Tensor", face=False, refuses="whole complex")
def fft_fftfreq_op(n, d, dtype, layout, device, pin_memory):
    """Returns the frequencies of `n` samples that lie `d` apart."""
    check_frequencies("fftfreq", dtype or get_default_dtype())
    return fftfreq_out(n, d, empty_op.functional([n], dtype=dtype, device=device))


@kernel(f"fft_rfftfreq(int n, float d=1., *, {FACTORY}) -> Tensor", face=False, refuses="whole complex")
def fft_rfftfreq_op(n, d, dtype, layout, device, pin_memory):
    """Returns the nonnegative frequencies of `n` samples that lie `d` apart."""
    check_frequencies("rfftfreq", dtype or get_default_dtype())
    return rfftfreq_out(n, d, empty_op.functional([n // 2 + 1], dtype=dtype, device=device))


fft_fftfreq_op.out, fft_rfftfreq_op.out = fft_fftfreq_out_op.functional, fft_rfftfreq_out_op.functional
fft_fftfreq, fft_rfftfreq = public(fft_fftfreq_op, method=False), public(fft_rfftfreq_op, method=False)

fft_fftshift_op = Operator("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor")
fft_ifftshift_op = Operator("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor")


def rolled(x: Any, dim: Any, shift: Callable[[int], int]) -> Any:
    dims = [*range(x.dim())] if dim is None else list(dim)
    return x.roll([shift(x._shape[wrap_dim(d, x.dim())]) for d in dims], dims)


fft_fftshift_op.implicit(lambda self, dim: rolled(self, dim, lambda size: size // 2))
fft_ifftshift_op.implicit(lambda self, dim: rolled(self, dim, lambda size: (size + 1) // 2))
fft_fftshift, fft_ifftshift = (
    public(fft_fftshift_op, method=False, doc="Returns the frequencies with 0 moved to the middle."),
    public(fft_ifftshift_op, method=False, doc="Returns the frequencies with 0 moved from the middle to the front."),
)
