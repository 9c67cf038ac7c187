"""Integrals and slopes of sampled functions: trapezoid, trapz, cumulative_trapezoid, gradient.

All are written in other operators. Samples lie `dx` apart, or at the places `x`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch.dispatch.tensor import Tensor, wrap_dim

from ..declare.operator import composite, same_as
from ..declare.public import public
from .arithmetic import div_scalar_op, mul_scalar_op
from .shape import cat_op

# --- trapezoids -------------------------------------------------------------------------------------------------------


def check_samples(name: str, y: Any, dim: int, x: Any = None) -> int:
    """The dimension of the samples, from the front."""
    if not y.dim():
        raise no_dimensions(dim)
    axis = wrap_dim(dim, y.dim())
    if y.dtype.name == "bool" or (x is not None and x.dtype.name == "bool"):
        which = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(f"{name}: received a bool input for {which}, but bool is not supported")
    return axis


def no_dimensions(dim: int) -> IndexError:
    return IndexError(f"Dimension specified as {dim} but tensor has no dimensions")


def check_distance(name: str, dx: Any) -> None:
    if isinstance(dx, bool | complex):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")


def distances(name: str, y: Any, x: Any, axis: int) -> Any:
    """The distances of the places, in a shape that broadcasts with `y`. RuntimeError for another number of them."""
    if x.dim() == 1:
        if x.shape[0] != y.shape[axis]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        x = x.reshape([-1 if d == axis else 1 for d in range(y.dim())])
    elif x.dim() < y.dim():
        x = x.reshape([*(1,) * (y.dim() - x.dim()), *x.shape])
    return right_of(x, axis) - left_of(x, axis)


times, over = mul_scalar_op.functional, div_scalar_op.functional


def left_of(x: Any, axis: int) -> Any:
    """Without the last entry along a dimension: the left ends of the intervals."""
    return x.narrow(axis, 0, max(x.shape[axis] - 1, 0))


def right_of(x: Any, axis: int) -> Any:
    start = min(x.shape[axis], 1)
    return x.narrow(axis, start, x.shape[axis] - start)


@composite("trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", refuses="bool")
def trapezoid_op(y, dx, dim):
    """Returns the integral where all intervals are `dx` wide: each sample counts once, the first and the last half."""
    axis = check_samples("trapezoid", y, dim)
    check_distance("trapezoid", dx)
    if not y.shape[axis]:
        return y.sum(axis) * 0.0
    ends = times(y.select(axis, 0) + y.select(axis, -1), 0.5)
    return times(y.sum([axis]) - ends, dx)


@composite("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", refuses="bool")
def cumulative_op(y, dx, dim):
    axis = check_samples("cumulative_trapezoid", y, dim)
    check_distance("cumulative_trapezoid", dx)
    return times(left_of(y, axis) + right_of(y, axis), dx / 2.0).cumsum(axis)


@composite(
    "trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
    refuses="bool",
    also=(trapezoid_op,),
    doc="Returns the integral along `dim` by the trapezoidal rule.",
)
def trapezoid(y, x, dim):
    """The sum over all intervals of their width times the mean of their ends."""
    axis = check_samples("trapezoid", y, dim, x)
    if not y.shape[axis]:
        return y.sum(axis) * 0.0
    width = distances("trapezoid", y, x, axis)
    return over(((left_of(y, axis) + right_of(y, axis)) * width).sum([axis]), 2.0)


trapz = public(
    same_as("trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", trapezoid.op),
    same_as("trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor", trapezoid_op),
    doc="Returns the integral along `dim` by the trapezoidal rule, by numpy's name.",
)


@composite("cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", refuses="bool", also=(cumulative_op,))
def cumulative_trapezoid(y, x, dim):
    """Returns the integral along `dim` from the first sample up to each of the others."""
    axis = check_samples("cumulative_trapezoid", y, dim, x)
    width = distances("cumulative_trapezoid", y, x, axis)
    return over((width * (left_of(y, axis) + right_of(y, axis))).cumsum(axis), 2.0)


# --- gradient ---------------------------------------------------------------------------------------------------------


def overloads(*schemas: str) -> Any:
    """A decorator that declares overloads of `gradient`, by their names and arguments, by one function."""
    given = [
        f"gradient.{schema.replace('(', '(Tensor self, *, ')}, int edge_order=1) -> Tensor[]" for schema in schemas
    ]
    return lambda function: [composite(schema, refuses="bool uint8")(function) for schema in given]


@overloads("scalarint(Scalar? spacing=None, int? dim=None", "scalararray(Scalar spacing, int[] dim")
def apart(self, spacing, dim, edge_order):
    """The slope along each dimension, of samples that lie one distance apart."""
    dims = dims_of(self, dim)
    return slopes(self, [1 if spacing is None else spacing] * len(dims), dims, edge_order)


@overloads("array(int[] dim")
def along(self, dim, edge_order):
    return slopes(self, [1] * len(dim), dims_of(self, dim), edge_order)


@overloads(
    "scalarrayint(Scalar[] spacing, int? dim=None",
    "scalarrayarray(Scalar[] spacing, int[] dim",
    "tensorarrayint(Tensor[] spacing, int? dim=None",
    "tensorarray(Tensor[] spacing, int[] dim",
)
def each_apart(self, spacing, dim, edge_order):
    """Returns the slopes with a distance, or with the places of the samples, for each dimension."""
    if dim is None and len(spacing) != self.dim():
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = "
            f"{self.dim()}', since dim argument was not given, but got a list of length {len(spacing)}"
        )
    asked = 1 if isinstance(dim, int) else self.dim() if dim is None else len(dim)
    if len(spacing) != asked:
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the "
            f"same length, but got a spacing argument of length {len(spacing)} and a dim argument of length {asked}."
        )
    return slopes(self, spacing, dims_of(self, dim), edge_order)


def dims_of(self: Any, dim: Any) -> list[int]:
    """The dimensions along which slopes are asked for."""
    if dim is None:
        return list(range(self.dim()))
    if not self.dim():
        raise no_dimensions(dim if isinstance(dim, int) else dim[0])
    dims = [wrap_dim(d, self.dim()) for d in ([dim] if isinstance(dim, int) else dim)]
    for d in dims:
        if dims.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return dims


def slopes(self: Any, spacing: Sequence[Any], dims: Sequence[int], edge_order: int) -> list[Any]:
    if self.dtype.name == "uint8":
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    for d in dims:
        if self.shape[d] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return [
        (slope_between if isinstance(apart, Tensor) else slope)(self, apart, d, edge_order)
        for apart, d in zip(spacing, dims, strict=True)
    ]


def slope(self: Any, apart: Any, dim: int, edge_order: int) -> Any:
    """Inside half the difference of the neighbours; at the edges a one-sided difference, by two or three samples."""

    def at(place: int) -> Any:
        return self.narrow(dim, place % self.shape[dim], 1)

    count = self.shape[dim] - 2
    inside = over(self.narrow(dim, 2, count) - self.narrow(dim, 0, count), apart)
    if edge_order == 1:
        first, last = at(1) - at(0), at(-1) - at(-2)
    else:
        first = times(at(1), 2) - (times(at(2), 0.5) + times(at(0), 1.5))
        last = times(at(-1), 1.5) - times(at(-2), 2) + times(at(-3), 0.5)
    return joined([over(first, apart), over(inside, 2), over(last, apart)], dim)


def slope_between(self: Any, places: Any, dim: int, edge_order: int) -> Any:
    """Returns the slopes at uneven places, each that of the parabola through three samples.

    Source: numpy.gradient, whose documentation derives the coefficients.
    """
    shape = [-1 if d == dim else 1 for d in range(self.dim())]
    width = right_of(places, 0) - left_of(places, 0)
    before, behind = left_of(width, 0), right_of(width, 0)

    def at(place: int) -> Any:
        return self.narrow(dim, place % self.shape[dim], 1)

    count = self.shape[dim] - 2
    factors = (
        -behind / (before * (before + behind)),
        (behind - before) / (before * behind),
        before / (behind * (before + behind)),
    )
    inside = sum_of([f.reshape(shape) * self.narrow(dim, k, count) for k, f in enumerate(factors)])
    if edge_order == 1:
        first, last = (at(1) - at(0)) / width[0], (at(-1) - at(-2)) / width[-1]
    else:
        a, b = width[0], width[1]
        first = at(0) * -((2 * a + b) / (a * (a + b))) + at(1) * ((a + b) / (a * b)) - at(2) * (a / (b * (a + b)))
        a, b = width[-1], width[-2]
        last = at(-1) * ((2 * a + b) / (a * (a + b))) - at(-2) * ((a + b) / (a * b)) + at(-3) * (a / (b * (a + b)))
    return joined([first, inside, last], dim)


def sum_of(terms: Sequence[Any]) -> Any:
    first, second, third = terms
    return first + second + third


def joined(parts: list[Any], dim: int) -> Any:
    return cat_op.functional(parts, dim)


gradient = public(
    *apart,
    *along,
    *each_apart,
    method=False,
    doc="Returns the slope of samples along each dimension, by differences of their neighbours.",
)
