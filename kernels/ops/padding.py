"""Padding with an image's own elements, mirrored or repeated at its edges, and `pad`, which pads in every mode.

Along each axis that is a sparse matrix, and the gradient its transpose (resampling.py). Padding with a number copies
the tensor into a larger one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch import kernels
from redispatch.dispatch.tensor import Size, Tensor, dtypes, empty
from redispatch.kernels.cpu.resample import AxisMap

from ..declare.declare import through
from ..declare.operator import CPU_FP32, composite, kernel, structured
from ..declare.structured import Structured, not_implemented
from .copying import move, suggested_format
from .creation import strides_for
from .geometry import sliced
from .resampling import reflected, replicated, resampled, shaped_like
from .views import slice_op

SIDES = ("W", "H", "D")
NAMES = ("width", "height", "depth")


class Padding:
    """The widths around an image, checked against it: `padding` has two for each dimension, the last one first.

    Errors: RuntimeError, in PyTorch's words.
    """

    def __init__(self, name: str, dims: int, x: Tensor, padding: Sequence[int]) -> None:
        self.name, self.dims = name, dims
        self.reflects = name.startswith("reflection")
        if len(padding) != 2 * dims:
            given = f", but got: {len(padding)}" if self.reflects else ""
            raise RuntimeError(f"padding size is expected to be {2 * dims}{given}")
        shape = list(x._shape)
        batched = len(shape) == dims + 2
        if len(shape) not in (dims + 1, dims + 2) or 0 in (shape[1:] if batched else shape):
            raise RuntimeError(
                f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 batch size and other "
                f"non-zero dimensions for input, but got: {shape}"
            )
        self.widths = [(padding[2 * d], padding[2 * d + 1]) for d in range(dims)][::-1]
        self.sizes = shape[-dims:]
        if self.reflects:
            self.check_reflection(shape)
        self.counts = [size + before + behind for size, (before, behind) in zip(self.sizes, self.widths, strict=True)]
        if all(count < 1 for count in self.counts):
            sides = SIDES[:dims][::-1]
            had = ", ".join(f"{side}: {size}" for side, size in zip(sides, self.sizes, strict=True))
            made = " ".join(f"{side}: {count}" for side, count in zip(sides, self.counts, strict=True))
            raise RuntimeError(f"input ({had}) is too small. Calculated output {made}")
        self.shape = (*shape[:-dims], *self.counts)

    def check_reflection(self, shape: Sequence[int]) -> None:
        """A mirror shows no more than there is before it."""
        for k, (before, behind) in enumerate(reversed(self.widths)):
            d = len(shape) - 1 - k
            if before >= shape[d] or behind >= shape[d]:
                raise RuntimeError(
                    f"Argument #{2 * k + 4}: Padding size should be less than the corresponding input dimension, but "
                    f"got: padding ({before}, {behind}) at dimension {d} of input {list(shape)}"
                )

    def check_gradient(self, grad: Tensor) -> None:
        word = "grad_output" if self.reflects and self.dims != 2 else "gradOutput"
        for k in range(1, self.dims + 1):
            expected, got = self.counts[-k], grad._shape[-k]
            if expected != got:
                raise RuntimeError(f"{word} {NAMES[k - 1]} unexpected. Expected: {expected}, Got: {got}")

    @property
    def axes(self) -> list[AxisMap]:
        along = reflected if self.reflects else replicated
        return [along(size, *widths) for size, widths in zip(self.sizes, self.widths, strict=True)]


def declare(kind: str, dims: int) -> Structured:
    """`reflection_pad2d`, for two dimensions."""
    name, widths = f"{kind}_pad{dims}d", f"SymInt[{2 * dims}]"

    @structured(
        f"{name}_backward(Tensor grad_output, Tensor self, {widths} padding) -> Tensor",
        out="grad_input",
        refuses="whole",
        derivative={
            "grad_output": lambda grad, padding: op.functional(grad, padding),
            "self": lambda grad, self_shape: grad.new_zeros(self_shape),
        },
        forward="linear",
        face=False,
        relies=f"grad_output, self: *images {'_ ' * dims}",
    )
    def backward(grad_output, self, padding):
        setting = Padding(name, dims, self, padding)
        setting.check_gradient(grad_output)
        if not (grad_output._dtype.is_floating_point or grad_output._dtype.is_complex):
            raise not_implemented(f"{name}_backward", grad_output._dtype)
        return shaped_like(self._shape, self)._replace(dtype=grad_output._dtype)

    @backward.body
    def backward_body(out, grad_output, self, padding):
        resampled(out, grad_output, [axis.transposed for axis in Padding(name, dims, self, padding).axes])

    @structured(
        f"{name}(Tensor self, {widths} padding) -> Tensor",
        out="out",
        core=name != "replication_pad1d",
        autocast={} if name == "reflection_pad3d" else CPU_FP32,
        refuses="bool",
        derivative=through(backward, "grad", "self", "padding"),
        forward="linear",
        face=False,
    )
    def op(self, padding):
        setting = Padding(name, dims, self, padding)
        if self._dtype is dtypes.bool:
            raise not_implemented(name, self._dtype)
        return shaped_like(setting.shape, self)

    @op.body
    def body(out, self, padding):
        resampled(out, self, Padding(name, dims, self, padding).axes)

    return op


reflection_pad1d_op, replication_pad1d_op = declare("reflection", 1), declare("replication", 1)
reflection_pad2d_op, replication_pad2d_op = declare("reflection", 2), declare("replication", 2)
reflection_pad3d_op, replication_pad3d_op = declare("reflection", 3), declare("replication", 3)

# --- in every mode ---------------------------------------------------------------------------------------------------

MODES = ("reflect", "replicate", "circular", "constant")  # by their numbers
OPERATORS: dict[str, list[Structured]] = {
    "reflect": [reflection_pad1d_op, reflection_pad2d_op, reflection_pad3d_op],
    "replicate": [replication_pad1d_op, replication_pad2d_op, replication_pad3d_op],
}


@composite("_pad_circular(Tensor self, SymInt[] pad) -> Tensor")
def pad_circular_op(self, pad):
    """The image as if it went on from its other side: its copy in the result, and copies of that one's parts."""
    dims = len(pad) // 2
    if len(self._shape) - dims not in (1, 2):
        raise RuntimeError(
            "Invalid padding size, expected 1 or 2 non-padded dimensions, which would be equivalent to padding of "
            f"length {2 * (len(self._shape) - 2)} or {2 * (len(self._shape) - 1)} respectively but got {len(pad)}"
        )
    axes = range(len(self._shape) - 1, len(self._shape) - 1 - dims, -1)
    widths = {d: (pad[2 * k], pad[2 * k + 1]) for k, d in enumerate(axes)}
    shape = list(self._shape)
    for d, (before, behind) in widths.items():
        if before > shape[d] or behind > shape[d]:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        shape[d] += before + behind
        if shape[d] < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
    made = self.new_empty(shape, dtype=self.dtype, layout=self.layout, device=self.device)
    inside, source = made, self
    for d, (before, behind) in widths.items():
        inside = part(inside, d, max(before, 0), shape[d] - max(behind, 0))
        source = part(source, d, max(-before, 0), self._shape[d] - max(-behind, 0))
    inside.copy_(source)
    for d, (before, behind) in widths.items():
        end = shape[d] - max(behind, 0)
        if before > 0:
            part(made, d, 0, before).copy_(part(made, d, end - before, end))
        if behind > 0:
            start = max(before, 0)
            part(made, d, end, shape[d]).copy_(part(made, d, start, start + behind))
    return made


def part(x: Any, dim: int, start: int, end: int) -> Any:
    return slice_op.functional(x, dim, start, end, 1)


@composite("_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor", refuses="bool")
def pad_enum_op(self, pad, mode, value):
    """`pad` with the mode as its number."""
    ndim = len(self._shape)
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {ndim}"
        )
    name = MODES[mode] if 0 <= mode < len(MODES) else None
    if name == "constant":
        return constant_pad_nd.op.functional(self, pad, 0.0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{name}" doesn\'t take in value argument')
    dims = len(pad) // 2
    if 1 <= dims <= 3 and ndim in (dims + 1, dims + 2):
        if name == "circular":
            return pad_circular_op.functional(self, pad)
        if name is not None:
            return OPERATORS[name][dims - 1].functional(self, pad)
    raise NotImplementedError(f"Padding size {len(pad)} is not supported for {ndim}D input tensor.")


@composite('pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor', module="nn")
def pad(self, pad, mode, value):
    """Returns the tensor with more around it: `pad` has two widths for each dimension, the last dimension first."""
    if mode not in MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    return pad_enum_op.functional(self, pad, MODES.index(mode), value)


# --- constant_pad_nd: negative widths cut off instead -----------------------------------------------------------------


@kernel(
    "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
    core=True,
    batching="leading",
    derivative=lambda grad, pad: constant_pad_nd.op.functional(grad, [-width for width in pad], 0),
    forward=lambda arguments, tangents, result: constant_pad_nd.op.functional(tangents[0], arguments[1], 0),
    method=False,
)
def constant_pad_nd(self, pad, value):
    """Returns the tensor with `value` around it: `pad` has two widths for each dimension, the last dimension first."""
    ndim = len(self._shape)
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(pad)}while the input has {ndim}dimensions."
        )
    widths = [(0, 0)] * (ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    shape = [before + size + behind for size, (before, behind) in zip(self._shape, widths, strict=True)]
    for d, size in enumerate(shape):
        if size < 0:
            before, behind = widths[d]
            raise RuntimeError(
                f"The input size {self._shape[d]}, plus negative padding {before} and {behind} resulted in a negative "
                "output size, which is invalid. Check dimension "
                f"{d} of your input."
            )
    made = empty(Size(shape), self._dtype, self._device, strides_for(Size(shape), suggested_format(self)))
    if made._device.type == "cpu":
        kernels.fill(made._operand, value)
    elif made._device.type != "meta":
        made.fill_(value)
    source, target = self, made
    for d, (before, behind) in enumerate(widths):
        size = self._shape[d]
        source = sliced(source, d, max(-before, 0), size - max(-behind, 0), 1).of(source)
        target = sliced(target, d, max(before, 0), shape[d] - max(behind, 0), 1).of(target)
    move(target, source)
    return made
