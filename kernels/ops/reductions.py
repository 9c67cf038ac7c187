"""Reductions: many elements into one, along some dimensions or all: sums, means, products, truth.

`dim` None or [] means all dimensions; a reduced dimension is left out, or kept as size 1 (`keepdim`). Integers add up
in int64; `dtype=` says in which dtype to compute. Read next: extremes.py, scans.py, moments.py.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from redispatch import kernels
from redispatch.dispatch import STATE
from redispatch.dispatch.specialiser.annotations import frozen, inline, leaf
from redispatch.dispatch.tensor import Size, Tensor, as_numpy, dtype, dtypes, empty, metadata_of, wrap_dim
from redispatch.kernels import Operand
from redispatch.kernels.cpu.reduce import Recipe, Reduction
from redispatch.kernels.engine.primitives import bits_of_double

from ..declare.operator import CUDA_SET_DTYPE, composite, kernel
from ..declare.plan import PLANS, Run
from ..declare.planned import Planned
from ..declare.public import public
from ..declare.structured import Meta, not_implemented
from .arithmetic import div_scalar_op

DIMS = "Tensor self, int[1]? dim, bool keepdim=False"
DTYPE = "ScalarType? dtype=None"
REDUCTION = ("reduction",)
MOST_DIMS = 64  # of which PyTorch has a bit each

# --- dimensions ------------------------------------------------------------------------------------------------------


def reduced_dims(dim: Sequence[int] | int | None, ndim: int, empty_means_all: bool = True) -> tuple[int, ...]:
    """The dimensions to reduce, counted from the front. IndexError out of range, RuntimeError for one given twice."""
    if isinstance(dim, int):
        dim = (dim,)
    if dim is None or (not dim and empty_means_all):
        return tuple(range(ndim))
    if ndim > MOST_DIMS:
        raise RuntimeError(f"only tensors with up to {MOST_DIMS} dims are supported")
    wrapped = [wrap_dim(d, ndim) for d in dim]
    for i, d in enumerate(wrapped):
        if d in wrapped[:i]:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return tuple(wrapped) if ndim else ()


def reduced_shape(shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> Size:
    """The shape with `dims` left out, or kept as 1."""
    if keepdim:
        return Size(1 if d in dims else size for d, size in enumerate(shape))
    return Size(size for d, size in enumerate(shape) if d not in dims)


def count_of(shape: Sequence[int], dims: Sequence[int]) -> int:
    """The number of elements that go into each result."""
    return math.prod(shape[d] for d in dims)


def unreduced(grad: Any, shape: Sequence[int], dim: Any, keepdim: bool) -> Any:
    """Undoes a reduction's shape: returns `grad` of the result, expanded to the shape of the input."""
    return with_kept_dims(grad, shape, dim, keepdim).expand(shape)


def with_kept_dims(result: Any, shape: Sequence[int], dim: Any, keepdim: bool) -> Any:
    """A result with the reduced dimensions as size 1, so that it broadcasts against the input."""
    if keepdim or not len(shape):
        return result
    for d in sorted(reduced_dims(dim, len(shape))):
        result = result.unsqueeze(d)
    return result


# --- what is computed in which dtype ---------------------------------------------------------------------------------


def summing_dtype(self: Tensor, dtype: dtype | None) -> dtype:
    """Integers and bools add up in int64."""
    return dtype or (dtypes.int64 if self._dtype.category <= dtypes.INTEGER else self._dtype)


def averaging_dtype(self: Tensor, dtype: dtype | None) -> dtype:
    """Only floating and complex dtypes have means."""
    found = dtype or self._dtype
    if found.category <= dtypes.INTEGER:
        which = "Optional" if dtype else "Input"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {which} dtype must be either a floating point or complex dtype. "
            f"Got: {found.tensor_name}"
        )
    return found


def reduced_in(dtype: dtype, reduction: Reduction, out: Tensor, self: Tensor, dims: tuple[int, ...]) -> Run:
    """The loop of a reduction that computes in this dtype."""
    return in_dtype(dtype, lambda x: reduction.ready(out._operand, x, dims), self)


def in_dtype(dtype: dtype, ready: Callable[[Operand], Run], self: Tensor) -> Run:
    """The loop `ready(x)`, behind a conversion where it would compute in a narrower or other dtype than this."""
    own = self._dtype
    exact = own.category <= dtypes.INTEGER and dtype is dtypes.int64
    widens = own.is_floating_point and own.itemsize == 2 and dtype is dtypes.float32
    if own is dtype or exact or widens:
        return ready(self._operand)
    dense = empty(self._shape, dtype, self._device)._operand
    convert, reduce = kernels.ready_copy(dense, self._operand), ready(dense)
    elements, storage = self._shape.numel(), kernels.DTYPES[dense.dtype].storage

    def run(to: np.ndarray, to_at: int, x: np.ndarray, x_at: int) -> None:
        scratch = kernels.memory(elements, storage)
        convert(scratch, 0, x, x_at)
        reduce(to, to_at, scratch, 0)

    return run


def converted(self: Tensor, dtype: dtype) -> Tensor:
    """A dense copy of another dtype, below the dispatcher."""
    fresh = empty(self._shape, dtype, self._device)
    kernels.copy(fresh._operand, self._operand)
    return fresh


# --- what every reduction is made of ---------------------------------------------------------------------------------


def own_dtype(self: Tensor, dtype: dtype | None) -> dtype:
    return self._dtype


@frozen
class Reduced(Planned):
    """A reduction by a loop of kernels/cpu/reduce.py, from which its meta function and its loop follow.

    computing: the dtype to compute in, by (self, `dtype=`). result: that of the result, by `self`; the same by default.
    all_dims: whether an empty list of dimensions means all of them. check: raises for arguments that it refuses.
    check_out: raises for a tensor that the result of `self` is not to be written to.
    """

    def __init__(
        self,
        schema: str,
        reduction: Reduction,
        computing: Callable[[Tensor, Any], Any] = own_dtype,
        *,
        result: Callable[[Tensor], dtype] | None = None,
        all_dims: bool = True,
        check: Callable[..., None] | None = None,
        check_out: Callable[[Tensor, Tensor], None] | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(schema, tags=REDUCTION, **facts)
        self.reduction, self.computing, self.result_function = reduction, computing, result
        self.all_dims, self.check_function, self.check_out = all_dims, check, check_out
        self.meta(self.reduced_meta)
        self.loop(self.reduced_loop)

    @leaf
    def run_out(self, *args: Any) -> Any:
        if self.check_out is not None:
            self.check_out(args[-1], args[0])
        return super().run_out(*args)

    def decided(self, args: Sequence[Any]) -> tuple[Tensor, tuple[int, ...], dtype, bool]:
        """The tensor, the dimensions to reduce, the dtype to compute in, and whether the dimensions are kept."""
        given = dict(zip(self.names, args, strict=True))
        x = args[0]
        dims = reduced_dims(given.get("dim"), len(x._shape), self.all_dims or "dim" not in given)
        return x, dims, self.computing(x, given.get("dtype")), given.get("keepdim", False)

    def reduced_meta(self, *args: Any) -> Meta:
        if self.check_function is not None:
            self.check_function(*args)
        x, dims, kind, keepdim = self.decided(args)
        return Meta(
            reduced_shape(x._shape, dims, keepdim), self.result_function(x) if self.result_function else kind, x._device
        )

    def reduced_loop(self, out: Tensor, *args: Any) -> Run:
        x, dims, kind, _ = self.decided(args)
        return reduced_in(kind, self.reduction, out, x, dims)


# --- sum -------------------------------------------------------------------------------------------------------------

SUMMED: dict[str, Any] = {"dtype_of_target": True, "forward": "linear", "autocast": CUDA_SET_DTYPE}
sum_op = Reduced(
    f"sum(Tensor self, *, {DTYPE}) -> Tensor",
    kernels.SUM,
    summing_dtype,
    out="out",
    derivative=lambda grad, self_shape: grad.expand(self_shape),
    **SUMMED,
    batching="full",
)
sum_dim_op = Reduced(
    f"sum.dim_IntList({DIMS}, *, {DTYPE}) -> Tensor",
    kernels.SUM,
    summing_dtype,
    out="IntList_out",
    derivative=lambda grad, self_shape, dim, keepdim: unreduced(grad, self_shape, dim, keepdim),
    node="SumBackward1",
    **SUMMED,
    core=True,
)
sum = public(sum_op, sum_dim_op, doc="Returns the sum of all elements, or of those along `dim`.")


class Summing(NamedTuple):
    """The undoing of broadcasting: which dimensions are summed, and whether some of them then go."""

    dims: tuple[int, ...]
    leading: bool


SUMMINGS: dict[Any, Summing] = {}  # by metadata and wanted size


@composite("sum_to_size(Tensor self, SymInt[] size) -> Tensor", function=False)
@inline
def sum_to_size(self, size):
    """Returns the sums over the dimensions that broadcasting `size` to this shape has made."""
    key = (self._interned or metadata_of(self), tuple(size))
    found = SUMMINGS.get(key) or new_summing(key)
    if not size:
        return sum_op.functional(self)
    if not found.dims:
        return self
    summed = sum_dim_op.functional(self, found.dims, True)
    return view_as(summed, size) if found.leading else summed


def view_as(summed: Any, size: Sequence[int]) -> Tensor:
    return summed.view(list(size))


@leaf
def new_summing(key: Any) -> Summing:
    shape, size = tuple(key[0].shape), key[1]
    leading = len(shape) - len(size)
    if leading < 0 or builtins.any(
        want != 1 and want != have for want, have in zip(size, shape[leading:], strict=True)
    ):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}.")
    dims = [*range(leading)]
    dims += [d for d in range(leading, len(shape)) if size[d - leading] == 1 and shape[d] != 1]
    if len(SUMMINGS) >= PLANS:
        SUMMINGS.clear()
    SUMMINGS[key] = found = Summing(tuple(dims), leading > 0)
    return found


# --- mean ------------------------------------------------------------------------------------------------------------

mean_op = Reduced(
    f"mean(Tensor self, *, {DTYPE}) -> Tensor",
    kernels.MEAN,
    averaging_dtype,
    derivative=lambda grad, self_shape: div_scalar_op.functional(grad.expand(self_shape), self_shape.numel()),
    forward="linear",
    out="dtype_out",
    batching="full",
    core=True,
    refuses="whole",
)
mean_dim_op = Reduced(
    f"mean.dim({DIMS}, *, {DTYPE}) -> Tensor",
    kernels.MEAN,
    averaging_dtype,
    out="out",
    derivative=lambda grad, self_shape, dim, keepdim: div_scalar_op.functional(
        unreduced(grad, self_shape, dim, keepdim), count_of(self_shape, reduced_dims(dim, len(self_shape)))
    ),
    node="MeanBackward1",
    forward="linear",
    core=True,
)
mean = public(mean_op, mean_dim_op, doc="Returns the mean of all elements, or of those along `dim`.")

# --- prod ------------------------------------------------------------------------------------------------------------


def prod_backward(grad: Any, self: Any, dim: int) -> Any:
    """The gradient of a product: for each element the product of the others, zeros among them or not.

    With one zero only that element has a gradient: the product of the rest; with several none has any. Where the
    gradient itself is to be differentiated and there are zeros, the products of the others are formed one by one.
    """
    zero = self == 0
    if STATE.get().grad_enabled and (zero._array is None or as_numpy(zero).any()):
        return grad * products_of_others(self, dim)
    zeros = zero.sum(dim, True)
    rest = self.masked_fill(zero, 1)
    counted = (zeros == 0) | ((zeros == 1) & zero)
    return (grad * rest.prod(dim, True) / rest).masked_fill(~counted, 0)


def products_of_others(self: Any, dim: int) -> Any:
    """For each element along `dim`, the product of all the others there; takes the square of the memory."""
    from_rows = self.movedim(dim, -1)
    n = from_rows.shape[-1]
    square = from_rows.unsqueeze(-2).expand((*from_rows.shape, n))
    own = np.eye(n, dtype=bool)
    mask = empty((n, n), dtypes.bool, self._device)
    as_numpy(mask)[...] = own
    return square.masked_fill(mask, 1).prod(-1).movedim(-1, dim)


def prod_dim_backward(grad: Any, self: Any, dim: int, keepdim: bool) -> Any:
    if not self.dim():
        return grad
    return prod_backward(with_kept_dims(grad, self.shape, dim, keepdim), self, dim)


MULTIPLIED: dict[str, Any] = {"autocast": {"cpu": "fp32", "cuda": "fp32_set_opt_dtype"}}
prod_op = Reduced(
    f"prod(Tensor self, *, {DTYPE}) -> Tensor",
    kernels.PROD,
    summing_dtype,
    derivative=lambda grad, self: prod_backward(grad, self.reshape(-1), 0).reshape(self.shape),
    **MULTIPLIED,
    batching="full",
    core=True,
)
prod_dim_op = Reduced(
    f"prod.dim_int(Tensor self, int dim, bool keepdim=False, *, {DTYPE}) -> Tensor",
    kernels.PROD,
    summing_dtype,
    out="int_out",
    dtype_of_target=True,
    derivative=prod_dim_backward,
    node="ProdBackward1",
    **MULTIPLIED,
    core=True,
)
prod = public(prod_op, prod_dim_op, doc="Returns the product of all elements, or of those along `dim`.")

# --- all, any --------------------------------------------------------------------------------------------------------


def truth_dtype(self: Tensor) -> dtype:
    """bool; uint8 stays uint8, which stood for bool before there was one."""
    return dtypes.uint8 if self._dtype is dtypes.uint8 else dtypes.bool


def truth(name: str, reduction: Reduction, doc: str) -> Any:
    """`all` or `any`. Without dimensions to reduce, it still makes bools of the elements, each by itself."""

    def check_out(out: Tensor, self: Tensor) -> None:
        if out._dtype not in (dtypes.bool, dtypes.uint8):
            raise RuntimeError(f"{name} only supports bool tensor for result, got: {out._dtype.tensor_name}")

    schemas = {
        f"{name}(Tensor self) -> Tensor": "all_out",
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> Tensor": "out",
        f"{name}.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor": "dims_out",
    }
    facts: dict[str, Any] = {"result": truth_dtype, "all_dims": False, "check_out": check_out, "derivative": False}
    facts["core"] = name == "any"  # as PyTorch has it
    batching = ["full", "", ""]
    return public(
        *(Reduced(schema, reduction, out=out, batching=batching.pop(0), **facts) for schema, out in schemas.items()),
        doc=doc,
    )


all = truth("all", kernels.ALL, doc="Returns whether all elements are nonzero, or all along `dim`.")
any = truth("any", kernels.ANY, doc="Returns whether any element is nonzero, or any along `dim`.")


def truth_of_bools(name: str, function: Any) -> None:
    """Declares `_is_all_true` or `_is_any_true`, which take bools alone."""

    def of_bools(self: Tensor) -> Tensor:
        if self._dtype is not dtypes.bool:
            raise RuntimeError(f"{name}: expected a tensor of bools, but got {self._dtype.tensor_name}")
        return function(self)

    of_bools.__doc__ = f"Returns whether {function.__name__} of the elements of a tensor of bools are True."
    only_bools = "integers floating complex"
    kernel(f"{name}(Tensor self) -> Tensor", dispatches=True, face=True, derivative=False, refuses=only_bools)(of_bools)


truth_of_bools("_is_all_true", all)
truth_of_bools("_is_any_true", any)

# --- count_nonzero ---------------------------------------------------------------------------------------------------

int64 = np.int64


def one_unless_zero(x):
    return int64(1) if x != 0 else int64(0)


def add_to(acc, x):
    return acc + x


def as_counted(acc, total):
    return acc


COUNT = Reduction("count_nonzero", lambda dtype: Recipe(one_unless_zero, np.int64(0), add_to, as_counted))
count_nonzero = public(
    *(
        Reduced(schema, COUNT, result=lambda self: dtypes.int64, derivative=False, batching=batching)
        for schema, batching in (
            ("count_nonzero(Tensor self, int? dim=None) -> Tensor", "full"),
            ("count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", ""),
        )
    ),
    doc="Returns the number of nonzero elements, or of those along `dim`.",
)

# --- hash_tensor -----------------------------------------------------------------------------------------------------


def bits_of_float(x):
    return np.uint64(bits_of_double(x))


def bits_of_int(x):
    return np.uint64(int64(x))


def exclusive_or(acc, bits):
    return acc ^ bits


def check_hash_out(out: Tensor, self: Tensor) -> None:
    if out._dtype is not dtypes.uint64:
        raise RuntimeError(f"Expected result to be of dtype uint64, but got {out._dtype.tensor_name}")


def check_hashed(self: Tensor, dim: Sequence[int], keepdim: bool, mode: int) -> None:
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if not self._shape.numel() and not dim:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            "with the 'dim' argument."
        )
    for d in reduced_dims(dim, len(self._shape)):
        if self._shape[d] == 0:
            raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    if self._dtype.is_complex or self._dtype in (dtypes.uint16, dtypes.uint32, dtypes.uint64):
        raise not_implemented("xor_sum_cpu", self._dtype)


HASH = Reduction(
    "hash_tensor",
    lambda dtype: Recipe(bits_of_float if "float" in dtype else bits_of_int, np.uint64(0), exclusive_or, as_counted),
)
hash_tensor = public(
    Reduced(
        "hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
        HASH,
        result=lambda self: dtypes.uint64,
        check=check_hashed,
        check_out=check_hash_out,
        out="out",
        refuses="complex uint16 uint32 uint64",
        derivative=False,
    ),
    doc="Returns the exclusive or of the bits of all elements, as numbers of 64 bits, or of those along `dim`.",
)
