"""Sampling images at the places that a grid gives, and the grids that affine maps make.

A grid has a point for each element of the result, with coordinates from -1 to 1: width first, then height (and depth).
`grid_sampler` chooses by the images' dimensions. Read next: kernels/cpu/resample.py.

Note [Sampling by gathers]
What second and further derivatives are taken of is written in operators that have derivatives. Each axis of a point has
a few terms (two on a line, one at the nearest element, four on a cubic), each an element and its weight; the value of a
point is the sum over all products of terms. The kernels say the same in loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.autograd import pulled_back
from redispatch.dispatch.tensor import Tensor, empty, wrap_dim
from redispatch.kernels.cpu.resample import BORDER, CUBIC, NEAREST, REFLECTION, TERMS, Points, far, locate, near
from redispatch.kernels.declare.out_forms import copy_into_out

from ..declare.declare import Operator, taking
from ..declare.operator import in_parts
from ..declare.public import public
from ..declare.structured import not_implemented
from .convolution import as_dtype, compute_dtype, dense, zeros
from .ranges import linspace

HOW = "int interpolation_mode, int padding_mode, bool align_corners"
WAYS = ("interpolation_mode", "padding_mode", "align_corners")

# --- sampling --------------------------------------------------------------------------------------------------------


def check_grid(input: Tensor, grid: Tensor, dims: int | None, mode: int) -> None:
    """RuntimeError, in PyTorch's words, where a grid is not for such images."""
    sizes = f"but got input with sizes {list(input._shape)} and grid with sizes {list(grid._shape)}"
    axes = len(input._shape) - 2
    for x in (input, grid):
        wrap_dim(0, len(x._shape), wrap_scalar=False)
    if input._shape[0] != grid._shape[0]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, {sizes}")
    if grid._shape[-1] != axes:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {axes} in last dimension, but got grid with sizes "
            f"{list(grid._shape)}"
        )
    for d, size in enumerate(input._shape[2:], 2):
        if size <= 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{list(input._shape)} with dimension {d} being empty"
            )
    if axes not in ((2, 3) if dims is None else (dims,)) or len(grid._shape) != len(input._shape):
        wanted = f"{4 if dims == 2 else 5}D"
        raise RuntimeError(f"grid_sampler(): expected {wanted} input and grid with same number of dimensions, {sizes}")
    if axes == 3 and mode == CUBIC:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")


def check_dtypes(kernel: str, input: Tensor, *others: Tensor) -> None:
    if not input._dtype.is_floating_point:
        raise not_implemented(kernel, input._dtype)
    for other in others:
        if other._dtype is not input._dtype:
            raise RuntimeError(f"expected scalar type {input._dtype.tensor_name} but found {other._dtype.tensor_name}")


def located(grid: Tensor, input: Tensor, mode: int, padding: int, align: bool) -> Points:
    how = (mode if mode in range(len(TERMS)) else CUBIC, padding, align)
    return locate(dense(grid, compute_dtype(grid))._operand, tuple(input._shape), *how)


def computed_gradients(
    grad_output: Tensor, input: Tensor, grid: Tensor, how: tuple[int, int, bool], output_mask: Sequence[bool]
) -> tuple[Tensor | None, Tensor]:
    """The gradients of the image and of the grid; zeros for a grid that the mask leaves out."""
    compute, on = compute_dtype(input), input._device
    of_input = zeros(input._shape, compute, on) if output_mask[0] else None
    of_grid = zeros(grid._shape, compute, on)
    if grad_output._shape.numel():
        points, grad = located(grid, input, *how), dense(grad_output, compute)._operand
        if of_input is not None:
            points.put_back(of_input._operand, grad)
        if output_mask[1]:
            points.move(of_grid._operand, grad, dense(input, compute)._operand)
    return None if of_input is None else as_dtype(of_input, input._dtype), as_dtype(of_grid, grid._dtype)


def second_gradients(
    grads: Any,
    grad_output: Any,
    input: Any,
    grid: Any,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: Sequence[bool],
    needs: Sequence[bool],
) -> Any:
    """Returns the gradients of what sends a gradient back through the sampling."""
    how = (interpolation_mode, padding_mode, align_corners)
    moves = output_mask[1] and interpolation_mode != NEAREST  # the nearest element stays the same one

    def sampling(input: Any, grid: Any) -> Any:
        return [sampled_by_gathers(input, grid, *how)]

    def backward(grad: Any, input: Any, grid: Any) -> Any:
        of_input, of_grid = pulled_back(sampling, (input, grid), [grad])
        return of_input if output_mask[0] else None, of_grid if moves else grid * 0

    return pulled_back(backward, (grad_output, input, grid), grads, needs)


def declare(dims: int, kernel: str, backward_kernel: str) -> tuple[Operator, Any]:
    """`grid_sampler_2d`, for two dimensions."""
    name, images = f"grid_sampler_{dims}d", "images" if dims == 2 else "volumes"
    floating: dict[str, Any] = {"refuses": "whole complex"}
    facts = floating | {"core": dims == 2, "autocast": {"cpu": "fp32"}}
    op = Operator(f"{name}(Tensor input, Tensor grid, {HOW}) -> Tensor", out="out", **facts)
    backward_op = Operator(
        f"{name}_backward(Tensor grad_output, Tensor input, Tensor grid, {HOW}, bool[2] output_mask) -> "
        "(Tensor, Tensor)",
        **floating,
    )

    @op.kernel("CPU", "Meta")
    def forward(input: Tensor, grid: Tensor, mode: int, padding: int, align: bool) -> Tensor:
        check_grid(input, grid, dims, mode)
        check_dtypes(kernel, input, grid)
        shape, compute = (*input._shape[:2], *grid._shape[1:-1]), compute_dtype(input)
        if input._device.type == "meta":
            return empty(shape, input._dtype, input._device)
        out = empty(shape, compute, input._device)
        if out._shape.numel():
            located(grid, input, mode, padding, align).sample(out._operand, dense(input, compute)._operand)
        return as_dtype(out, input._dtype)

    @backward_op.kernel("CPU", "Meta")
    def backward(
        grad_output: Tensor, input: Tensor, grid: Tensor, mode: int, padding: int, align: bool, mask: Sequence[bool]
    ) -> Any:
        check_grid(input, grid, dims, mode)
        check_dtypes(backward_kernel, input, grid, grad_output)
        shape = (*input._shape[:2], *grid._shape[1:-1])
        if tuple(grad_output._shape) != shape:
            raise RuntimeError(f"expected grad_output of shape {list(shape)}, but got {list(grad_output._shape)}")
        if input._device.type == "meta":
            of_image = empty(input._shape, input._dtype, input._device) if mask[0] else None
            return of_image, empty(grid._shape, grid._dtype, grid._device)
        return computed_gradients(grad_output, input, grid, (mode, padding, align), mask)

    def gradients(
        grad: Any,
        input: Any,
        grid: Any,
        interpolation_mode: int,
        padding_mode: int,
        align_corners: bool,
        needs: Sequence[bool],
    ) -> Any:
        how = (interpolation_mode, padding_mode, align_corners)
        found = backward_op.functional(grad, input, grid, *how, list(needs))
        return [one if need else None for one, need in zip(found, needs, strict=True)]

    op.derivative((("input", "grid"), gradients))
    backward_op.derivative((("grad_output", "input", "grid"), second_gradients))
    copy_into_out(op)
    return op, public(op, method=False, doc=f"Returns the values of {images} at the points of a grid.")


grid_sampler_2d_op, grid_sampler_2d = declare(
    2, "grid_sampler_2d_cpu_kernel_impl", "grid_sampler_2d_backward_cpu_kernel_impl"
)
grid_sampler_3d_op, grid_sampler_3d = declare(3, "grid_sampler3d_cpu", "grid_sampler_3d_backward_cpu")

# the second way that PyTorch has for two dimensions on the CPU; here it is the first one
fallback_op = Operator(
    f"_grid_sampler_2d_cpu_fallback(Tensor input, Tensor grid, {HOW}) -> Tensor", refuses="whole complex"
)
fallback_backward_op = Operator(
    f"_grid_sampler_2d_cpu_fallback_backward(Tensor grad_output, Tensor input, Tensor grid, {HOW}) -> (Tensor, Tensor)",
    refuses="whole complex",
    late_out=False,
)


@fallback_op.explicit
def fallback(input: Any, grid: Any, *how: Any) -> Any:
    return grid_sampler_2d_op.functional(input, grid, *how)


@in_parts(fallback_backward_op, "grad_output", "input", "grid")
def fallback_backward(grad_output: Any, input: Any, grid: Any, *how: Any) -> Any:
    return ops.aten.grid_sampler_2d_backward.default(grad_output, input, grid, *how, [True, True])


@taking("grad", "input", "grid", *WAYS)
def fallback_gradients(grad: Any, *arguments: Any) -> Any:
    return fallback_backward_op.functional(grad, *arguments)


fallback_op.derivative((("input", "grid"), fallback_gradients))
fallback_op.autocast(cpu="fp32")

grid_sampler_op = Operator(
    f"grid_sampler(Tensor input, Tensor grid, {HOW}) -> Tensor",
    refuses="whole complex",
    autocast={"cpu": "fp32", "cuda": "promote"},
)


@grid_sampler_op.implicit
def grid_sampler_composite(input: Any, grid: Any, mode: int, padding: int, align: bool) -> Any:
    check_grid(input, grid, None, mode)
    op = grid_sampler_2d_op if len(input._shape) == 4 else grid_sampler_3d_op
    return op.functional(input, grid, mode, padding, align)


grid_sampler = public(grid_sampler_op, method=False, doc="Returns the values of images at the points of a grid.")

# --- grids -----------------------------------------------------------------------------------------------------------

affine_grid_generator_op = Operator(
    "affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor", out="out", refuses="bool"
)
affine_grid_generator_backward_op = Operator(
    "affine_grid_generator_backward(Tensor grad, SymInt[] size, bool align_corners) -> Tensor", refuses="bool"
)


def base_grid(like: Any, size: Sequence[int], align: bool) -> Any:
    """[n, points, axes + 1]: the coordinates of the middles of all elements of such images, and a 1."""
    if len(size) not in (4, 5):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    space = list(size[2:])
    made = like.new_empty([size[0], *space, len(space) + 1])
    for axis, count in enumerate(reversed(space)):
        steps = line_of(like, count, align)
        made.select(-1, axis).copy_(steps.view([count, *[1] * axis]))
    made.select(-1, len(space)).fill_(1)
    return made.view([size[0], -1, len(space) + 1])


def line_of(like: Any, count: int, align: bool) -> Any:
    """From -1 to 1, at the corner elements or, a little less, at the middles of elements between these."""
    if count <= 1:
        return like.new_zeros([count])
    steps = linspace.ops[-1].functional(-1, 1, count, dtype=like.dtype, device=like.device)
    return steps if align else steps * (count - 1) / count


@affine_grid_generator_op.explicit
def affine_grid(theta: Any, size: Sequence[int], align: bool) -> Any:
    """Returns the points to which an affine map takes each element: its matrix times their coordinates."""
    if len(size) not in (4, 5):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    points = base_grid(theta, size, align).bmm(theta.transpose(1, 2))
    return points.view([size[0], *size[2:], len(size) - 2])


@affine_grid_generator_backward_op.implicit
def affine_grid_backward(grad: Any, size: Sequence[int], align: bool) -> Any:
    grid = base_grid(grad, size, align)
    flat = grad.reshape([size[0], -1, len(size) - 2])
    return grid.transpose(1, 2).bmm(flat).transpose(1, 2)


affine_grid_generator_op.derivative(
    theta=lambda grad, size, align_corners: affine_grid_generator_backward_op.functional(grad, size, align_corners)
)
affine_grid_generator_op.forward("linear")
copy_into_out(affine_grid_generator_op)
affine_grid_generator = public(affine_grid_generator_op, method=False)

# --- the same by gathers ----------------------------------------------------------------------------------------------

Terms = list[tuple[Any, Any]]  # (element, weight) of each point along one axis


def sampled_by_gathers(input: Any, grid: Any, mode: int, padding: int, align: bool) -> Any:
    """The values of input[n, channels, *size] at grid[n, *points, axes]: [n, channels, *points]."""
    sizes = list(input.shape[2:])
    axes = [
        terms_along(grid.select(-1, len(sizes) - 1 - axis).flatten(1), size, mode, padding, align)
        for axis, size in enumerate(sizes)
    ]
    image, total = input.flatten(2), None
    for terms in product(*axes):
        cell, weight = 0, 1
        for (place, share), size in zip(terms, sizes, strict=True):
            is_inside = (place >= 0).logical_and(place < size)
            cell = cell * size + place.clamp(0, size - 1).long()
            weight = weight * (share * is_inside)
        chosen = image.gather(2, cell.unsqueeze(1).expand(-1, image.shape[1], -1))  # type: ignore[attr-defined]  # an attribute that mypy does not see
        part = chosen * weight.unsqueeze(1)  # type: ignore[attr-defined]  # both are tensors by now
        total = part if total is None else total + part
    return total.reshape([*input.shape[:2], *grid.shape[1:-1]])  # type: ignore[union-attr]  # there are terms


def terms_along(coordinate: Any, size: int, mode: int, padding: int, align: bool) -> Terms:
    """The terms of each point along one axis, from its coordinate in [-1, 1]."""
    at = (coordinate + 1) / 2 * (size - 1) if align else ((coordinate + 1) * size - 1) / 2
    if mode not in (0, NEAREST):
        return cubic_terms(finite(at), size, padding, align)
    at = inside(at, size, padding, align)
    if mode == NEAREST:
        place = at.detach().round()
        return [(place, at.new_ones([]))]
    low = at.detach().floor()
    return [(low, 1 - (at - low)), (low + 1, at - low)]


def cubic_terms(at: Any, size: int, padding: int, align: bool) -> Terms:
    low = at.detach().floor()
    t = at - low
    weights = far(1 + t), near(t), near(1 - t), far(2 - t)
    return [(inside(low + k - 1, size, padding, align).round(), weight) for k, weight in enumerate(weights)]


def inside(at: Any, size: int, padding: int, align: bool) -> Any:
    """The position after what `padding` makes of one outside of the image."""
    if padding == REFLECTION:
        low, span = (0.0, size - 1) if align else (-0.5, size)
        if span == 0:
            return at * 0
        away = (at - low).abs()
        turns = (away.detach() / span).floor()
        rest = away - turns * span
        at = rest.where(turns % 2 == 0, span - rest) + low
    if padding in (BORDER, REFLECTION):
        at = at.clamp(0, size - 1)
    return finite(at)


def finite(at: Any) -> Any:
    """The position, or one far outside for what is no number that an index could be."""
    return at.where(at.abs() < 1e9, -100.0)
