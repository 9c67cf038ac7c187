"""Int8Weight and Int4Weight: matrices that are kept in 8 or 4 bits an element and compute as floats.

    w = Int8Weight.from_float(linear.weight)        # one scale for each row
    linear.weight = rd.nn.Parameter(w, requires_grad=False)
    linear(x)                                       # runs; x gets its gradient

What it teaches: a wrapper may hold something else than it shows. Outside it is a float32 matrix; inside there are codes
and scales, and the handler decides operator by operator what to do about it. Three kinds of rule are enough: what
only moves the whole (`t`, `detach`, `clone`) stays quantised; the product, which is what one keeps weights for, has
a path of its own; everything else dequantises and goes on in plain tensors. Autograd stands above and knows none of
this: the gradient of the input is a product with the weight, which comes here again. How serious it is: the storage
of production libraries (symmetric codes by row, two nibbles to a byte, a scale for each group), with arithmetic in
floating point; what it saves is memory, not time.

Read next: two_tensor.py, if flattening is new; trainable.py, for a wrapper that is trained.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import return_and_correct_aliasing

from .schemas import written_by

aten = rd.ops.aten


class QuantizedWeight(rd.Tensor):
    """A matrix [rows, columns], or the transpose of it, given by integer `codes` and floating `scale`.

    What the two kinds share: `encode` and `decode` are theirs. No gradient flows into it: codes cannot move a little.
    """

    codes: rd.Tensor
    scale: rd.Tensor
    transposed: bool

    @staticmethod
    def encode(weight: rd.Tensor, *options: Any) -> tuple[rd.Tensor, rd.Tensor]:
        """Codes and scales of a floating matrix."""
        raise NotImplementedError("QuantizedWeight.encode: use Int8Weight or Int4Weight")

    def decode(self) -> rd.Tensor:
        """The matrix [rows, columns] of the codes in the dtype of `scale`, whichever way this one is turned."""
        raise NotImplementedError("QuantizedWeight.decode: use Int8Weight or Int4Weight")

    @classmethod
    def from_float(cls, weight: rd.Tensor, *options: Any) -> Any:
        """The quantised form of a floating matrix.

        Errors: TypeError for other dtypes, ValueError for other than 2 dimensions.
        """
        if not weight.is_floating_point():
            raise TypeError(f"{cls.__name__}: expected a floating-point weight, but got {weight.dtype}; pass w.float()")
        if weight.dim() != 2:
            raise ValueError(f"{cls.__name__}: expected a weight [rows, columns], but got shape {list(weight.shape)}")
        return cls(*cls.encode(weight.detach(), *options))

    @staticmethod
    def columns_of(codes: rd.Tensor) -> int:
        return codes.shape[1]

    @staticmethod
    def __new__(cls: Any, codes: rd.Tensor, scale: rd.Tensor, transposed: bool = False) -> Any:
        size = (codes.shape[0], cls.columns_of(codes))
        strides = (size[1], 1)
        if transposed:
            size, strides = size[::-1], strides[::-1]
        return rd.Tensor._make_wrapper_subclass(cls, size, strides=strides, dtype=scale.dtype, device=codes.device)

    def __init__(self, codes: rd.Tensor, scale: rd.Tensor, transposed: bool = False) -> None:
        self.codes, self.scale, self.transposed = codes, scale, transposed

    def dequantize(self) -> rd.Tensor:
        """The values that the codes stand for, as a plain tensor of this one's shape."""
        matrix = self.decode()
        return matrix.t() if self.transposed else matrix

    def with_parts(self, change: Callable[[rd.Tensor], rd.Tensor]) -> Any:
        """One like this with both inner tensors changed."""
        return type(self)(change(self.codes), change(self.scale), self.transposed)

    def times(self, x: rd.Tensor) -> rd.Tensor:
        """`x @ self`, for a plain matrix `x`."""
        return x @ self.dequantize()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={list(self.shape)}, {self.nbytes_held()} bytes)"

    def nbytes_held(self) -> int:
        """The bytes of memory that codes and scales take."""
        return self.codes.nbytes + self.scale.nbytes

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        """The names of the inner tensors, and which way the matrix is turned."""
        return ["codes", "scale"], self.transposed

    @classmethod
    def __tensor_unflatten__(cls, inner: dict[str, rd.Tensor], transposed: bool, size: Any, stride: Any) -> Any:
        """The wrapper around other codes and scales."""
        return cls(inner["codes"], inner["scale"], transposed)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        rule = RULES.get(func)
        if rule is not None:
            result = rule(*args, **kwargs)
            if result is not NotImplemented:
                return return_and_correct_aliasing(func, args, kwargs, result)
        written = next((x for x in written_by(func, args, kwargs) if isinstance(x, QuantizedWeight)), None)
        if written is not None:
            raise TypeError(
                f"{func}: a {type(written).__name__} cannot be changed element by element; dequantize() it, change "
                "that, and quantise the result by from_float"
            )
        if func is aten.as_strided.default:  # else `fill_diagonal_` and the like would write to a copy, unnoticed
            raise TypeError(f"{func}: a {cls.__name__} has no memory that goes by strides; use dequantize()")
        args, kwargs = pytree.tree_map_only(QuantizedWeight, QuantizedWeight.dequantize, (args, kwargs))
        return func(*args, **kwargs)


class Int8Weight(QuantizedWeight):
    """A floating matrix in int8 codes, -127 to 127, with one scale for each row: a value is `codes * scale`.

    `codes` is int8 [rows, columns]; `scale` is floating [rows]. Each value is within half a scale of the original.
    """

    @staticmethod
    def encode(weight: rd.Tensor, *options: Any) -> tuple[rd.Tensor, rd.Tensor]:
        scale = scale_for(weight.abs().amax(1), 127)
        return (weight / scale[:, None]).round().to(rd.int8), scale

    def decode(self) -> rd.Tensor:
        return self.codes.to(self.scale.dtype) * self.scale[:, None]

    def times(self, x: rd.Tensor) -> rd.Tensor:
        # A row has one scale, so that it can wait until the product is there, or go into x: the smaller side.
        codes = self.codes.to(self.scale.dtype)
        return (x @ codes.t()) * self.scale if self.transposed else (x * self.scale) @ codes


class Int4Weight(QuantizedWeight):
    """A floating matrix in 4-bit codes, two to a byte, with one scale for each group of neighbours in a row.

    `codes` is uint8 [rows, columns / 2]: the even column in the low nibble, the odd one in the high, each as code + 8;
    `scale` is floating [rows, columns / group_size]. Codes run from -7 to 7.
    `from_float(weight, group_size=32)` raises ValueError unless groups are even and divide the columns.
    """

    @staticmethod
    def encode(weight: rd.Tensor, *options: Any) -> tuple[rd.Tensor, rd.Tensor]:
        (group_size,) = options or (32,)
        rows, columns = weight.shape
        if group_size < 2 or group_size % 2 or columns % group_size:
            raise ValueError(
                f"Int4Weight: a group_size of {group_size} must be even and divide the {columns} columns; pass "
                "from_float(weight, group_size)"
            )
        groups = weight.reshape(rows, columns // group_size, group_size)
        scale = scale_for(groups.abs().amax(2), 7)
        nibbles = ((groups / scale[:, :, None]).round() + 8).to(rd.uint8).reshape(rows, columns)
        return nibbles[:, ::2] | (nibbles[:, 1::2] << 4), scale

    @staticmethod
    def columns_of(codes: rd.Tensor) -> int:
        return 2 * codes.shape[1]

    def decode(self) -> rd.Tensor:
        rows, columns = self.codes.shape[0], self.columns_of(self.codes)
        nibbles = rd.stack([self.codes & 15, self.codes >> 4], dim=2)
        values = nibbles.to(self.scale.dtype) - 8
        groups = values.reshape(rows, self.scale.shape[1], -1)
        return (groups * self.scale[:, :, None]).reshape(rows, columns)


def scale_for(largest: rd.Tensor, top: int) -> rd.Tensor:
    """The scale at which the largest magnitude gets the code `top`; 1 for what is all zeros, where any would do."""
    return rd.where(largest > 0, largest / top, rd.ones_like(largest))


# The rules: what need not dequantise -------------------------------------------------------------------------------


def turned(weight: Any, *dims: int) -> Any:
    return type(weight)(weight.codes, weight.scale, not weight.transposed)


def same(weight: Any) -> Any:
    return weight.with_parts(lambda part: part)


def cloned(weight: Any, *, memory_format: Any = None) -> Any:
    return weight.with_parts(lambda part: part.clone())


def mm(x: Any, weight: Any) -> Any:
    if not isinstance(weight, QuantizedWeight) or isinstance(x, QuantizedWeight) or x.dtype != weight.dtype:
        return NotImplemented
    return weight.times(x) if x.shape[1] == weight.shape[0] else NotImplemented


def addmm(bias: Any, x: Any, weight: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    product = NotImplemented if isinstance(bias, QuantizedWeight) else mm(x, weight)
    return product if product is NotImplemented else rd.add(beta * bias, product, alpha=alpha)


def copied(weight: Any, source: rd.Tensor, non_blocking: bool = False) -> Any:
    """`copy_`, by which `load_state_dict` fills a weight: codes are copied, floats quantised to the groups it has."""
    if not isinstance(weight, QuantizedWeight) or weight.shape != source.shape:
        return NotImplemented
    alike = type(source) is type(weight) and source.transposed == weight.transposed
    if alike and source.scale.shape == weight.scale.shape:
        codes, scale = source.codes, source.scale
    else:
        plain = source.dequantize() if isinstance(source, QuantizedWeight) else source
        plain = (plain.t() if weight.transposed else plain).to(weight.dtype)
        group = () if weight.scale.dim() == 1 else (plain.shape[1] // weight.scale.shape[1],)
        codes, scale = weight.encode(plain, *group)
    weight.codes.copy_(codes)
    weight.scale.copy_(scale)
    return weight


NOT_SUPPORTED = {
    "#writes": "codes cannot be changed element by element: change dequantize(), and use from_float",
    "as_strided": "codes have no strides of their own: use dequantize()",
    "(optimizer)/attributes": "codes cannot move a little: a quantised weight is not trained",
}

RULES: dict[Any, Callable[..., Any]] = {
    aten.t.default: turned,
    aten.detach.default: same,
    aten.alias.default: same,
    aten.clone.default: cloned,
    aten.mm.default: mm,
    aten.addmm.default: addmm,
    aten.copy_.default: copied,
}
